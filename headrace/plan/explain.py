"""Say what a fold will do, from the very value that runs: nothing is worked out a second time."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.plan.fold import Fold
from headrace.plan.shape import shape_of
from headrace.plan.spark.calls import call_text

__all__ = [
    "AggregatePlan",
    "Explanation",
    "StateColumn",
    "StoreText",
    "explain_fold",
    "explanation_text",
]


@dataclass(frozen=True)
class StoreText:
    """What a store makes of a table, in its own language: merges by column, and what is read."""

    merges: Mapping[str, str]
    select: str


@dataclass(frozen=True)
class StateColumn:
    """One column of an aggregate's state: made by Spark from a turn, merged by the store."""

    column: str
    type: str
    partial: str
    merge: str


@dataclass(frozen=True)
class AggregatePlan:
    """One aggregate call and the columns of its state; `items` is the table of its items."""

    name: str
    call: str
    states: tuple[StateColumn, ...]
    items: str | None = None


@dataclass(frozen=True)
class Explanation:
    """What a view does with a record, and where its rows are."""

    view: str
    version: str
    stream: str
    topic: str
    unique: str | None
    unique_within_us: int
    where: str | None
    window: dict[str, Any] | None
    panes: str | None
    pieces: str | None
    delay_us: int
    allowed_lateness_us: int | None
    late: str
    retention_us: int | None
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


def explain_fold(fold: Fold, store: StoreText) -> Explanation:
    """Return what a fold will do; `store` is what the store makes of its table."""
    query, table = shape_of(fold.view), fold.table
    partials = dict(fold.partials)
    aggregates = []
    items = {child.part.removeprefix("items_"): child for child in table.children}
    for call in query.calls:
        states = tuple(
            StateColumn(
                column.name, column.type.sql, partials[column.name], store.merges[column.name]
            )
            for column in items.get(call.name, table).values
            if column.name.rpartition("_")[0] == call.name
        )
        kept_in = items[call.name].name if call.name in items else None
        aggregates.append(AggregatePlan(call.name, call_text(call), states, kept_in))
    return Explanation(
        view=fold.name,
        version=fold.version,
        stream=fold.stream.name,
        topic=fold.stream.topic,
        unique=fold.stream.unique,
        unique_within_us=fold.stream.unique_within_us,
        where=query.where,
        window=None if query.window is None else asdict(query.window) | {"time": query.time},
        panes=_note(fold, "panes"),
        pieces=_note(fold, "pieces"),
        delay_us=fold.stream.delay_us,
        allowed_lateness_us=fold.view.lateness_us,
        late=fold.view.late,
        retention_us=fold.view.retention_us,
        keys={key.name: key.expression for key in query.keys},
        aggregates=tuple(aggregates),
        having=query.having,
        spark_query=fold.query,
        table=table.name,
        columns={column.name: column.type.sql for column in table.columns},
        public_select=store.select,
    )


def _note(fold: Fold, word: str) -> str | None:
    note = fold.placement.note
    return note[1] if note is not None and note[0] == word else None


def explanation_text(plan: dict[str, Any]) -> str:
    """Return an explanation, as `to_json` gives it, as lines for people."""
    return "\n".join(_lines(plan))


def _lines(plan: dict[str, Any]) -> Iterator[str]:
    yield f"view {plan['view']} @{plan['version']}"
    yield f"  reads      stream {plan['stream']}, topic {plan['topic']}"
    if plan["unique"]:
        within = _seconds(plan["unique_within_us"])
        yield f"  unique     {plan['unique']}, remembered for {within} of its partition's clock"
    yield f"  where      {plan['where'] or 'every record'}"
    yield from _window_lines(plan)
    for name, expression in plan["keys"].items():
        yield f"  key        {name} = {expression}"
    for aggregate in plan["aggregates"]:
        yield f"  aggregate  {aggregate['name']} = {aggregate['call']}"
        if aggregate["items"] is not None:
            yield f"    a row per item in headrace.{aggregate['items']}"
        for state in aggregate["states"]:
            yield f"    {state['column']} {state['type']}"
            yield f"      partial  {state['partial']}"
            yield f"      merge    {state['merge']}"
    if plan["having"]:
        yield f"  having     {plan['having']}"
    yield f"  spark      {plan['spark_query']}"
    columns = ", ".join(f"{name} {type}" for name, type in plan["columns"].items())
    yield f"  table      headrace.{plan['table']} ({columns})"
    yield f"  final      {plan['public_select']}"


def _window_lines(plan: dict[str, Any]) -> Iterator[str]:
    window = plan["window"]
    if window is None:
        yield "  window     none: no record is late"
        return
    text = f"{window['kind']}, {_seconds(window['size_us'])}"
    if window["kind"] == "session":
        text = f"session, records at most {_seconds(window['size_us'])} apart"
    elif window["kind"] != "tumbling":
        text += f", every {_seconds(window['slide_us'])}"
    if window["offset_us"]:
        text += f", from {_seconds(window['offset_us'])}"
    if window["zone"] is not None:
        text += f", days of {window['zone']}"
    if window["time"] is not None:
        text += f", over {window['time']}"
    yield f"  window     {text}"
    if plan["panes"] is not None:
        yield f"  panes      {plan['panes']}"
    if plan["pieces"] is not None:
        yield f"  pieces     {plan['pieces']}"
    lateness_us = plan["allowed_lateness_us"]
    if lateness_us is None:
        yield "  lateness   none: every record is folded, however late"
    else:
        yield _lateness_line(plan, window, lateness_us)
        where = (
            "are counted and no more" if plan["late"] == "drop" else f"go to {plan['view']}.late"
        )
        yield f"  late       records {where}"
    kept = plan["retention_us"]
    yield "  kept       " + ("for good" if kept is None else f"{_seconds(kept)} past the end")


def _lateness_line(plan: dict[str, Any], window: dict[str, Any], lateness_us: int) -> str:
    delay_us = plan["delay_us"]
    parts = f"delay {_seconds(delay_us)}, allowed lateness {_seconds(lateness_us)}"
    if window["kind"] == "session":
        gap_us = window["size_us"]
        past = _seconds(gap_us + delay_us + lateness_us)
        parts = f"gap {_seconds(gap_us)}, {parts}"
        return f"  lateness   late once the clock is {past} past a record ({parts})"
    past = _seconds(delay_us + lateness_us)
    return f"  lateness   closed to a record once the clock is {past} past its end ({parts})"


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1_000_000:g} s"
