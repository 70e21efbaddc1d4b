"""The shape of a view: linear nodes folded into one SELECT, values over keys computed by Spark.

Method: views are built by hand from nodes, and the texts that the planner makes of them written
out. Which words need quotes is held against the tokenizer that reads the texts again.
"""

from collections.abc import Sequence

import pytest
from sqlglot import Dialect, TokenType

from headrace.errors import DefinitionError, Location
from headrace.model.definitions import View
from headrace.model.nodes import (
    WATERMARK,
    WINDOW_COLUMNS,
    Aggregate,
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
from headrace.plan.finals import Names, to_term
from headrace.plan.shape import Expansion, Key, Output, Shape, shape_of, shapes_of
from headrace.plan.spark.names import identifier
from headrace.plan.terms import Operation, Operator, Reference
from headrace.schema.types import parse_type

RECORDS = Deduplicate(Scan("s"), "id", 60)
START, END, TIME = WINDOW_COLUMNS
MINUTE = Window(60_000_000)


def of(text: str, *refs: str) -> Scalar:
    return Scalar(text, refs)


def named(**columns: Scalar) -> tuple[Named, ...]:
    return tuple(Named(name, scalar) for name, scalar in columns.items())


def shaped(node: Node) -> Shape:
    return shape_of(View("v", node, location=Location("a.sql", 7, 1)))


def test_a_query_without_grouping_is_written_over_the_stream() -> None:
    query = Project(
        Filter(RECORDS, of("{0} > {1}", "Amount", "order")),
        named(a=of("{0}", "Amount"), late=of("{0} < {1}", "ts", WATERMARK)),
    )
    assert shaped(query) == Shape(
        "s",
        frozenset({"Amount", "order", "ts"}),
        "Amount > `order`",
        grouped=False,
        window=None,
        time=None,
        keys=(),
        calls=(),
        outputs=(Output("a", "Amount"), Output("late", "ts < timestamp_micros(__watermark)")),
    )


def test_projects_are_written_out_where_they_are_read() -> None:
    inner = Project(RECORDS, named(x=of("{0} + 1", "a"), y=of("{0}", "b"), z=of("{0}", "c")))
    outer = Project(Filter(inner, of("{0} > 0", "x")), named(d=of("{0} * {1}", "x", "y")))
    found = shaped(outer)
    assert found.where == "(a + 1) > 0"
    assert found.outputs == (Output("d", "(a + 1) * b"),)
    assert found.columns == {"a", "b"}  # no node asks for z


def test_filters_are_asked_in_their_order() -> None:
    query = Filter(Filter(Filter(RECORDS, of("{0} <> 0", "a")), of("1 / {0} > 1", "a")), of("true"))
    found = shaped(Project(query, named(a=of("{0}", "a"))))
    assert found.where == "CASE WHEN a <> 0 THEN CASE WHEN 1 / a > 1 THEN true END END"


def grouped(
    outputs: dict[str, Scalar],
    *conditions: Scalar,
    keys: Sequence[Scalar] = (),
    window: Window | None = MINUTE,
) -> Shape:
    calls = (
        Call("count"),
        Call("max_by", (of("{0}", "a"), of("{0}", "b")), condition=of("{0}", "c")),
    )
    node: Node = Aggregate(RECORDS, window, tuple(keys), calls)
    for condition in conditions:
        node = Filter(node, condition)
    return shaped(Project(node, named(**outputs)))


GROUPED = Project(Aggregate(RECORDS, None, (), (Call("count"),)), named(n=of("{0}", "call_0")))
K0, K1, A0, A1 = key_column(0), key_column(1), call_column(0), call_column(1)


def test_columns_and_literals_over_groups_stay_what_they_are() -> None:
    outputs = {
        "start": of("{0}", START), "country": of("{0}", K0), "n": of("{0}", A0),
        "one": of("1"), "less": of("- 1.5"), "text": of("'{{it\\'s}}'"), "yes": of("true"),
    }  # fmt: skip
    found = grouped(outputs, of("{0} > 1", A0), keys=[of("{0}", "country")])
    texts = [output.expression for output in found.outputs]
    assert texts == ["window_start", "k0", "a0", "1", "- 1.5", "'{it\\'s}'", "true"]
    assert found.keys == (Key("k0", "country"),)
    assert found.having == "a0 > 1"
    assert [(call.name, call.argument, call.by, call.condition) for call in found.calls] == [
        ("a0", None, None, None),
        ("a1", "a", "b", "c"),
    ]
    assert found.columns == {"country", "a", "b", "c"}


def test_what_follows_from_keys_is_a_key_that_spark_computes() -> None:
    outputs = {
        "big": of("upper({0})", K0),
        "again": of("upper({0})", K0),
        "both": of("{0} || {1}", K0, K1),
        "hour": of("date_trunc('hour', {0})", START),
        "long": of("1L"),
    }
    keys = [of("{0}", "country"), of("{0} + 1", "n")]
    found = grouped(outputs, of("{0} = 'x'", K0), keys=keys)
    assert found.keys == (
        Key("k0", "country"),
        Key("k1", "n + 1"),
        Key("k2", "upper(country)", derived=True, over=("k0",)),
        Key("k3", "country || (n + 1)", derived=True, over=("k0", "k1")),
        Key("k4", "date_trunc('hour', window.start)", derived=True),
        Key("k5", "1L", derived=True),
        Key("k6", "country = 'x'", derived=True, over=("k0",)),
    )
    assert [output.expression for output in found.outputs] == ["k2", "k2", "k3", "k4", "k5"]
    assert found.having == "k6"


def test_beside_aggregates_only_calls_that_the_store_does_not_compute_are_keys() -> None:
    outputs = {
        "a": of("coalesce({0}, 0) + length(trim({1}))", A1, K0),
        "b": of("case when {0} > 3 then 'f(x)' else upper({1}) end", A0, K0),
        "c": of("cast({0} as decimal(12,2)) + if({1} > 1, abs({1}), 2)", A1, A0),
        "d": of("{0} in (1, 2) and upper({1}) = '{{0}}'", A0, K0),
    }
    found = grouped(outputs, keys=[of("{0}", "country")])
    assert [output.expression for output in found.outputs] == [
        "coalesce(a1, 0) + k1",
        "case when a0 > 3 then 'f(x)' else k2 end",
        "cast(a1 as decimal(12,2)) + if(a0 > 1, abs(a0), 2)",
        "a0 in (1, 2) and k2 = '{0}'",
    ]
    assert found.keys[1:] == (
        Key("k1", "length(trim(country))", derived=True, over=("k0",)),
        Key("k2", "upper(country)", derived=True, over=("k0",)),
    )


def test_keys_may_read_the_window_of_a_record_and_columns_that_look_like_it() -> None:
    keys = [of("hour({0})", TIME), of("{0}", "window_start")]
    found = grouped({"h": of("{0}", K0)}, keys=keys)
    assert [key.expression for key in found.keys] == ["hour(window.time)", "window_start"]
    assert found.columns == {"window_start", "a", "b", "c"}


def test_the_time_of_a_window_is_over_the_stream() -> None:
    inner = Project(RECORDS, named(at=of("{0}", "ts")))
    window = Window(60, time=of("{0} + interval 1 hour", "at"))
    found = shaped(Project(Aggregate(inner, window, (), (Call("count"),)), named(n=of("{0}", A0))))
    assert found.time == "ts + interval 1 hour"
    assert found.columns == {"ts"}


@pytest.mark.parametrize(
    ("node", "what"),
    [
        (Filter(Union((RECORDS, Scan("s"))), of("true")), "UNION ALL of queries without a list"),
        (Generate(RECORDS, "explode", of("{0}", "a"), ("b",)), "a query without a list"),
        (Project(Union((GROUPED, GROUPED)), ()), "UNION ALL of grouped queries"),
        (Generate(GROUPED, "explode", of("{0}", "n"), ("b",)), "a generator over an aggregate"),
        (Aggregate(Aggregate(RECORDS, None, (), ()), None, (), ()), "an aggregate over an"),
        (Aggregate(RECORDS, None, (), ()), "a query without a list of outputs"),
        (Filter(RECORDS, of("true")), "a query without a list of outputs"),
    ],
)
def test_what_cannot_be_planned_yet_is_refused(node: Node, what: str) -> None:
    with pytest.raises(DefinitionError) as error:
        shaped(node)
    assert str(error.value).startswith(f"a.sql:7:1: view v: {what}")
    assert str(error.value).endswith(" is not built yet")


def test_values_over_the_edges_of_sessions_are_the_stores() -> None:
    window = Window(60, "session")
    found = grouped({"h": of("hour({0})", START), "s": of("{0}", START)}, window=window)
    assert [output.expression for output in found.outputs] == ["hour(window_start)", "window_start"]
    assert found.keys == ()
    integer, start = parse_type("INT"), Reference("window_start", parse_type("TIMESTAMP"))
    types = {"hour(window_start)": integer, "upper(window_start)": parse_type("STRING")}
    names = Names({"window_start": start.type}, {}, types)
    assert to_term("hour(window_start)", names) == Operation(Operator.HOUR, (start,), integer)
    with pytest.raises(ValueError, match="cannot be computed over aggregates or windows"):
        to_term("upper(window_start)", names)


def test_a_call_that_may_fail_is_never_asked_without_its_guard() -> None:
    keys = [of("{0}", "country"), of("{0}", "n")]
    whole = of("if({0} = 0, 0, mod(10, {0})) + {1}", key_column(1), A0)
    found = grouped({"a": whole}, keys=keys)
    assert found.outputs[0].expression == "k2 + a0"
    assert found.keys[2].expression == "if(n = 0, 0, mod(10, n))"
    # What the store computes is guarded there.
    kept = of("case when {0} = 0 then {1} else mod(10, {0}) end", key_column(1), A0)
    found = grouped({"a": kept}, keys=keys)
    assert found.outputs[0].expression == "case when k1 = 0 then a0 else mod(10, k1) end"
    assert len(found.keys) == 2
    # What only Spark computes is asked of the merged row, as a whole; panes have no such row.
    mixed = of("case when {0} = 0 then {1} else factorial({0}) end", key_column(1), A0)
    found = grouped({"a": mixed}, keys=keys)
    assert found.outputs[0].expression == "case when k1 = 0 then a0 else factorial(k1) end"
    assert len(found.keys) == 2
    with pytest.raises(DefinitionError, match="would be asked without its condition"):
        grouped({"a": mixed}, keys=keys, window=Window(60, "hopping", slide_us=30))


def test_every_word_that_is_more_than_a_name_is_quoted() -> None:
    spark = Dialect.get_or_raise("spark")
    words = {word for phrase in spark.tokenizer_class.KEYWORDS for word in phrase.split()}
    for word in words:
        if identifier(word) == word:
            [token] = spark.tokenize(word)
            assert token.token_type == TokenType.VAR, word
    assert identifier("Order") == "`Order`"
    assert identifier("user") == "`user`"
    assert identifier("größe") == "`größe`"
    assert identifier("a`b") == "`a``b`"
    assert identifier("Amount_1") == "Amount_1"


def test_each_branch_of_a_union_is_a_shape_over_its_own_stream() -> None:
    first = Project(Filter(RECORDS, of("{0} > 0", "a")), named(x=of("{0}", "a"), t=of("{0}", "ts")))
    second = Project(Scan("t"), named(x=of("{0} + 1", "b"), other=of("{0}", "time")))
    both = Union((first, Union((second, first))))
    node = Aggregate(
        Filter(both, of("{0} < 9", "x")), MINUTE, (of("{0} % 2", "x"),), (Call("count"),)
    )
    outputs = named(k=of("{0}", K0), twice=of("2 * {0}", K0), n=of("{0}", A0))
    shapes = shapes_of(View("v", Project(node, outputs)))
    assert [(each.stream, each.input, each.branch, each.branches) for each in shapes] == [
        ("s", "s", 0, 3),
        ("t", "t", 1, 3),
        ("s", "s#2", 2, 3),
    ]
    assert [each.where for each in shapes] == [
        "CASE WHEN a > 0 THEN a < 9 END",
        "(b + 1) < 9",
        "CASE WHEN a > 0 THEN a < 9 END",
    ]
    assert [[key.expression for key in each.keys] for each in shapes] == [
        ["a % 2", "2 * (a % 2)"],
        ["(b + 1) % 2", "2 * ((b + 1) % 2)"],
        ["a % 2", "2 * (a % 2)"],
    ]
    assert {each.outputs for each in shapes} == {
        (Output("k", "k0"), Output("twice", "k1"), Output("n", "a0"))
    }
    assert [each.columns for each in shapes] == [{"a"}, {"b"}, {"a"}]


def test_rows_of_a_generator_are_asked_what_stands_above_it() -> None:
    below = Filter(RECORDS, of("{0} > 0", "a"))
    entries = Generate(below, "posexplode", of("{0}", "tags"), ("at", "tag"), outer=True)
    inner = Generate(Filter(entries, of("{0} = 0", "at")), "explode", of("f({0})", "tag"), ("e",))
    query = Project(Filter(inner, of("{0} <> {1}", "e", "tag")), named(e=of("{0}", "e")))
    [found] = shapes_of(View("v", query))
    assert found.expansions == (
        Expansion("posexplode", "tags", ("__e0_0",), True, None, "a > 0"),
        Expansion("explode", "f(__e0_0)", ("__e1_0",), False, None, "__n0 = 0"),
    )
    assert (found.where, found.ordinals, found.columns) == ("__e1_0 <> __e0_0", 2, {"a", "tags"})
    assert found.outputs == (Output("e", "__e1_0"),)
