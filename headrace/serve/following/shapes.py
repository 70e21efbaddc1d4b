"""What a subscriber wants of a view's changes: some columns, of rows that pass some conditions.

A condition looks at the row of a change alone, so a subscriber that folds what passes holds the
rows of the view that pass. It must not matter whether a row was looked at here, in Arrow, or in the
store's SQL: nulls pass no comparison, NaN is greater than every number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import UsageError
from headrace.schema.relations import Named, Relation
from headrace.serve.reading.asked import read_selection
from headrace.store.asking import Compare, Condition, Selection

__all__ = ["Shape", "shape_of"]

_COMPARED = {
    Compare.EQUAL: pc.equal,
    Compare.UNEQUAL: pc.not_equal,
    Compare.LESS: pc.less,
    Compare.LESS_OR_EQUAL: pc.less_equal,
    Compare.GREATER: pc.greater,
    Compare.GREATER_OR_EQUAL: pc.greater_equal,
}
_TRUE_OF_NAN = (Compare.UNEQUAL, Compare.GREATER, Compare.GREATER_OR_EQUAL)


@dataclass(frozen=True)
class Shape:
    """Columns and conditions over one relation; equal shapes share what is encoded."""

    relation: Relation
    columns: tuple[Named, ...]
    conditions: tuple[Condition, ...] = ()

    @cached_property
    def selection(self) -> Selection:
        """The same as a question to the store."""
        return Selection(self.columns, self.conditions)

    @cached_property
    def _hash(self) -> int:
        return hash((self.columns, self.conditions))

    def __hash__(self) -> int:
        return self._hash

    def matching(self, rows: pa.Table) -> pa.Table:
        """Return the changes whose rows pass."""
        for each in self.conditions:
            rows = rows.filter(_test(rows[each.column.name], each))
        return rows


def _test(column: pa.ChunkedArray, condition: Condition) -> pa.ChunkedArray:
    if condition.value is None:
        is_null = pc.is_null(column)
        return is_null if condition.compare is Compare.EQUAL else pc.invert(is_null)
    value = pa.scalar(condition.value, type=column.type)
    found = _COMPARED[condition.compare](column, value)
    if pa.types.is_floating(column.type) and condition.compare in _TRUE_OF_NAN:
        return pc.or_(found, pc.is_nan(column))
    return found


def shape_of(relation: Relation, where: Sequence[str], columns: Sequence[str]) -> Shape:
    """Return the shape that a request asks for. UsageError: says what there is."""
    for text in where:
        if text.lower().startswith(("_closed", "_events")):
            raise UsageError(
                f"where={text[:100]!r}: changes are chosen by the columns of the view's "
                f"definition; each says whether its row is closed"
            )
    selection = read_selection(relation.columns, where=where, chosen=columns)
    return Shape(relation, selection.columns, selection.conditions)
