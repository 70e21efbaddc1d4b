"""The shape of a view over one stream: what the planner makes of its nodes.

All linear nodes are folded into the one SELECT that a turn asks of Spark: a `Project` is written
out where its columns are read, and what several `Filter`s ask is asked in their order, of records
that the ones before took. So an expression of a `Project` that no node asks for never fails, and
one behind a `Filter` is asked of no record that it left out.

Over an `Aggregate`, a value that follows from the keys is computed by Spark, as a *derived key*:
it is the same for all of a group, so one more key makes no other groups. (The plan refuses it over
a FLOAT or DOUBLE, which has two zeros.) What is over aggregates is computed by the store.

Texts are Spark SQL. Which names they may use:
- `where`, `time`, keys, calls, and the outputs of a shape without grouping: columns of the stream
  and `__watermark`; keys also `window.start`, `window.end` and `window.time`.
- outputs and `having` of a grouped shape: the names of its keys (`k0`, ...) and calls (`a0`, ...),
  `window_start`, `window_end` and `window_time`.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from headrace.errors import DefinitionError
from headrace.model import nodes
from headrace.model.definitions import View
from headrace.model.graph import streams_of
from headrace.model.nodes import WATERMARK, WINDOW_COLUMNS, Window, call_column, key_column
from headrace.model.scalars import Scalar, columns_of
from headrace.plan.finals import derive_calls
from headrace.plan.refusals import refuse
from headrace.plan.spark.names import text_of

__all__ = ["WINDOW_NAMES", "Call", "Key", "Output", "Shape", "shape_of"]

_LITERAL = re.compile(
    r"""true|false|-?\ ?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|'(\\.|[^'\\])*'|"(\\.|[^"\\])*\"""",
    re.IGNORECASE | re.DOTALL,
)
#: What the columns of a window are called in a shape.
WINDOW_NAMES = dict(zip(WINDOW_COLUMNS, ("window_start", "window_end", "window_time"), strict=True))


@dataclass(frozen=True)
class Key:
    """One grouping expression; of a derived one, `over` names the keys it follows from."""

    name: str
    expression: str
    derived: bool = False
    over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """One aggregate call; `argument` is None for count(*).

    An argument is evaluated for the records that the condition is true for, and for no others.
    """

    name: str
    function: str
    argument: str | None
    by: str | None = None  # what min_by and max_by order by
    parameters: tuple[str, ...] = ()  # literals: how many values to keep, which percentile
    ignores_nulls: bool = False  # of first and last
    condition: str | None = None  # FILTER (WHERE ...)


@dataclass(frozen=True)
class Output:
    """One column of the view."""

    name: str
    expression: str


@dataclass(frozen=True)
class Shape:
    """SELECT over one stream."""

    stream: str
    columns: frozenset[str]  # of the stream, that anything reads
    where: str | None
    grouped: bool
    window: Window | None
    time: str | None  # what the window is over; None: the event time itself
    keys: tuple[Key, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Output, ...]
    having: str | None = None


@dataclass(frozen=True)
class _Linear:
    """Linear nodes over another node: the conditions of Filters, and columns, all over that."""

    below: nodes.Node
    conditions: tuple[Scalar, ...] = ()
    columns: tuple[nodes.Named, ...] | None = None  # None: those of the node below

    def over(self, scalar: Scalar) -> Scalar:
        """Return an expression over these columns as one over the node below."""
        if self.columns is None:
            return scalar
        return scalar.substitute({column.name: column.scalar for column in self.columns})


@lru_cache(maxsize=1024)
def shape_of(view: View) -> Shape:
    """Return the shape of a view. DefinitionError: no turn can maintain such a view yet."""
    streams = streams_of(view.query)
    if len(streams) != 1:
        raise _refuse(view, f"a view over several streams ({', '.join(streams)})")
    top = _fold(view.query)
    if isinstance(top.below, nodes.Aggregate):
        return _Groups(view, top, top.below).shape()
    _refuse_unbuilt(view, top.below)
    outputs = _outputs(view, top)
    return Shape(
        streams[0],
        columns_of([*top.conditions, *(column.scalar for column in outputs)]) - {WATERMARK},
        _where(top.conditions),
        grouped=False,
        window=None,
        time=None,
        keys=(),
        calls=(),
        outputs=tuple(Output(column.name, text_of(column.scalar)) for column in outputs),
    )


def _fold(node: nodes.Node) -> _Linear:
    match node:
        case nodes.Filter():
            below = _fold(node.input)
            condition = below.over(node.condition)
            return replace(below, conditions=(*below.conditions, condition))
        case nodes.Project():
            below = _fold(node.input)
            columns = (replace(each, scalar=below.over(each.scalar)) for each in node.columns)
            return replace(below, columns=tuple(columns))
        case _:
            return _Linear(node)


def _refuse(view: View, what: str) -> DefinitionError:
    return refuse(view, f"{what} is not built yet")


