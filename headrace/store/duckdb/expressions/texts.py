"""Functions of texts as Spark computes them, said in DuckDB's SQL."""

from collections.abc import Mapping, Sequence

from headrace.plan.terms import Operator
from headrace.schema.types import DataType, parse_type
from headrace.store.duckdb.expressions.casts import cast_text, counting
from headrace.store.duckdb.expressions.letting import let
from headrace.store.duckdb.expressions.values import Say, Value

__all__ = ["TEXTS"]

_STRING = parse_type("STRING")


def _shown(value: Value) -> str:
    is_text = value.type in (None, _STRING)
    return value.text if is_text else f"({cast_text(value.text, value.type, _STRING)})"


def _called(function: str, *more: str) -> Say:
    def say(values: Sequence[Value], _type: DataType) -> str:
        return f"{function}({', '.join([*(each.text for each in values), *more])})"

    return say


def _counted(function: str) -> Say:
    def say(values: Sequence[Value], type: DataType) -> str:
        arguments = ", ".join(each.text for each in values)
        return f"CAST({function}({arguments}) AS {type.duckdb})"

    return say


def _substring(values: Sequence[Value], _type: DataType) -> str:
    """Return a part of a text: places are cut to the text only after the end is known."""
    text, place = values[0].text, counting(values[1].text)
    length = counting(values[2].text) if len(values) > 2 else "2147483647"

    def say(text: str, place: str, length: str) -> str:
        start = (
            f"CASE WHEN {place} > 0 THEN {place} - 1 WHEN {place} < 0 "
            f"THEN length({text}) + {place} WHEN {place} = 0 THEN 0 END"
        )
        first, end = f"({_from_zero(start)})", f"({start}) + {length}"
        return f"substring({text}, {first} + 1, {_from_zero(f'({end} - {first})')})"

    return let([text, place, length], say)


def _from_zero(number: str) -> str:
    """Return a number, or 0 if it is less; unlike `greatest`, NULL is NULL."""
    return f"CASE WHEN ({number}) < 0 THEN 0 ELSE ({number}) END"


def _end(side: str) -> Say:
    def say(values: Sequence[Value], _type: DataType) -> str:
        count = let([counting(values[1].text)], _from_zero)
        return f"{side}({values[0].text}, {count})"

    return say


def _padded(side: str) -> Say:
    def say(values: Sequence[Value], _type: DataType) -> str:
        pad = values[2].text if len(values) > 2 else "' '"

        def pads(text: str, length: str, pad: str) -> str:
            return (
                f"CASE WHEN {pad} IS NULL THEN NULL WHEN {pad} = '' OR {length} <= length({text}) "
                f"THEN left({text}, {_from_zero(length)}) ELSE {side}({text}, {length}, {pad}) END"
            )

        return let([values[0].text, f"CAST({values[1].text} AS INTEGER)", pad], pads)

    return say


def _replaced(values: Sequence[Value], _type: DataType) -> str:
    new = values[2].text if len(values) > 2 else "''"
    return f"replace({values[0].text}, {values[1].text}, {new})"


TEXTS: Mapping[Operator, Say] = {
    Operator.CONCATENATE: lambda values, _type: " || ".join(map(_shown, values)),
    Operator.JOIN_TEXTS: lambda values, _type: f"concat_ws({', '.join(map(_shown, values))})",
    Operator.LENGTH: _counted("length"),
    Operator.SUBSTRING: _substring,
    Operator.LEFT: _end("left"),
    Operator.RIGHT: _end("right"),
    Operator.PAD_LEFT: _padded("lpad"),
    Operator.PAD_RIGHT: _padded("rpad"),
    Operator.TRIM: _called("trim", "' '"),
    Operator.TRIM_LEFT: _called("ltrim", "' '"),
    Operator.TRIM_RIGHT: _called("rtrim", "' '"),
    Operator.REPLACE: _replaced,
    Operator.REPEAT: lambda values, _type: f"repeat({values[0].text}, {counting(values[1].text)})",
    Operator.POSITION: _counted("strpos"),
    Operator.CONTAINS: _called("contains"),
    Operator.STARTS_WITH: _called("starts_with"),
    Operator.ENDS_WITH: _called("ends_with"),
    Operator.LIKE: lambda values, _type: f"{values[0].text} LIKE {values[1].text}",
    Operator.MD5: lambda values, _type: f"md5({values[0].text})",
    Operator.SHA1: lambda values, _type: f"sha1({values[0].text})",
    Operator.SHA256: lambda values, _type: f"sha256({values[0].text})",
}
