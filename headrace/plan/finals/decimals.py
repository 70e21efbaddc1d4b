"""Which operations on decimals every store can do to the last digit, in 38 digits."""

from collections.abc import Sequence

from headrace.plan.terms import Operator
from headrace.schema.types import MAX_PRECISION, DataType

__all__ = ["MAX_NEGATED", "decimal_fault", "digits_of"]

#: Spark rounds what has more digits when it changes the sign.
MAX_NEGATED = 34
#: How many digits the values of the integer types have.
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
#: To how many decimals Spark rounds a quotient before it rounds it to those of its type.
_QUOTIENT_SCALE = 39


def digits_of(type: DataType) -> tuple[int, int]:
    """Return the precision and the scale of an exact number's type."""
    return (_DIGITS[type.kind], 0) if type.is_integer else (type.precision, type.scale)


def decimal_fault(
    operator: Operator, types: Sequence[DataType | None], result: DataType
) -> str | None:
    """Return why an operation on exact numbers takes more digits than there are; None: it fits."""
    known = [each for each in types if each is not None]
    if len(known) < len(types):
        return "NULL has no digits"
    (precision, scale), (divisor_precision, divisor_scale) = map(digits_of, known)
    if operator in (Operator.TRY_ADD, Operator.TRY_SUBTRACT, Operator.TRY_MULTIPLY):
        fits = result.precision < MAX_PRECISION
    elif operator in (Operator.ADD, Operator.SUBTRACT):
        fits = result.scale == max(scale, divisor_scale)  # else Spark rounds what does not fit
    elif operator is Operator.MULTIPLY:
        fits = result.scale == scale + divisor_scale
    elif operator is Operator.INTEGER_DIVIDE:
        # As in Spark, which does not notice a BIGINT that overflows here.
        fits = precision - scale + divisor_scale <= _DIGITS["BIGINT"] - 1
    elif operator is Operator.DIVIDE:
        shift = result.scale - scale + divisor_scale
        fits = (
            shift >= 0
            and min(precision, divisor_precision) + shift <= MAX_PRECISION
            # Spark rounds twice; with so few digits it comes to the same as rounding once.
            and divisor_precision + result.scale <= _QUOTIENT_SCALE
        )
        common = max(scale, divisor_scale)
        fits = fits and divisor_precision - divisor_scale + common <= MAX_PRECISION
    else:
        common = max(scale, divisor_scale)
        fits = (
            precision - scale + common <= MAX_PRECISION
            and divisor_precision - divisor_scale + common <= MAX_PRECISION
        )
    return None if fits else "the exact result takes more than 38 digits on the way"
