"""Functions of lists, maps and structs as Spark computes them, said in DuckDB's SQL."""

from collections.abc import Mapping, Sequence

from headrace.plan.terms import Operator
from headrace.schema.types import DataType
from headrace.store.duckdb.expressions.casts import cast_text, counting, held
from headrace.store.duckdb.expressions.letting import let
from headrace.store.duckdb.expressions.values import Say, Value
from headrace.store.duckdb.tables.names import quote

__all__ = ["GROUPS"]


def _as(value: Value, to: DataType) -> str:
    return value.text if value.type in (None, to) else cast_text(value.text, value.type, to)


def _list(values: Sequence[Value], type: DataType) -> str:
    items = ", ".join(_as(each, type.parts[0]) for each in values)
    return f"CAST([{items}] AS {type.duckdb})"


def _map(values: Sequence[Value], type: DataType) -> str:
    keys = ", ".join(_as(each, type.parts[0]) for each in values[::2])
    items = ", ".join(_as(each, type.parts[1]) for each in values[1::2])
    return f"CAST(MAP([{keys}], [{items}]) AS {type.duckdb})"


def _struct(values: Sequence[Value], type: DataType) -> str:
    fields = ", ".join(
        f"{quote(name)} := {_as(value, part)}"
        for name, value, part in zip(type.names, values, type.parts, strict=True)
    )
    return f"CAST(struct_pack({fields}) AS {type.duckdb})"


def _is_map(value: Value) -> bool:
    return value.type is not None and value.type.kind == "MAP"


def _item(values: Sequence[Value], type: DataType) -> str:
    group, key = values
    if _is_map(group):
        return held(f"map_extract_value({group.text}, {_key(group, key)})", type)
    return held(f"({group.text})[CAST({key.text} AS BIGINT) + 1]", type)


def _element(values: Sequence[Value], type: DataType) -> str:
    group, key = values
    if _is_map(group):
        return held(f"map_extract_value({group.text}, {_key(group, key)})", type)
    return held(f"({group.text})[CAST({key.text} AS BIGINT)]", type)


def _key(group: Value, key: Value) -> str:
    assert group.type is not None
    return f"CAST({key.text} AS {group.type.parts[0].duckdb})"


def _size(values: Sequence[Value], type: DataType) -> str:
    function = "cardinality" if _is_map(values[0]) else "len"
    return f"CAST({function}({values[0].text}) AS {type.duckdb})"


def _has(values: Sequence[Value], _type: DataType) -> str:
    group, item = values
    assert group.type is not None
    return let(
        [group.text, f"CAST({item.text} AS {group.type.parts[0].duckdb})"],
        lambda items, item: (
            f"CASE WHEN {items} IS NULL OR {item} IS NULL THEN NULL "
            f"WHEN list_contains({items}, {item}) THEN true "
            f"WHEN len(list_filter({items}, lambda y: y IS NULL)) > 0 THEN NULL ELSE false END"
        ),
    )


def _sorted(order: str, nulls: str) -> Say:
    def say(values: Sequence[Value], _type: DataType) -> str:
        return f"list_sort({values[0].text}, '{order}', '{nulls}')"

    return say


def _slice(values: Sequence[Value], _type: DataType) -> str:
    def say(items: str, place: str, length: str) -> str:
        first = f"(CASE WHEN {place} < 0 THEN len({items}) + {place} + 1 ELSE {place} END)"
        return (
            f"CASE WHEN {items} IS NULL OR {place} IS NULL OR {length} IS NULL THEN NULL "
            f"WHEN {first} < 1 OR {length} <= 0 THEN {items}[1:0] "
            f"ELSE {items}[{first} : {first} + {length} - 1] END"
        )

    texts = [values[0].text, *(counting(each.text) for each in values[1:])]
    return let(texts, say)


def _joined(values: Sequence[Value], _type: DataType) -> str:
    """Return the texts of a list as one; of nulls alone DuckDB would make null."""
    separator = values[1].text
    return let(
        [values[0].text],
        lambda items: (
            f"CASE WHEN {items} IS NOT NULL "
            f"THEN coalesce(array_to_string({items}, {separator}), '') END"
        ),
    )


GROUPS: Mapping[Operator, Say] = {
    Operator.LIST: _list,
    Operator.MAP: _map,
    Operator.STRUCT: _struct,
    Operator.FIELD: lambda values, to: held(
        f"struct_extract({values[0].text}, {values[1].text})", to
    ),
    Operator.SIZE: _size,
    Operator.ITEM: _item,
    Operator.ELEMENT: _element,
    Operator.TRY_ELEMENT: _element,
    Operator.HAS_ELEMENT: _has,
    Operator.JOIN_LIST: _joined,
    Operator.SORT: _sorted("ASC", "NULLS FIRST"),
    Operator.SORT_DESCENDING: _sorted("DESC", "NULLS LAST"),
    Operator.SORT_NULLS_LAST: _sorted("ASC", "NULLS LAST"),
    Operator.SLICE: _slice,
    Operator.KEYS: lambda values, _type: f"map_keys({values[0].text})",
    Operator.VALUES: lambda values, _type: f"map_values({values[0].text})",
}
