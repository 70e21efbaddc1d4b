"""GROUPING SETS, ROLLUP and CUBE: which sets of keys a GROUP BY asks for, and what they become.

Each record becomes a row per set, with the set's id: a `Generate` over the ids. A bit of the id is
set for each key that the set leaves out, the first key's the highest, as in Spark; a key of such a
row is null. The id is a key, too: a null of a set is not a null of the data.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, product

from sqlglot import exp

from headrace.model.nodes import Generate, Node
from headrace.model.scalars import Scalar
from headrace.sql.query.reading.trees import Tree

__all__ = [
    "GROUPING_ID",
    "GROUPING_SET",
    "MAX_KEYS",
    "GroupingSets",
    "has_sets",
    "members_of",
    "sets_of",
]

#: The columns that the generator makes: the set's id, and its number where an id stands twice.
GROUPING_ID = "_grouping_id"
GROUPING_SET = "_grouping_set"
#: Sets of one GROUP BY: so many rows are made of each record.
MAX_SETS = 1_024
MAX_KEYS = 62  # bits of a BIGINT

_KINDS = exp.GroupingSets | exp.Rollup | exp.Cube


def has_sets(parts: Sequence[exp.Expr]) -> bool:
    """Whether a part of GROUP BY asks for several sets of keys."""
    return any(isinstance(part, _KINDS) for part in parts)


def sets_of(
    tree: Tree, parts: Sequence[exp.Expr], look_up: Callable[[exp.Expr], exp.Expr | None]
) -> tuple[list[exp.Expr], list[list[exp.Expr]]]:
    """Return the keys of a GROUP BY, and all of its sets.

    Each part has sets of its own, and every choice of one of each part is a set of the whole.
    `look_up` returns what a name or a number stands for. Refused: there are too many.
    """
    choices = [[*_sets(tree, part)] for part in parts]
    count = 1
    for part, choice in zip(parts, choices, strict=True):
        count *= len(choice)
        if count > MAX_SETS:
            raise tree.refuse(part, _too_many(count))

    def looked_up(nodes: Iterable[exp.Expr]) -> list[exp.Expr]:
        return [found for node in nodes if (found := look_up(node)) is not None]

    first = [node for part in parts for node in part.args.get("keys") or ()]
    keys = looked_up([*first, *(node for choice in choices for each in choice for node in each)])
    sets = [looked_up(node for each in chosen for node in each) for chosen in product(*choices)]
    return keys, sets


def _too_many(count: int) -> str:
    return (
        f"this GROUP BY has {count:,} sets of keys or more, and each record counts in all of them; "
        f"at most {MAX_SETS:,} are possible, so name those that you need: GROUPING SETS ((a, b), "
        "(a), ())"
    )


def _sets(tree: Tree, node: exp.Expr) -> Iterator[list[exp.Expr]]:
    match node:
        case exp.GroupingSets():
            for each in node.expressions:
                yield from _sets(tree, each) if isinstance(each, _KINDS) else [_members(each)]
        case exp.Rollup():
            parts = [_members(each) for each in node.expressions]
            for length in range(len(parts), -1, -1):
                yield [member for part in parts[:length] for member in part]
        case exp.Cube():
            parts = [_members(each) for each in node.expressions]
            if 2 ** len(parts) > MAX_SETS:
                raise tree.refuse(node, _too_many(2 ** len(parts)))
            for length in range(len(parts), -1, -1):
                for chosen in combinations(parts, length):
                    yield [member for part in chosen for member in part]
        case _:
            yield [node]


def _members(node: exp.Expr) -> list[exp.Expr]:
    """Return the columns of one element, which may be in parentheses."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this] if isinstance(node, exp.Paren) else [node]


def members_of(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what the sets of a part of GROUP BY are made of; nothing for a plain part."""
    if isinstance(node, _KINDS):
        for each in node.expressions:
            yield from members_of(each) if isinstance(each, _KINDS) else _members(each)


class GroupingSets:
    """The sets of one aggregate, by the numbers of its keys."""

    def __init__(self, sets: Sequence[frozenset[int]], keys: int) -> None:
        self.sets = sets
        self.keys = keys

    @property
    def has_twins(self) -> bool:
        """Whether a set stands twice: then its rows do, too, as in Spark."""
        return len(set(self.sets)) < len(self.sets)

    def over(self, node: Node) -> Generate:
        """Return each row once per set."""
        ids = (sum(self._bit(key) for key in range(self.keys) if key not in each)
               for each in self.sets)  # fmt: skip
        argument = Scalar(f"array({', '.join(f'{each}L' for each in ids)})")
        if self.has_twins:
            return Generate(node, "posexplode", argument, (GROUPING_SET, GROUPING_ID))
        return Generate(node, "explode", argument, (GROUPING_ID,))

    def key(self, number: int, scalar: Scalar) -> Scalar:
        """Return a key as it is in each set: null where the set leaves it out."""
        if all(number in each for each in self.sets):
            return scalar
        condition = f"({{0}} & {self._bit(number)}L) = 0L"
        whole = Scalar(f"case when {condition} then {{1}} end", (GROUPING_ID, "key"))
        return whole.substitute({"key": scalar})

    def is_left_out(self, number: int) -> Scalar:
        """Return grouping(key): 1 where the set leaves it out, else 0."""
        condition = f"({{0}} & {self._bit(number)}L) = 0L"
        return Scalar(f"cast(case when {condition} then 0 else 1 end as tinyint)", (GROUPING_ID,))

    def _bit(self, number: int) -> int:
        return 1 << (self.keys - 1 - number)