def _refuse_unbuilt(view: View, node: nodes.Node) -> None:
    match node:
        case nodes.Union():
            raise _refuse(view, "UNION ALL")
        case nodes.Generate():
            raise _refuse(view, "a generator, which makes several rows of one record,")
        case nodes.AssignWindows():
            raise _refuse(view, "a window function in FROM without GROUP BY")
        case nodes.Aggregate():
            raise _refuse(view, "an aggregate over an aggregate")


def _outputs(view: View, top: _Linear) -> tuple[nodes.Named, ...]:
    if top.columns is None:
        raise _refuse(view, "a query without a list of outputs")
    return top.columns


def _where(conditions: tuple[Scalar, ...]) -> str | None:
    """Return what all conditions ask together, each of the records that the ones before took."""
    if not conditions:
        return None
    *before, text = map(text_of, conditions)
    for condition in reversed(before):
        # Not AND: Spark may work out both of its sides before either is asked.
        text = f"CASE WHEN {condition} THEN {text} END"
    return text


class _Groups:
    """The keys of a grouped view, as they are found: its own, then the derived ones."""

    def __init__(self, view: View, top: _Linear, aggregate: nodes.Aggregate) -> None:
        self.view = view
        self.top = top
        self.aggregate = aggregate
        self.below = _fold(aggregate.input)
        _refuse_unbuilt(view, self.below.below)
        # What a key reads of the window is no column of what is below.
        self.scalars = [self.below.over(key) for key in aggregate.keys]
        self.keys = [Key(f"k{at}", text_of(each)) for at, each in enumerate(self.scalars)]
        self.names = {key_column(at): key.name for at, key in enumerate(self.keys)}
        self.own = dict(zip(self.names, self.scalars, strict=True))
        self.calls = {call_column(at): f"a{at}" for at in range(len(aggregate.calls))}
        window = aggregate.window
        self.times = (
            () if window is None or window.time is None else (self.below.over(window.time),)
        )

    def shape(self) -> Shape:
        """Return the shape of the view."""
        aggregate = self.aggregate
        outputs = tuple(
            Output(each.name, self._over_groups(each.scalar))
            for each in _outputs(self.view, self.top)
        )
        kept = [self._over_groups(condition) for condition in self.top.conditions]
        having = kept[0] if len(kept) == 1 else " AND ".join(f"({each})" for each in kept)
        calls = [self._call(at, call) for at, call in enumerate(aggregate.calls)]
        return Shape(
            streams_of(aggregate)[0],
            columns_of(self._asked()) - {WATERMARK, *WINDOW_COLUMNS},
            _where(self.below.conditions),
            grouped=True,
            window=aggregate.window,
            time=next(map(text_of, self.times), None),
            keys=tuple(self.keys),
            calls=tuple(calls),
            outputs=outputs,
            having=having or None,
        )

    def _asked(self) -> list[Scalar]:
        """Return every expression that is asked of a record, over columns of the stream."""
        asked = [*self.below.conditions, *self.times, *self.scalars]
        for call in self.aggregate.calls:
            conditions = [] if call.condition is None else [call.condition]
            asked += [self.below.over(each) for each in (*call.arguments, *conditions)]
        return asked

    def _call(self, number: int, call: nodes.Call) -> Call:
        texts = [text_of(self.below.over(each)) for each in call.arguments]
        condition = None if call.condition is None else self.below.over(call.condition)
        return Call(
            f"a{number}",
            call.function,
            texts[0] if texts else None,
            texts[1] if len(texts) > 1 else None,
            call.parameters,
            call.ignores_nulls,
            None if condition is None else text_of(condition),
        )

    def _over_groups(self, scalar: Scalar) -> str:
        """Return an expression over the aggregate's columns as one over names of the shape."""
        if scalar.name is None and not _LITERAL.fullmatch(scalar.render(str)):
            later = frozenset(self.calls) | self._edges_known_later()
            if later.isdisjoint(scalar.refs):
                return self._derive(scalar)
            try:
                scalar = derive_calls(scalar, later, self._derive)
            except ValueError as error:
                raise refuse(self.view, str(error)) from error
        return scalar.render(self._name)

    def _edges_known_later(self) -> frozenset[str]:
        """Return the window's columns where a record has several windows, or does not know its own.

        Spark computes nothing over them, and what the store does not compute either is refused.
        """
        window = self.aggregate.window
        if window is None or not (window.overlaps or window.gap_us is not None):
            return frozenset()
        return frozenset(WINDOW_NAMES)

    def _name(self, column: str) -> str:
        return (WINDOW_NAMES | self.calls | self.names).get(column, column)

    def _derive(self, scalar: Scalar) -> str:
        """Return the name of the key that Spark computes a value as, which follows from keys."""
        whole = scalar.substitute(self.own)
        if whole in self.scalars:
            return self.keys[self.scalars.index(whole)].name
        over = sorted(self.names[name] for name in scalar.refs if name in self.names)
        key = Key(f"k{len(self.keys)}", text_of(whole), derived=True, over=tuple(over))
        self.scalars.append(whole)
        self.keys.append(key)
        return key.name
