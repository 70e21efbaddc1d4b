"""Functions over merged values as Spark computes them with ANSI on, said in DuckDB's SQL."""

from collections.abc import Mapping, Sequence

from headrace.plan.finals.decimals import digits_of
from headrace.plan.terms import Operator
from headrace.schema.types import DataType, parse_type
from headrace.store.duckdb.expressions.casts import cast_text, float_text, held, plain_cast
from headrace.store.duckdb.expressions.groups import GROUPS
from headrace.store.duckdb.expressions.letting import let
from headrace.store.duckdb.expressions.texts import TEXTS
from headrace.store.duckdb.expressions.times import TIMES
from headrace.store.duckdb.expressions.values import Say, Value

__all__ = ["FUNCTIONS", "Value"]

_DOUBLE, _BIGINT = parse_type("DOUBLE"), parse_type("BIGINT")
#: From here on every DOUBLE is a whole number, and rounds to itself.
_ALL_WHOLE = "1e15"


def _unless_zero(other: str, text: str) -> str:
    """Return a division that is NULL where it is by zero; failing.py tells where that fails."""
    return f"CASE WHEN {other} <> 0 THEN {text} END"


def _is_fraction(type: DataType | None) -> bool:
    return type is not None and type.kind in ("FLOAT", "DOUBLE")


def _as(value: Value, to: DataType) -> str:
    return value.text if value.type in (None, to) else f"({cast_text(value.text, value.type, to)})"


def _divided(values: Sequence[Value], type: DataType) -> str:
    if type.kind == "DECIMAL":
        return _exactly_divided(values, type)
    # By zero DuckDB would answer infinity.
    return let(
        [_as(each, _DOUBLE) for each in values],
        lambda one, other: _unless_zero(other, f"{one} / {other}"),
    )


def _exactly_divided(values: Sequence[Value], type: DataType) -> str:
    """Return the quotient of exact numbers, rounded HALF_UP: a long division of whole numbers."""
    scales = [digits_of(each.type)[1] for each in values if each.type is not None]
    precisions = [digits_of(each.type)[0] for each in values if each.type is not None]
    shift = 10 ** (type.scale - scales[0] + scales[1])
    by_parts = precisions[1] + type.scale - scales[0] + scales[1] <= 38

    def divide(one: str, other: str) -> str:
        if by_parts:  # the dividend times the shift may be too long
            whole = f"({one} // {other}) * {shift}::HUGEINT"
            rest = f"({one} % {other}) * {shift}::HUGEINT"
            quotient = f"({whole} + ({rest}) // {other})"
            left = f"(({rest}) % {other})"
        else:
            quotient = f"(({one} * {shift}::HUGEINT) // {other})"
            left = f"(({one} * {shift}::HUGEINT) % {other})"
        return f"{quotient} + CASE WHEN {left} >= {other} - {left} THEN 1 ELSE 0 END"

    def whole(one: str, other: str) -> str:
        sign = f"CASE WHEN ({one} < 0) <> ({other} < 0) THEN -1 ELSE 1 END"
        quotient = f"({sign}) * ({divide(f'abs({one})', f'abs({other})')})"
        return _unless_zero(other, quotient)

    unscaled = [_unscaled(each, scale) for each, scale in zip(values, scales, strict=True)]
    quotient = let(unscaled, whole, always=True)
    return let([quotient], lambda whole: _pointed(whole, type.scale, type))


def _unscaled(value: Value, scale: int) -> str:
    """Return an exact number without its point, as a whole number."""
    assert value.type is not None
    precision, own = digits_of(value.type)
    if value.type.is_integer and not scale:
        return f"CAST({value.text} AS HUGEINT)"
    wide = f"CAST({value.text} AS DECIMAL({min(38, precision + scale - own)},{scale}))"
    return f"CAST(replace(CAST({wide} AS VARCHAR), '.', '') AS HUGEINT)"


