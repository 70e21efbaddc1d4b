"""What the ledger keeps of definitions: enough to go on with them, and clear words where it cannot.

Method: definitions are held and read back; forms of later releases and damaged ones are read.
"""

import json
from dataclasses import replace

import pytest

from headrace.errors import DefinitionUnreadable
from headrace.ledger.definitions import (
    check_readable,
    hold_stream,
    hold_view,
    short_version,
    stream_of,
    view_of,
)
from headrace.ledger.entries import MAIN
from headrace.sql import parse_project

SQL = """
CREATE STREAM clicks (id STRING NOT NULL, k STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)
WITH (topic = 'clicks', format = 'json', unique = 'id', unique_within = '1 hour');
CREATE MATERIALIZED VIEW hits WITH (allowed_lateness = '1 minute') AS
SELECT window.start AS minute, upper(k) AS k, count(*) AS n FROM clicks WHERE k <> 'x'
GROUP BY window(ts, '1 minute'), k HAVING count(*) > 1;
"""
PROJECT = parse_project({"test.sql": SQL})
[STREAM], [VIEW] = PROJECT.streams, PROJECT.views


def test_what_is_held_is_read_back_without_its_text() -> None:
    stream, view = hold_stream(STREAM, MAIN), hold_view(VIEW, [STREAM], MAIN)
    assert stream_of(stream, "clicks") == stream_of(view, "clicks") == replace(STREAM, sql="")
    assert view_of(view) == replace(VIEW, sql="")
    assert (view.text, view.inputs, stream.inputs) == (VIEW.sql, ("clicks",), ("clicks",))
    for held in (stream, view):
        check_readable(held)
        assert len(held.fingerprint) == 64
        assert held.version == short_version(held.fingerprint)


def test_a_form_of_a_later_release_is_told_in_one_line() -> None:
    held = hold_view(VIEW, [STREAM], MAIN)
    later = json.dumps(json.loads(held.forms[0]) | {"canonical": 99})
    with pytest.raises(DefinitionUnreadable) as error:
        check_readable(replace(held, forms=(later, held.forms[1])))
    assert str(error.value) == (
        f"view hits@{held.version}: a kept definition has the canonical form 99, and this release "
        "reads forms up to 2; start the release that wrote it, or a later one."
    )


@pytest.mark.parametrize("form", ["", "{", "[]", "{}", '{"canonical": 1, "view": {}}', "null"])
def test_a_damaged_form_names_its_definition(form: str) -> None:
    held = hold_stream(STREAM, MAIN)
    with pytest.raises(DefinitionUnreadable, match=f"^stream clicks@{held.version}: ") as error:
        check_readable(replace(held, forms=(form,)))
    assert "\n" not in str(error.value)
