"""sum(x): exact over integers and decimals, to 1e-12 of the sum of absolute values over DOUBLE.

The state of an exact sum has 38 digits, so a sum that passes BIGINT on its way and comes back is
right whatever the cut. (A BIGINT sum in Spark would fail in one cut and not in another.)

The state of a DOUBLE sum holds the sum of absolute values too, its *size*. Without it nobody could
tell a sum that lost a record from one whose values cancel out: of 1e16, 1, 1 and -1e16 one cut
makes 2, another 0, and both are right to 1e-16 of the size.

try_sum(x): the same, and null where the sum does not fit its type. What counts is the sum of all
values, not what any part of them adds up to.
"""

from headrace.aggregates.base import Aggregate, Arguments, State
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import DataType, parse_type

__all__ = ["MAX_SUM_DIGITS", "sum_state", "total", "total_or_null"]

#: A sum of p digits needs p + 10 in Spark and may use 38.
MAX_SUM_DIGITS = 28

_DOUBLE = "CAST({x} AS DOUBLE)"
_DOUBLE_SUM = State(
    parse_type("STRUCT<total: DOUBLE, size: DOUBLE>"),
    f"named_struct('total', sum({_DOUBLE}), 'size', sum(abs({_DOUBLE})))",
    Merge.ADD_SIZED,
)


def total(arguments: Arguments) -> Aggregate:
    """Return sum over an argument. ValueError: not a number, or a decimal too wide to be exact."""
    return _total("sum", Final.SUM, arguments.value)


def total_or_null(arguments: Arguments) -> Aggregate:
    """Return try_sum over an argument. ValueError: as sum does."""
    return _total("try_sum", Final.TRY_SUM, arguments.value)


def _total(function: str, final: Final, argument: DataType | None) -> Aggregate:
    state = sum_state(function, argument)
    assert argument is not None
    if argument.is_integer:
        return Aggregate((state,), final, parse_type("BIGINT"))
    if argument.kind == "DECIMAL":
        type = parse_type(f"DECIMAL({argument.precision + 10},{argument.scale})")
        return Aggregate((state,), final, type)
    return Aggregate((state,), Final.TOTAL, parse_type("DOUBLE"))


def sum_state(function: str, argument: DataType | None) -> State:
    """Return the state that adds an argument up."""
    if argument is None or not argument.is_numeric:
        found = "nothing" if argument is None else argument.sql
        raise ValueError(
            f"{function} needs a number, not {found}; write {function}(CAST(... AS DECIMAL(18,2)))"
        )
    if argument.is_integer:
        # Spark adds BIGINT with an overflow check, so it is widened first; smaller ones cannot
        # overflow within a turn.
        partial = "sum(CAST({x} AS DECIMAL(19,0)))" if argument.kind == "BIGINT" else "sum({x})"
        type = parse_type("DECIMAL(38,0)")
        return State(type, f"CAST({partial} AS DECIMAL(38,0))", Merge.ADD)
    if argument.kind == "DECIMAL":
        if argument.precision > MAX_SUM_DIGITS:
            raise ValueError(
                f"{function} over {argument.sql} may overflow; write "
                f"{function}(CAST(... AS DECIMAL({MAX_SUM_DIGITS},{argument.scale})))"
            )
        type = parse_type(f"DECIMAL(38,{argument.scale})")
        return State(type, f"CAST(sum({{x}}) AS {type.sql})", Merge.ADD)
    return _DOUBLE_SUM