def _remainder(values: Sequence[Value], type: DataType) -> str:
    if _is_fraction(type):
        texts = [_as(each, _DOUBLE) for each in values]
    elif type.kind == "DECIMAL":
        scale = max(digits_of(each.type)[1] for each in values if each.type is not None)
        texts = [_unscaled(each, scale) for each in values]
    else:
        texts = [_as(each, _BIGINT) for each in values]

    def rest(one: str, other: str) -> str:
        # DuckDB fails on the least BIGINT by -1.
        plain = f"{one} % {other}"
        if type.is_integer:
            plain = f"CASE WHEN {other} = -1 THEN {one} - {one} ELSE {one} % {other} END"
        return _unless_zero(other, plain)

    text = let(texts, rest)
    if type.kind == "DECIMAL":
        return let([text], lambda whole: _pointed(whole, scale, type))
    return held(plain_cast(text, type), type)


def _pointed(whole: str, scale: int, type: DataType) -> str:
    """Return a whole number with so many decimals as a decimal."""
    digits = f"lpad(CAST(abs({whole}) AS VARCHAR), 39, '0')"
    sign = f"CASE WHEN {whole} < 0 THEN '-' ELSE '' END"
    point = f"({digits}[: 39 - {scale}] || '.' || {digits}[40 - {scale} :])"
    return f"CAST({sign} || {point} AS {type.duckdb})"


def _positive_remainder(values: Sequence[Value], type: DataType) -> str:
    one, other = (each.text for each in values)
    return held(plain_cast(f"(({one} % {other}) + {other}) % {other}", type), type)


def _integer_divided(values: Sequence[Value], type: DataType) -> str:
    scale = max((digits_of(each.type)[1] for each in values if each.type), default=0)
    return plain_cast(
        let(
            [_unscaled(each, scale) for each in values],
            lambda one, other: _unless_zero(other, f"{one} // {other}"),
        ),
        type,
    )


def _computed(sign: str) -> Say:
    """Return how a sum, a difference or a product is said: rounded where Spark rounds it."""

    def say(values: Sequence[Value], type: DataType) -> str:
        if _is_fraction(type):
            one, other = (_as(each, _DOUBLE) for each in values)
            text = f"{one} {sign} {other}"
            return float_text(text) if type.kind == "FLOAT" else text
        if type.kind == "DECIMAL":
            # DuckDB takes as many digits as the operands have, and fails on more.
            scales = [digits_of(each.type)[1] if each.type else 0 for each in values]
            wide = [scale if sign == "*" else type.scale for scale in scales]
            one, other = (
                f"CAST({each.text} AS DECIMAL(38,{scale}))"
                for each, scale in zip(values, wide, strict=True)
            )
            return plain_cast(f"{one} {sign} {other}", type)
        # What does not fit is NULL; failing.py tells where that fails.
        one, other = (f"CAST({each.text} AS HUGEINT)" for each in values)
        return held(plain_cast(f"{one} {sign} {other}", type, gently=True), type)

    return say


def _rounded(values: Sequence[Value], type: DataType) -> str:
    value = values[0]
    assert value.type is not None
    places = int(values[1].text) if len(values) > 1 else 0
    if value.type.is_integer:
        return held(plain_cast(value.text, type), type)
    if value.type.kind == "DECIMAL":
        rounded = value.text if places >= value.type.scale else f"round({value.text}, {places})"
        return plain_cast(rounded, type)
    kind = value.type.duckdb

    def say(text: str) -> str:
        digits = f"CAST(CAST({text} AS {kind}) AS VARCHAR)"
        rounded = f"CAST(CAST(CAST({digits} AS DECIMAL(38,{places})) AS VARCHAR) AS {kind})"
        return f"CASE WHEN abs({text}) < {_ALL_WHOLE} THEN {rounded} ELSE {text} END"

    return held(plain_cast(let([value.text], say), type), type)


