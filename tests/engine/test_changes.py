"""How the ledger follows the definitions, decided without an engine."""

from dataclasses import replace

from shop import PER_MINUTE, RATIOS, STREAM

from headrace.engine.versions.changes import decide_changes
from headrace.ledger.definitions import stream_of
from headrace.ledger.entries import MAIN, Holding
from headrace.sql import parse_project


def entered(sql: str, held: list[Holding]) -> list[Holding]:
    """Return the ledger once it has followed these definitions."""
    changes = decide_changes(parse_project({"test.sql": sql}), held)
    owners = {holding.owner for holding in changes.enter}
    kept = [each for each in held if each not in changes.drop and each.owner not in owners]
    return [*kept, *changes.enter]


def test_what_no_row_depends_on_is_edited_without_a_new_version() -> None:
    held = entered(STREAM + PER_MINUTE, [])
    sooner = STREAM.replace("format = 'json'", "format = 'json', idle_timeout = '5 seconds'")
    edited = entered(sooner + PER_MINUTE, held)
    assert [(each.owner, each.unit) for each in edited] == [(each.owner, MAIN) for each in held]
    for each in edited:
        assert stream_of(each, "payments").idle_timeout_us == 5_000_000
    assert entered(sooner + PER_MINUTE, edited) == edited


def test_a_view_that_is_built_with_its_stream_and_edited_is_dropped() -> None:
    held = entered(STREAM + PER_MINUTE, [])
    longer = STREAM.replace("10 SECONDS", "10 MINUTES")
    building = entered(longer + PER_MINUTE + RATIOS, held)
    old = next(each for each in building if each.name == "ratios")
    assert old.unit.startswith("stream:payments@")
    edited = entered(longer + PER_MINUTE + RATIOS.replace("100", "200"), building)
    [ratios] = [each for each in edited if each.name == "ratios"]
    assert ratios.unit == f"view:ratios@{ratios.version}"
    # One that readers see, since it was set aside, stays until its successor is built.
    aside = [replace(each, unit=f"view:{each.name}") for each in held if each.kind == "view"]
    shown = [*(each for each in held if each.kind == "stream"), *aside]
    assert aside[0] in entered(STREAM + PER_MINUTE.replace("count(*)", "2 * count(*)"), shown)
