"""Casts as Spark does them with ANSI on, said in DuckDB's SQL."""

from headrace.schema.types import DataType, parse_type
from headrace.store.duckdb.expressions.letting import let

__all__ = [
    "cast_text", "counting", "float_text", "held", "moment_text", "naive_text", "plain_cast",
]  # fmt: skip

_WIDER = {
    "TINYINT": parse_type("INT"),
    "SMALLINT": parse_type("INT"),
    "FLOAT": parse_type("DOUBLE"),
}
#: A decimal of so many digits is a DOUBLE exactly before it is divided by a power of ten.
_EXACT_DIGITS = 15
#: From here on a DOUBLE rounds to no FLOAT but infinity: halfway between the greatest and the next.
_FLOAT_LIMIT = "340282356779733661637539395458142568448.0::DOUBLE"


def plain_cast(text: str, type: DataType | None, *, gently: bool = False) -> str:
    """Return a cast as DuckDB does it; one that is done `gently` is NULL where it fails."""
    word = "TRY_CAST" if gently else "CAST"
    return text if type is None else f"{word}({text} AS {type.duckdb})"


def held(text: str, type: DataType) -> str:
    """Return a value of a type in the one that it is held in; empty text: what it is if none."""
    if not text:
        return type.kind if type.kind in _WIDER else ""
    return plain_cast(text, _WIDER.get(type.kind))


def counting(text: str) -> str:
    """Return a whole number that counts items or characters; as in Spark it has to be an INT."""
    return f"CAST(CAST({text} AS INTEGER) AS BIGINT)"


def naive_text(text: str, type: DataType | None) -> str:
    """Return a DATE or TIMESTAMP as a time without a zone, in UTC."""
    if type is not None and type.kind == "DATE":
        return f"CAST({text} AS TIMESTAMP)"
    return f"make_timestamp(epoch_us({text}))"


def moment_text(naive: str) -> str:
    """Return a time without a zone as a TIMESTAMP."""
    return f"make_timestamptz(epoch_us({naive}))"


def cast_text(text: str, found: DataType | None, to: DataType, *, gently: bool = False) -> str:
    """Return a value of one type as another; `gently`, a number that does not fit is NULL."""
    if found is None or found.kind == "STRING":  # a text that is exact
        return held(plain_cast(text, to), to)
    if to.kind == "STRING":
        if found.kind in ("DATE", "TIMESTAMP"):
            return let([naive_text(text, found) if found.kind == "TIMESTAMP" else text], _dated)
        return f"CAST({text} AS VARCHAR)"
    if to.kind == "BOOLEAN":
        return f"({text}) <> 0" if found.kind != "BOOLEAN" else text
    if to.kind == "TIMESTAMP":
        return moment_text(naive_text(text, found)) if found.kind == "DATE" else text
    if to.kind == "DATE":
        return f"CAST({naive_text(text, found)} AS DATE)" if found.kind == "TIMESTAMP" else text
    if found.kind == "TIMESTAMP":
        return _seconds(text, to)
    if to.is_integer and found.kind in ("FLOAT", "DOUBLE"):
        return held(_truncated(text, to, gently), to)
    if to.is_integer and found.kind == "DECIMAL":
        return held(plain_cast(f"trunc({text})", to, gently=gently), to)
    if found.kind == "DECIMAL" and to.kind in ("FLOAT", "DOUBLE"):
        exact = found.precision <= _EXACT_DIGITS and to.kind == "DOUBLE"
        return held(plain_cast(text if exact else f"CAST({text} AS VARCHAR)", to), to)
    if found.kind in ("FLOAT", "DOUBLE") and to.kind == "DECIMAL":
        return let([text], lambda x: _decimal(x, to, gently))
    if to.kind == "FLOAT" and found.kind == "DOUBLE":
        return float_text(text)
    gently = gently and found.is_numeric and (to.is_integer or to.kind == "DECIMAL")
    return (
        held(plain_cast(text, to, gently=gently), to) if to.is_orderable else plain_cast(text, to)
    )


def _dated(time: str) -> str:
    """Return a time as text; other years than 1 to 9999 have a sign, and the one before 1 is 0."""
    plain = f"CAST({time} AS VARCHAR)"
    rest = f"regexp_replace({plain}, '^\\d+(-\\d\\d-\\d\\d)( \\(BC\\))?', '\\1')"
    sign = f"CASE WHEN year({time}) < 0 THEN '-' WHEN year({time}) > 9999 THEN '+' ELSE '' END"
    year = f"CAST(abs(year({time})) AS VARCHAR)"
    digits = f"CASE WHEN length({year}) < 4 THEN lpad({year}, 4, '0') ELSE {year} END"
    return (
        f"CASE WHEN year({time}) BETWEEN 1 AND 9999 THEN {plain} "
        f"ELSE {sign} || {digits} || {rest} END"
    )


def _decimal(text: str, to: DataType, gently: bool) -> str:
    """Return a DOUBLE as a decimal, of its shortest digits; what is no number is NULL, as in Spark.

    So is what is too large; failing.py tells that it fails. The limit is asked for by itself:
    DuckDB does not notice it in digits with an exponent.
    """
    return (
        f"CASE WHEN isfinite({text}) AND abs({text}) < 1e{to.precision - to.scale} "
        f"THEN {plain_cast(f'CAST({text} AS VARCHAR)', to, gently=gently)} END"
    )


def float_text(text: str) -> str:
    """Return a DOUBLE rounded to a FLOAT, which is infinite where it is too large."""
    return let(
        [text],
        lambda x: (
            f"CASE WHEN abs({x}) >= {_FLOAT_LIMIT} AND NOT isnan({x}) "
            f"THEN sign({x}) * 'infinity'::DOUBLE ELSE CAST(CAST({x} AS FLOAT) AS DOUBLE) END"
        ),
    )


def _truncated(text: str, to: DataType, gently: bool) -> str:
    plain = plain_cast(f"trunc({text})", to, gently=gently)
    if to.kind != "BIGINT":
        return plain
    # Spark compares with the greatest BIGINT as a DOUBLE, which is one more.
    return f"CASE WHEN ({text}) = 2.0::DOUBLE ** 63 THEN 9223372036854775807 ELSE {plain} END"


def _seconds(text: str, to: DataType) -> str:
    if to.kind == "DOUBLE":
        return f"CAST(epoch_us({text}) AS DOUBLE) / 1000000"
    return f"epoch_us(date_trunc('second', {naive_text(text, None)})) // 1000000"
