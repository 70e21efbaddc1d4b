"""The shapes of a view: what the planner makes of its nodes, one shape for each of its branches.

All linear nodes of a branch (linear.py) are folded into the one SELECT that a turn asks of Spark.
So an expression of a `Project` that no node asks for never fails, and one behind a `Filter` is
asked of no record that it left out. The shapes of a view differ in what they ask of their records,
and in nothing else: all are merged into one table.

Over an `Aggregate`, a value that follows from the keys is computed by Spark, as a *derived key*:
it is the same for all of a group, so one more key makes no other groups. (The plan refuses it over
a FLOAT or DOUBLE, which has two zeros.) What is over aggregates is computed by the store, or by
Spark from merged rows.

Texts are Spark SQL. Which names they may use:
- `where`, `time`, expansions, keys, calls, and the outputs of a shape without grouping: columns of
  the fold's input (fold.py) and of the expansions before; keys also `window.start`, `window.end`
  and `window.time`.
- outputs and `having` of a grouped shape: the names of its keys (`k0`, ...) and calls (`a0`, ...),
  `window_start`, `window_end` and `window_time`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from headrace.errors import DefinitionError
from headrace.model import nodes
from headrace.model.definitions import View
from headrace.model.graph import streams_of
from headrace.model.nodes import WATERMARK, WINDOW_COLUMNS, Window, call_column, key_column
from headrace.model.scalars import Scalar, columns_of
from headrace.plan.finals import derive_calls, is_for_spark, naming_fault
from headrace.plan.linear import Branch, NoOutputs, branches_of
from headrace.plan.refusals import refuse
from headrace.plan.spark.names import text_of

__all__ = ["WINDOW_NAMES", "Call", "Expansion", "Key", "Output", "Shape", "shape_of", "shapes_of"]

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
class Expansion:
    """Several rows of one: the elements of an argument, or the windows around a time.

    `where` is asked before it. `columns` are those that it makes besides the elements' numbers.
    """

    function: str
    argument: str | None  # None: the event time
    columns: tuple[str, ...]
    outer: bool
    window: Window | None
    where: str | None


@dataclass(frozen=True)
class Shape:
    """SELECT over one stream: a branch of a view, the only one or the `branch`-th of `branches`."""

    stream: str
    columns: frozenset[str]  # of the stream and of its records, that an expression reads
    where: str | None
    grouped: bool
    window: Window | None
    time: str | None  # what the window is over; None: the event time itself
    keys: tuple[Key, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Output, ...]
    having: str | None = None
    expansions: tuple[Expansion, ...] = ()  # `where` is asked after the last of them
    branch: int = 0
    branches: int = 1
    ordinals: int = 0  # how many numbers of elements tell the rows of a record apart

    nth: int = 1  # which of the branches over its stream it is

    @property
    def input(self) -> str:
        """What its counters are of: the stream, with a number where several branches read it."""
        return self.stream if self.nth == 1 else f"{self.stream}#{self.nth}"

    @property
    def is_derived(self) -> bool:
        """Whether its rows are more than records, so that partition and offset do not name them."""
        return self.branches > 1 or self.ordinals > 0


def shape_of(view: View) -> Shape:
    """Return the first shape of a view: what all of them share can be asked of it."""
    return shapes_of(view)[0]


@lru_cache(maxsize=1024)
def shapes_of(view: View) -> tuple[Shape, ...]:
    """Return the shapes of a view. DefinitionError: no turn can maintain such a view yet."""
    try:
        tops = branches_of(view.query)
        if not isinstance(tops[0].below, nodes.Aggregate):
            _refuse_groups(view, tops)
            return _numbered(_plain(view, at, tops) for at in range(len(tops)))
        if len(tops) > 1:
            raise _refuse(view, "UNION ALL of grouped queries")
        [top] = tops
        if top.expansions:
            raise _refuse(view, "a generator over an aggregate")
        below = branches_of(tops[0].below.input)
    except NoOutputs as error:
        raise _refuse(view, "UNION ALL of queries without a list of outputs") from error
    _refuse_groups(view, below)
    return _numbered(_Groups(view, top, tops[0].below, below).shapes())


def _numbered(shapes: Iterable[Shape]) -> tuple[Shape, ...]:
    seen: Counter[str] = Counter()
    found: list[Shape] = []
    for shape in shapes:
        seen[shape.stream] += 1
        found.append(replace(shape, nth=seen[shape.stream]))
    return tuple(found)


def _refuse(view: View, what: str) -> DefinitionError:
    return refuse(view, f"{what} is not built yet")


def _refuse_groups(view: View, branches: tuple[Branch, ...]) -> None:
    if any(isinstance(branch.below, nodes.Aggregate) for branch in branches):
        raise _refuse(view, "an aggregate over an aggregate" if len(branches) == 1
                      else "UNION ALL of grouped queries")  # fmt: skip


def _plain(view: View, number: int, tops: tuple[Branch, ...]) -> Shape:
    top = tops[number]
    outputs = _outputs(view, top)
    read = _read(top, list(outputs.values()))
    if view.topic is not None and view.key is None:
        read |= {"_key"}  # of the record: it is the key of what is written
    return Shape(
        streams_of(top.below)[0],
        read,
        _where(top.conditions),
        grouped=False,
        window=None,
        time=None,
        keys=(),
        calls=(),
        outputs=tuple(Output(name, text_of(scalar)) for name, scalar in outputs.items()),
        expansions=_expansions(top),
        branch=number,
        branches=len(tops),
        ordinals=max(len(each.expansions) for each in tops),
    )


def _outputs(view: View, top: Branch) -> dict[str, Scalar]:
    if top.whole:
        raise _refuse(view, "a query without a list of outputs")
    return dict(top.columns)


def _read(branch: Branch, scalars: list[Scalar]) -> frozenset[str]:
    """Return the columns of the record that a branch reads, for itself and for these."""
    asked = [*scalars, *branch.conditions]
    for each in branch.expansions:
        asked += [*each.conditions, *([] if each.argument is None else [each.argument])]
    stamped = {WATERMARK, "_partition", "_offset", *WINDOW_COLUMNS}
    return frozenset(name for name in columns_of(asked) - stamped if not name.startswith("__"))


def _expansions(branch: Branch) -> tuple[Expansion, ...]:
    return tuple(
        Expansion(
            each.function,
            None if each.argument is None else text_of(each.argument),
            each.columns,
            each.outer,
            each.window,
            _where(each.conditions),
        )
        for each in branch.expansions
    )


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
    """The keys of a grouped view, as they are found: its own, then the derived ones.

    A key is an expression in every branch.
    """

    def __init__(
        self,
        view: View,
        top: Branch,
        aggregate: nodes.Aggregate,
        branches: tuple[Branch, ...],
    ) -> None:
        self.view = view
        self.top = top
        self.aggregate = aggregate
        self.branches = branches
        # What a key reads of the window is no column of what is below.
        self.scalars = [tuple(each.over(key) for each in branches) for key in aggregate.keys]
        self.derived: list[tuple[str, ...]] = []  # what each derived key follows from
        self.names = {key_column(at): f"k{at}" for at in range(len(aggregate.keys))}
        self.own = [
            dict(zip(self.names, scalars, strict=True))
            for scalars in zip(*self.scalars, strict=True)
        ] or [{} for _ in branches]
        self.calls = {call_column(at): f"a{at}" for at in range(len(aggregate.calls))}

    def shapes(self) -> tuple[Shape, ...]:
        """Return the shape of every branch."""
        outputs = tuple(
            Output(name, self._over_groups(scalar))
            for name, scalar in _outputs(self.view, self.top).items()
        )
        kept = [self._over_groups(condition) for condition in self.top.conditions]
        having = kept[0] if len(kept) == 1 else " AND ".join(f"({each})" for each in kept)
        return tuple(
            self._shape(number, branch, outputs, having or None)
            for number, branch in enumerate(self.branches)
        )

    def _shape(
        self, number: int, branch: Branch, outputs: tuple[Output, ...], having: str | None
    ) -> Shape:
        aggregate = self.aggregate
        window = aggregate.window
        time = None if window is None or window.time is None else branch.over(window.time)
        scalars = [each[number] for each in self.scalars]
        asked = [*scalars, *([] if time is None else [time])]
        for call in aggregate.calls:
            conditions = [] if call.condition is None else [call.condition]
            asked += [branch.over(each) for each in (*call.arguments, *conditions)]
        return Shape(
            streams_of(branch.below)[0],
            _read(branch, asked),
            _where(branch.conditions),
            grouped=True,
            window=window,
            time=None if time is None else text_of(time),
            keys=tuple(self._keys(scalars)),
            calls=tuple(_call(branch, at, call) for at, call in enumerate(aggregate.calls)),
            outputs=outputs,
            having=having,
            expansions=_expansions(branch),
            branch=number,
            branches=len(self.branches),
            ordinals=max(len(each.expansions) for each in self.branches),
        )

    def _keys(self, scalars: list[Scalar]) -> Iterator[Key]:
        own = len(self.aggregate.keys)
        for at, scalar in enumerate(scalars):
            over = self.derived[at - own] if at >= own else ()
            yield Key(f"k{at}", text_of(scalar), derived=at >= own, over=over)

    def _over_groups(self, scalar: Scalar) -> str:
        """Return an expression over the aggregate's columns as one over names of the shape."""
        if scalar.name is None and not _LITERAL.fullmatch(scalar.render(str)):
            later = frozenset(self.calls) | self._edges_known_later()
            if later.isdisjoint(scalar.refs):
                return self._derive(scalar)
            overlaps = self.aggregate.window is not None and self.aggregate.window.overlaps
            # What Spark evaluates of a merged row it evaluates as a whole.
            if not overlaps and is_for_spark(scalar, later):
                fault = naming_fault(scalar)
                if fault is not None:
                    raise refuse(self.view, fault)
            else:
                try:
                    scalar = derive_calls(scalar, later, self._derive)
                except ValueError as error:
                    if overlaps:
                        raise refuse(self.view, str(error)) from error
        return scalar.render(self._name)

    def _edges_known_later(self) -> frozenset[str]:
        """Return the window's columns where a record has several windows, or does not know its own.

        No record knows them, so they are known to merged rows only.
        """
        window = self.aggregate.window
        if window is None or not (window.overlaps or window.gap_us is not None):
            return frozenset()
        return frozenset(WINDOW_NAMES)

    def _name(self, column: str) -> str:
        return (WINDOW_NAMES | self.calls | self.names).get(column, column)

    def _derive(self, scalar: Scalar) -> str:
        """Return the name of the key that Spark computes a value as, which follows from keys."""
        whole = tuple(scalar.substitute(own) for own in self.own)
        if whole not in self.scalars:
            over = sorted(self.names[name] for name in scalar.refs if name in self.names)
            self.scalars.append(whole)
            self.derived.append(tuple(over))
        return f"k{self.scalars.index(whole)}"


def _call(branch: Branch, number: int, call: nodes.Call) -> Call:
    texts = [text_of(branch.over(each)) for each in call.arguments]
    condition = None if call.condition is None else branch.over(call.condition)
    return Call(
        f"a{number}",
        call.function,
        texts[0] if texts else None,
        texts[1] if len(texts) > 1 else None,
        call.parameters,
        call.ignores_nulls,
        None if condition is None else text_of(condition),
    )
