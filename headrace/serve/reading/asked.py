"""What a reader asks for, from the texts of a request: conditions, order, columns, limit.

    where=country=NO      operators = != < <= > >=; null tests: where=country=null
    where=name='null'     in single quotes a text is taken as it is ('' is one quote)
    order=-n,minute       - is descending
    columns=a,"b,c"       in double quotes a name may have commas

A name is looked up among the columns that there are, so a text can name nothing else; names may
have any characters, operators too: the longest name that fits is taken.
"""

import csv
from collections.abc import Sequence

from headrace.errors import UsageError
from headrace.model.names import closest
from headrace.schema.relations import Named
from headrace.serve.reading.values import read_value
from headrace.store.asking import Compare, Condition, Order, Selection

__all__ = ["DEFAULT_LIMIT", "MAX_CONDITIONS", "MAX_LIMIT", "read_selection"]

DEFAULT_LIMIT = 1_000
MAX_LIMIT = 10_000
MAX_CONDITIONS = 32

_OPERATORS = sorted(Compare, key=lambda each: -len(each))  # <= before <


def read_selection(
    columns: Sequence[Named],
    *,
    where: Sequence[str] = (),
    order: Sequence[str] = (),
    chosen: Sequence[str] = (),
    limit: int | None = None,
    default: Sequence[Named] | None = None,
) -> Selection:
    """Return what is asked of a relation with these columns. UsageError: says what there is.

    `default` are the columns where none is chosen; all, unless it says otherwise.
    """
    if len(where) > MAX_CONDITIONS:
        raise UsageError(f"at most {MAX_CONDITIONS} conditions (`where`) are taken")
    named = [_find(columns, name) for text in chosen for name in _split(text)]
    found = tuple(named) or tuple(columns if default is None else default)
    if len({each.name for each in found}) < len(found):
        raise UsageError("a column is asked for twice in `columns`")
    return Selection(
        found,
        tuple(_condition(columns, text) for text in where),
        tuple(_order(columns, text) for each in order for text in _split(each)),
        limit,
    )


def _split(text: str) -> list[str]:
    try:
        [found] = list(csv.reader([text], strict=True)) or [[]]
    except (csv.Error, ValueError) as error:
        raise UsageError(f"{text[:100]!r} is no list of columns: {error}") from error
    return [each.strip() for each in found if each.strip()]


def _find(columns: Sequence[Named], name: str) -> Named:
    found = [each for each in columns if each.name == name]
    found = found or [each for each in columns if each.name.lower() == name.lower()]
    if not found:
        raise _unknown(columns, name)
    return found[0]


def _unknown(columns: Sequence[Named], name: str) -> UsageError:
    names = [each.name for each in columns]
    return UsageError(
        f"there is no column {name[:100]!r}{closest(name[:100], names)}; there are: "
        f"{', '.join(names)}"
    )


def _order(columns: Sequence[Named], text: str) -> Order:
    known = {each.name.lower() for each in columns}
    descending = text.startswith("-") and text.lower() not in known
    column = _find(columns, text[1:] if descending else text)
    if not column.type.is_orderable:
        raise UsageError(f"column {column.name} is {column.type.sql}, which has no order")
    return Order(column, descending)


def _condition(columns: Sequence[Named], text: str) -> Condition:
    for column in sorted(columns, key=lambda each: -len(each.name)):
        if text[: len(column.name)].lower() != column.name.lower():
            continue
        rest = text[len(column.name) :].lstrip()
        for compare in _OPERATORS:
            if rest.startswith(compare.value):
                return _compared(column, compare, rest[len(compare) :].strip())
    name = text
    for compare in _OPERATORS:
        name = name.partition(compare.value)[0]
    if name == text:
        raise UsageError(
            f"where={text[:100]!r} has no operator: write a column, one of = != < <= > >=, and a "
            f"value"
        )
    raise _unknown(columns, name.strip())


def _compared(column: Named, compare: Compare, text: str) -> Condition:
    if text.lower() == "null":
        if compare not in (Compare.EQUAL, Compare.UNEQUAL):
            raise UsageError(f"null has no order: write {column.name}=null or {column.name}!=null")
        return Condition(column, compare, None)
    if len(text) >= 2 and text[0] == text[-1] == "'":
        text = text[1:-1].replace("''", "'")
    return Condition(column, compare, read_value(column, text))
