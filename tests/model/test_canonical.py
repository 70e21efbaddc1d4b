"""The canonical form: definitions survive it, their fingerprints survive releases.

Method: definitions are built by hand from nodes, some at random. The digests below were written
down once: if one changes, every such view would be rebuilt, so raise SEMANTICS or mend the form.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import DefinitionUnreadable, Location
from headrace.model import Adaptive, Stream, View, stream_fingerprint, view_fingerprint
from headrace.model.canonical import from_canonical, to_canonical
from headrace.model.definitions import Computed
from headrace.model.nodes import (
    WINDOW_COLUMNS,
    Aggregate,
    AssignWindows,
    Call,
    Deduplicate,
    Filter,
    Generate,
    Named,
    Node,
    Project,
    Scan,
    Union,
    Window,
    call_column,
    key_column,
)
from headrace.model.scalars import Scalar
from headrace.schema.types import Column, parse_type

CLICKS = Stream(
    "clicks",
    (
        Column("id", parse_type("STRING"), nullable=False),
        Column("amount", parse_type("DECIMAL(12,2)")),
        Column("tags", parse_type("ARRAY<STRING>")),
        Column("ts", parse_type("TIMESTAMP"), nullable=False),
    ),
    "clicks",
    event_time="ts",
    delay_us=30_000_000,
    unique="id",
    unique_within_us=3_600_000_000,
)
PLAIN = Stream("plain", (Column("a", parse_type("INT")),), "x")
RECORDS = Deduplicate(Scan("clicks"), "id", 3_600_000_000)
POSITIVE = Filter(RECORDS, Scalar("{0} > 0", ("amount",)))
AMOUNT = Scalar.column("amount")
PER_MINUTE = Project(
    Filter(
        Aggregate(
            POSITIVE,
            Window(60_000_000),
            (Scalar("upper({0})", ("id",)),),
            (Call("count"), Call("sum", (AMOUNT,), condition=Scalar("{0} < 9", ("amount",)))),
        ),
        Scalar("{0} > 1", (call_column(0),)),
    ),
    (
        Named("minute", Scalar.column(WINDOW_COLUMNS[0]), Location("a.sql", 3, 8)),
        Named("id", Scalar.column(key_column(0))),
        Named("mean", Scalar("{0} / {1}", (call_column(1), call_column(0)))),
    ),
)
EXPLODED = Generate(RECORDS, "explode", Scalar.column("tags"), ("tag",), outer=True)
STREAMS = {
    "plain": PLAIN,
    "clicks": CLICKS,
    "adaptive": Stream(
        "s", CLICKS.columns, "s", event_time="ts", delay_us=5, adaptive=Adaptive("0.99", 5)
    ),
    "options": Stream(
        "s", CLICKS.columns, "s", key="id", timestamp_format="millis", duplicates="topic",
        idle_timeout_us=7, event_time="ts", unique="id", unique_within_us=1,
    ),
    "places": Stream(
        "s",
        (
            Column("a", parse_type("TIMESTAMP"), path=("items", 0, "at"), format="millis"),
            Column("b", parse_type("STRUCT<x: ARRAY<INT NOT NULL> NOT NULL>"), path=("@b",)),
        ),
        "s",
    ),
}  # fmt: skip
STREAMS["computed"] = Stream(
    "s",
    (Column("raw", parse_type("STRING")),),
    "s",
    event_time="ts",
    computed=(
        Computed("ts", Scalar("cast({0} as timestamp)", ("raw",)), parse_type("TIMESTAMP"), 1),
        Computed("n", Scalar("length({0})", ("raw",))),
    ),
)
VIEWS: dict[str, View] = {
    "plain": View("v", Project(Scan("plain"), (Named("a", Scalar.column("a")),))),
    "per minute": View("v", PER_MINUTE, 600_000_000, late="drop", retention_us=0),
    "emitted": View("v", PER_MINUTE, emit="every", emit_every_us=5),
    "sessions": View(
        "v",
        Aggregate(
            RECORDS,
            Window(60, "session", time=Scalar("{0} + interval 1 hour", ("ts",))),
            (),
            (Call("first", (AMOUNT,), ignores_nulls=True), Call("max_by", (AMOUNT, AMOUNT))),
        ),
        late="fold",
    ),
    "days": View(
        "v",
        Aggregate(RECORDS, Window(86_400, "hopping", 60, -7, zone="Europe/Berlin"), (), ()),
    ),
    "union": View("v", Union((RECORDS, Scan("plain"), EXPLODED))),
    "top": View(
        "v", Aggregate(EXPLODED, None, (), (Call("approx_top_k", (Scalar.column("tag"),), ("5",)),))
    ),
}  # fmt: skip
GOLDEN_STREAMS = {
    "plain": "b9df2cd382ba50949a516719a059dad942b2ca849a3387a1e1ac33852557ecd8",
    "clicks": "89a1c17632899d6a2cc35a624acbee450e273de89a76024337e975191e073843",
    "adaptive": "8c1e3a40966c1b5163134ca4f96d71a75aa3825826bd42bdd3c10005867c432b",
    "options": "1c646da285fc9ee6bed2bf76bf32ef0c2820f6bfbc12447b48c9fd78d3c4dd9b",
    "places": "797ceb41143fb2685b0614e9aff85d3becf8dc7b45ac60d5bca78f67a89fa9e4",
    "computed": "818c84ac2bf5e50183b70f744b03e06147adacaf835bd7141dd4ec09e83d05f5",
}
GOLDEN_VIEWS = {
    "plain": "866dd5cb1eb8103fb3aecf1b6349b567ade04b3fdeac1b7e93c00a57fc70433f",
    "per minute": "e9fc2818f6f0d211fb9a9886f66844cdecc57bd9b717d82047133a2b211818da",
    "emitted": "a06f86cd7027ca81e8c84e0a9427ab0127dc77f75db85157ccbb920f854148e1",
    "sessions": "96cdd71618b8437d6fbf5fef2e508a4c7a4f775443549199f73d525cb5031cde",
    "days": "1f188614b2824fb16dbc9a1c8ab2ed8ac39e5e7ce5b362cd6f1713cdac6dec87",
    "union": "443dc14ef7ce4324309f5f69bebdf0cf98e7531661f680b9455dfa550da27573",
    "top": "7e2ed0977628dafae3c988066214418c81368b5670983349d0ae3fa516df16f3",
}


@pytest.mark.parametrize("definition", [*STREAMS.values(), *VIEWS.values()])
def test_a_definition_survives_its_form(definition: Stream | View) -> None:
    form = json.loads(json.dumps(to_canonical(definition)))
    assert from_canonical(form) == definition
    assert to_canonical(from_canonical(form)) == form


def test_fingerprints_never_change() -> None:
    streams = {name: stream_fingerprint(stream) for name, stream in STREAMS.items()}
    assert streams == GOLDEN_STREAMS
    views = {name: view_fingerprint(view, CLICKS, PLAIN) for name, view in VIEWS.items()}
    assert views == GOLDEN_VIEWS


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"canonical": 3}, "has the canonical form 3, and this release reads forms up to 2"),
        ({"canonical": 0}, "the form has the version 0"),
        ({"canonical": "1"}, "the form has no whole number 'canonical'"),
        ({"view": []}, "the form.view is not an object"),
        ({"more": 1}, "the form has the unknown field 'more'"),
        ({"view.late": None}, "the form.view has no text 'late'"),
        ({"view.query.node": "join"}, "the form.view.query is the unknown node 'join'"),
        ({"view.query.limit": 3}, "the form.view.query has the unknown field 'limit'"),
        ({"view.query.columns": [{"name": "a"}]}, "view.query.columns[0].scalar is not an object"),
        (
            {"view.query.columns": [{"name": "a", "scalar": {"text": "{0}"}}]},
            "the form.view.query.columns[0].scalar has more holes than columns",
        ),
        ({"view.emit_every_us": True}, "the form.view has no whole number 'emit_every_us'"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused_in_one_line(
    change: dict[str, Any], complaint: str
) -> None:
    form: dict[str, Any] = to_canonical(VIEWS["plain"])
    for path, value in change.items():
        *parents, name = path.split(".")
        inner = form
        for parent in parents:
            inner = inner[parent]
        inner[name] = value
    with pytest.raises(DefinitionUnreadable) as error:
        from_canonical(form)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_type_of_a_later_release_is_refused() -> None:
    form = to_canonical(PLAIN)
    form["stream"]["columns"][0]["type"] = "VARIANT"
    with pytest.raises(DefinitionUnreadable, match="a type that is not known"):
        from_canonical(form)


NAMES = st.sampled_from(["a", "b", "_watermark", key_column(0), "naïve `x`"])
SCALARS = st.builds(
    lambda text, refs: Scalar(text + "".join(f"{{{at}}}" for at in range(len(refs))), tuple(refs)),
    st.sampled_from(["", "1", "'{{'", "abs "]),
    st.lists(NAMES, unique=True, max_size=3),
)
WINDOWS = st.builds(
    Window,
    st.integers(0, 5),
    st.sampled_from(["tumbling", "hopping"]),
    st.integers(0, 2),
    st.integers(-2, 2),
    st.none() | SCALARS,
    st.none() | st.just("UTC"),
)
CALLS = st.builds(
    Call,
    st.sampled_from(["count", "sum"]),
    st.lists(SCALARS, max_size=2).map(tuple),
    st.lists(st.sampled_from(["1", "0.5"]), max_size=1).map(tuple),
    st.booleans(),
    st.none() | SCALARS,
)


def above(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    columns = st.lists(st.builds(Named, NAMES, SCALARS), max_size=2).map(tuple)
    return (
        st.builds(Project, nodes, columns)
        | st.builds(Filter, nodes, SCALARS)
        | st.builds(Union, st.lists(nodes, min_size=1, max_size=2).map(tuple))
        | st.builds(
            Generate, nodes, NAMES, SCALARS, st.lists(NAMES, max_size=2).map(tuple), st.booleans()
        )
        | st.builds(AssignWindows, nodes, WINDOWS)
        | st.builds(
            Aggregate,
            nodes,
            st.none() | WINDOWS,
            st.lists(SCALARS, max_size=2).map(tuple),
            st.lists(CALLS, max_size=2).map(tuple),
        )
    )


LEAVES = st.builds(Scan, NAMES) | st.builds(
    Deduplicate, st.builds(Scan, NAMES), NAMES, st.integers(0, 3)
)
TREES = st.recursive(LEAVES, above, max_leaves=4)


@settings(deadline=None, max_examples=60)
@given(first=TREES, second=TREES)
def test_forms_are_equal_exactly_where_nodes_are(first: Node, second: Node) -> None:
    forms = [json.dumps(to_canonical(View("v", node))) for node in (first, second)]
    assert (forms[0] == forms[1]) == (first == second)
    assert from_canonical(json.loads(forms[0])) == View("v", first)
