"""Compare an engine's answer with the reference's, after random logs, cuts and crashes too."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from soaking import SEED, SOAKING, times

from headrace.log import Partition, Range
from headrace.model import Project
from headrace.model.graph import aggregate_of
from headrace.project.settings import Settings
from headrace.reference import Answer, Record, answer
from headrace.serve.http.values import plain
from headrace.testing import Harness, harness
from headrace.testing.harness import Value
from headrace.testing.strategies import Crash, Script, Turn, play, scripts

__all__ = [
    "answer_of_the_reference",
    "any_split",
    "as_a_multiset",
    "assert_agrees_with_the_reference",
    "assert_the_cuts_do_not_show",
    "assert_view_agrees",
    "records_of",
    "rich_scripts",
]


def any_split(examples: int, *, soaked: int | None = None) -> Callable[[Any], Any]:
    """Decorate a property over random scripts: a few in every run, always the same; many in a soak.

    The decorated test takes part in `make soak`, there with `soaked` examples many times over.
    """
    chosen = settings(
        deadline=None,
        max_examples=times(examples, soaked=soaked),
        derandomize=not SOAKING,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

    def decorate(test: Any) -> Any:
        return pytest.mark.soak(chosen(seed(SEED)(test) if SOAKING else test))

    return decorate


def rich_scripts(
    values: Callable[[datetime], st.SearchStrategy[Value]], **options: Any
) -> st.SearchStrategy[Script]:
    """Draw scripts; where only a few are tried, those with turns of both gears and a crash."""
    drawn = scripts(values, **options)
    return drawn if SOAKING else drawn.filter(_is_rich)


def _is_rich(script: Script) -> bool:
    gears = {step.gear for step in script if isinstance(step, Turn)}
    return gears == {"short", "long"} and any(isinstance(step, Crash) for step in script)


def assert_the_cuts_do_not_show(script: Script, definitions: str, chosen: Settings) -> None:
    """Check that a script's answer is the reference's, which knows no turns."""
    with harness(definitions, partitions=2, settings=chosen) as h:
        play(h, script)
        assert_agrees_with_the_reference(h)


def assert_agrees_with_the_reference(harness: Harness) -> None:
    """All tables, late, dead and duplicate sets and counters are what the reference says."""
    project = harness.project
    expected = answer_of_the_reference(harness, project)
    for stream in project.streams:
        assert _places(harness.dead(stream.name)) == expected.dead[stream.name]
        assert harness.counters(stream.name) == expected.counters[stream.name]
        if stream.duplicates == "topic":
            assert _places(harness.duplicates(stream.name)) == expected.duplicates[stream.name]
    for view in project.views:
        assert_view_agrees(harness, view.name, expected)


def answer_of_the_reference(harness: Harness, project: Project) -> Answer:
    """Return what the reference says of a project over a harness' log."""
    markers = [row["value"] for row in harness.topic("headrace.time")]
    return answer(project, records_of(harness, project), markers)


def records_of(harness: Harness, project: Project) -> dict[Partition, list[Record]]:
    """Return all records that the project's streams read, as the reference takes them."""
    return {
        partition: [
            Record(
                row["offset"],
                _micros(row["arrival"]),
                row["key"],
                row["value"],
                tuple((each["name"], each["value"]) for each in row["headers"] or ()),
            )
            for batch in harness.log.read(Range(partition, *extent))
            for row in batch.to_pylist()
        ]
        for stream in project.streams
        for partition, extent in harness.log.extents(stream.topic).items()
    }


def assert_view_agrees(harness: Harness, view: str, expected: Answer) -> None:
    """Check that a view's rows, late and dead sets and counters are as expected."""
    topic = harness.project.view(view).topic
    if topic is None:
        rows = as_a_multiset(harness.rows(view, meta=True))
        assert rows == as_a_multiset(expected.rows[view]), view
        _assert_errors_agree(harness, view, expected)
    else:
        told = as_a_multiset([json.loads(each["value"]) for each in harness.topic(topic)])
        assert told == as_a_multiset([_own(row) for row in expected.rows[view]]), view
    if harness.project.view(view).kind == "table":
        return  # its changes are a stream, which puts them aside and counts them
    assert _places(harness.side(f"{view}.late")) == expected.late[view], view
    assert _places(harness.dead(view)) == expected.dead[view], view
    assert harness.counters(view) == expected.counters[view], view


def _assert_errors_agree(harness: Harness, view: str, expected: Answer) -> None:
    if aggregate_of(harness.project.view(view).query) is None:
        return  # a row is a record, which is dead if it fails
    found = [dict(list(row.items())[:-1]) for row in harness.errors(view)]  # without the text
    assert as_a_multiset(found) == as_a_multiset(expected.errors[view]), view


def _micros(time: datetime) -> int:
    return int(time.timestamp()) * 1_000_000 + time.microsecond


def _places(found: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((row["topic"], row["partition"], row["offset"]) for row in found)


def _own(row: dict[str, object]) -> dict[str, object]:
    """Return a row as it is written to a topic."""
    return plain({name: value for name, value in row.items() if not name.startswith("_")})


def as_a_multiset(rows: list[dict[str, object]]) -> Counter[str]:
    """Return rows so that equal ones are equal, in any order."""
    # DOUBLE sums depend on the order of addition in their last digits.
    return Counter(
        repr([(name, _rounded(value)) for name, value in sorted(row.items())]) for row in rows
    )


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.9e}")
    return value.isoformat() if isinstance(value, datetime) else value
