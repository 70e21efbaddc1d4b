"""approx_count_distinct(x): about how many different values, from at most 4,096 rows of a group.

HyperLogLog: of a value's 64-bit hash (Spark's xxhash64) 12 bits choose a register, and it keeps
the longest run of zero bits, plus one, that the other 52 ended with. A register is a row here, so
two states merge like any table. The estimate is Ertl's (arXiv:1702.01284, improved raw estimator):
it needs no tables of measured bias and holds from one value on.

Error: a standard error of 1.6 % (1.04 / sqrt(4096)), so 5 % are hardly ever passed. The estimate
is a function of the set of values: no cut and no order changes it.
"""

from headrace.aggregates.base import Aggregate, Arguments, Items, State
from headrace.aggregates.distinct import check_single
from headrace.aggregates.words import Final, Merge
from headrace.schema.types import parse_type

__all__ = ["REGISTERS", "approx_count_distinct"]

_REGISTER_BITS = 12
REGISTERS = 1 << _REGISTER_BITS
_LONGEST_RUN = 64 - _REGISTER_BITS + 1  # of a hash whose other bits are all zero
_REST = f"shiftrightunsigned(xxhash64({{x}}), {_REGISTER_BITS})"
# Clears all but the lowest bit that is set, and counts the zeros below it.
_RUN = f"least(bit_count(({_REST} & -{_REST}) - 1) + 1, {_LONGEST_RUN})"
_PARTIAL = f"CAST(max(CASE WHEN {{x}} IS NOT NULL THEN {_RUN} END) AS SMALLINT)"


def approx_count_distinct(arguments: Arguments) -> Aggregate:
    """Return the estimate of distinct values. ValueError: values that have no hash of their own."""
    check_single("approx_count_distinct", arguments)
    register = (
        f"CASE WHEN {{x}} IS NOT NULL THEN CAST(xxhash64({{x}}) & {REGISTERS - 1} AS SMALLINT) END"
    )
    run = State(parse_type("SMALLINT"), _PARTIAL, Merge.GREATEST)
    items = Items(register, parse_type("SMALLINT"))
    return Aggregate((run,), Final.ESTIMATE_DISTINCT, parse_type("BIGINT"), items)
