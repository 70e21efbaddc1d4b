"""Linear nodes, folded: what stands between a leaf and the node that reads its rows.

A tree of linear nodes is a list of *branches*, one for each leaf: a union is its branches, and what
stands above it stands in each of them. In a branch a `Project` is written out where its columns are
read, and conditions are asked in their order, of rows that the ones before took. A generator makes
other rows; what follows is asked of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headrace.model import nodes
from headrace.model.nodes import WINDOW_COLUMNS, Window
from headrace.model.scalars import Scalar

__all__ = ["Branch", "Expansion", "NoOutputs", "branches_of", "element_column", "ordinal_column"]


class NoOutputs(ValueError):
    """A union reads what does not say which columns it has, and in which order."""


def ordinal_column(number: int) -> str:
    """Return the column with the numbers of the elements that an expansion makes, from 0."""
    return f"__n{number}"


def element_column(number: int, place: int) -> str:
    """Return a column that an expansion makes."""
    return f"__e{number}_{place}"


@dataclass(frozen=True)
class Expansion:
    """Several rows of one: the elements of an argument, or the windows around a time.

    `conditions` are asked before it. `columns` are those that it makes, besides its ordinal.
    """

    function: str  # of nodes.GENERATORS, or "windows"
    argument: Scalar | None  # None: the event time
    columns: tuple[str, ...]
    outer: bool = False
    window: Window | None = None
    conditions: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Branch:
    """Linear nodes over one leaf, or over an aggregate: all expressions are over its columns.

    `conditions` are asked after the last expansion. `columns` says what the names above stand for;
    with `whole`, those that are not there are the columns of the node below.
    """

    below: nodes.Node
    expansions: tuple[Expansion, ...] = ()
    conditions: tuple[Scalar, ...] = ()
    columns: Mapping[str, Scalar] = field(default_factory=dict)
    whole: bool = True

    def over(self, scalar: Scalar) -> Scalar:
        """Return an expression over these columns as one over the node below."""
        return scalar.substitute(self.columns)

    def expand(self, expansion: Expansion, given: Mapping[str, str]) -> "Branch":
        """Return the branch with one expansion more; `given` maps names above to its columns."""
        made = {name: Scalar.column(column) for name, column in given.items()}
        return replace(
            self,
            expansions=(*self.expansions, replace(expansion, conditions=self.conditions)),
            conditions=(),
            columns={**self.columns, **made},
        )


def branches_of(node: nodes.Node) -> tuple[Branch, ...]:
    """Return the branches of a tree of linear nodes, in the order of its leaves. NoOutputs."""
    match node:
        case nodes.Filter():
            return tuple(
                replace(each, conditions=(*each.conditions, each.over(node.condition)))
                for each in branches_of(node.input)
            )
        case nodes.Project():
            return tuple(
                replace(
                    each,
                    columns={named.name: each.over(named.scalar) for named in node.columns},
                    whole=False,
                )
                for each in branches_of(node.input)
            )
        case nodes.Generate():
            return tuple(_generate(node, each) for each in branches_of(node.input))
        case nodes.AssignWindows():
            return tuple(_assign(node, each) for each in branches_of(node.input))
        case nodes.Union():
            return _unite([branches_of(each) for each in node.inputs])
        case _:
            return (Branch(node),)


def _generate(node: nodes.Generate, branch: Branch) -> Branch:
    number = len(branch.expansions)
    names, made = node.columns, []
    given: dict[str, str] = {}
    if node.function == "posexplode":
        given[names[0]], names = ordinal_column(number), names[1:]
    for place, name in enumerate(names):
        made.append(element_column(number, place))
        given[name] = made[-1]
    expansion = Expansion(node.function, branch.over(node.argument), tuple(made), node.outer)
    return branch.expand(expansion, given)


def _assign(node: nodes.AssignWindows, branch: Branch) -> Branch:
    number = len(branch.expansions)
    made = tuple(element_column(number, place) for place in range(len(WINDOW_COLUMNS)))
    time = None if node.window.time is None else branch.over(node.window.time)
    expansion = Expansion("windows", time, made, window=node.window)
    return branch.expand(expansion, dict(zip(WINDOW_COLUMNS, made, strict=True)))


def _unite(inputs: list[tuple[Branch, ...]]) -> tuple[Branch, ...]:
    """Return the branches of all inputs, under the names of the first one's columns."""
    if any(branch.whole for branches in inputs for branch in branches):
        raise NoOutputs
    names = list(inputs[0][0].columns)
    return tuple(
        replace(branch, columns=dict(zip(names, branch.columns.values(), strict=True)))
        for branches in inputs
        for branch in branches
    )