def _to_whole(function: str) -> Say:
    def say(values: Sequence[Value], type: DataType) -> str:
        value = values[0]
        assert value.type is not None
        if not _is_fraction(value.type):
            whole = value.text if value.type.is_integer else f"{function}({value.text})"
            return held(plain_cast(whole, type), type)
        # As Java converts: the nearest there is, and 0 for NaN.
        return let(
            [value.text],
            lambda x: (
                f"CASE WHEN isnan({x}) THEN 0 WHEN {x} >= 2.0::DOUBLE ** 63 "
                f"THEN 9223372036854775807 WHEN {x} <= -(2.0::DOUBLE ** 63) "
                f"THEN -9223372036854775808 ELSE CAST({function}({x}) AS BIGINT) END"
            ),
        )

    return say


def _sign(values: Sequence[Value], _type: DataType) -> str:
    return let(
        [_as(values[0], _DOUBLE)],
        lambda x: (
            f"CASE WHEN isnan({x}) OR {x} = 0 THEN {x} WHEN {x} > 0 THEN 1.0::DOUBLE "
            f"WHEN {x} < 0 THEN -1.0::DOUBLE END"
        ),
    )


def _called(function: str) -> Say:
    def say(values: Sequence[Value], type: DataType) -> str:
        return f"{function}({', '.join(_as(each, type) for each in values)})"

    return say


def _bits(sign: str) -> Say:
    def say(values: Sequence[Value], type: DataType) -> str:
        one, other = (_as(each, type) for each in values)
        text = f"xor({one}, {other})" if sign == "^" else f"{one} {sign} {other}"
        return held(plain_cast(text, type), type)

    return say


def _if_not_null(values: Sequence[Value], type: DataType) -> str:
    then, otherwise = (_as(each, type) for each in values[1:])
    return f"CASE WHEN {values[0].text} IS NOT NULL THEN {then} ELSE {otherwise} END"


def _if_nan(values: Sequence[Value], type: DataType) -> str:
    one, other = (_as(each, type) for each in values)
    return let([one], lambda x: f"CASE WHEN isnan({x}) THEN {other} ELSE {x} END")


def _null_if(values: Sequence[Value], type: DataType) -> str:
    return held(plain_cast(f"nullif({values[0].text}, {values[1].text})", type), type)


_NUMBERS: Mapping[Operator, Say] = {
    Operator.ADD: _computed("+"),
    Operator.SUBTRACT: _computed("-"),
    Operator.MULTIPLY: _computed("*"),
    Operator.DIVIDE: _divided,
    Operator.TRY_DIVIDE: _divided,
    Operator.REMAINDER: _remainder,
    Operator.TRY_REMAINDER: _remainder,
    Operator.POSITIVE_REMAINDER: _positive_remainder,
    Operator.INTEGER_DIVIDE: _integer_divided,
    Operator.TRY_ADD: _computed("+"),
    Operator.TRY_SUBTRACT: _computed("-"),
    Operator.TRY_MULTIPLY: _computed("*"),
    Operator.ROUND: _rounded,
    Operator.FLOOR: _to_whole("floor"),
    Operator.CEILING: _to_whole("ceil"),
    Operator.SIGN: _sign,
    Operator.SQUARE_ROOT: lambda values, _type: f"sqrt({_as(values[0], _DOUBLE)})",
    Operator.BIT_AND: _bits("&"),
    Operator.BIT_OR: _bits("|"),
    Operator.BIT_XOR: _bits("^"),
    Operator.BIT_NOT: lambda values, to: held(plain_cast(f"~{values[0].text}", to), to),
    Operator.COALESCE: _called("coalesce"),
    Operator.GREATEST: _called("greatest"),
    Operator.LEAST: _called("least"),
    Operator.NULL_IF: _null_if,
    Operator.IF_NOT_NULL: _if_not_null,
    Operator.IF_NAN: _if_nan,
    Operator.IS_NAN: lambda values, _type: f"coalesce(isnan({values[0].text}), false)",
}
#: How each operator is said that is not an infix of DuckDB's own.
FUNCTIONS: Mapping[Operator, Say] = {**_NUMBERS, **TEXTS, **TIMES, **GROUPS}
