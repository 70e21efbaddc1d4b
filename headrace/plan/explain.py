"""Say what a fold will do, from the very value that runs: nothing is worked out a second time."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from sqlglot import expressions as exp
from sqlglot import parse_one

from headrace.plan.fold import Fold

__all__ = ["AggregatePlan", "Explanation", "StateColumn", "explain_fold", "explanation_text"]


@dataclass(frozen=True)
class StateColumn:
    """One column of an aggregate's state: made by Spark from a turn, merged by the store."""

    column: str
    type: str
    partial: str
    merge: str


@dataclass(frozen=True)
class AggregatePlan:
    """One aggregate call and the columns of its state."""

    name: str
    call: str
    states: tuple[StateColumn, ...]


@dataclass(frozen=True)
class Explanation:
    """What a view does with a record, and where its rows are."""

    view: str
    version: str
    stream: str
    topic: str
    where: str | None
    window_us: int | None
    delay_us: int
    allowed_lateness_us: int
    keys: dict[str, str]
    aggregates: tuple[AggregatePlan, ...]
    having: str | None
    spark_query: str
    table: str
    columns: dict[str, str]
    public_select: str

    def to_json(self) -> dict[str, Any]:
        """Return the same under the same names, as JSON takes it."""
        return asdict(self)


def explain_fold(fold: Fold) -> Explanation:
    """Return what a fold will do."""
    query, table = fold.view.query, fold.table
    outer = parse_one(fold.query, read="spark")
    assert isinstance(outer, exp.Select)
    partials = {
        column.alias: column.this.sql(dialect="spark") for column in outer.selects if column.alias
    }
    aggregates = []
    for call in query.calls:
        states = tuple(
            StateColumn(column.name, column.type.sql, partials[column.name], column.merge or "")
            for column in table.states
            if column.name.rpartition("_")[0] == call.name
        )
        text = f"{call.function}({'*' if call.argument is None else call.argument})"
        aggregates.append(AggregatePlan(call.name, text, states))
    return Explanation(
        view=fold.name,
        version=fold.version,
        stream=fold.stream.name,
        topic=fold.stream.topic,
        where=query.where,
        window_us=None if query.window is None else query.window.size_us,
        delay_us=fold.stream.delay_us,
        allowed_lateness_us=fold.view.allowed_lateness_us,
        keys={key.name: key.expression for key in query.keys},
        aggregates=tuple(aggregates),
        having=query.having,
        spark_query=fold.query,
        table=table.name,
        columns={column.name: column.type.sql for column in table.columns},
        public_select=table.select,
    )


def explanation_text(plan: dict[str, Any]) -> str:
    """Return an explanation, as `to_json` gives it, as lines for people."""
    return "\n".join(_lines(plan))


def _lines(plan: dict[str, Any]) -> Iterator[str]:
    yield f"view {plan['view']} @{plan['version']}"
    yield f"  reads      stream {plan['stream']}, topic {plan['topic']}"
    yield f"  where      {plan['where'] or 'every record'}"
    if plan["window_us"] is None:
        yield "  window     none: no record is late"
    else:
        end = plan["delay_us"] + plan["allowed_lateness_us"]
        yield f"  window     tumbling, {_seconds(plan['window_us'])}"
        yield (
            f"  lateness   closed to a record once the clock is {_seconds(end)} past its end "
            f"(delay {_seconds(plan['delay_us'])}, "
            f"allowed lateness {_seconds(plan['allowed_lateness_us'])})"
        )
    for name, expression in plan["keys"].items():
        yield f"  key        {name} = {expression}"
    for aggregate in plan["aggregates"]:
        yield f"  aggregate  {aggregate['name']} = {aggregate['call']}"
        for state in aggregate["states"]:
            merge = state["merge"].format(old="old", new="new")
            yield f"    {state['column']} {state['type']}"
            yield f"      partial  {state['partial']}"
            yield f"      merge    {merge}"
    if plan["having"]:
        yield f"  having     {plan['having']}"
    yield f"  spark      {plan['spark_query']}"
    columns = ", ".join(f"{name} {type}" for name, type in plan["columns"].items())
    yield f"  table      headrace.{plan['table']} ({columns})"
    yield f"  final      {plan['public_select']}"


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1_000_000:g} s"
