"""Functions of times as Spark computes them in UTC, said in DuckDB's SQL."""

from collections.abc import Mapping, Sequence

from headrace.model.functions import letters_of
from headrace.plan.terms import Operator
from headrace.schema.types import DataType
from headrace.store.duckdb.expressions.casts import moment_text, naive_text
from headrace.store.duckdb.expressions.values import Say, Value

__all__ = ["TIMES"]

#: What `strftime` calls the letters of a pattern.
_LETTERS = {
    "yyyy": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m", "dd": "%d",
    "d": "%-d", "EEEE": "%A", "EEE": "%a", "EE": "%a", "E": "%a", "HH": "%H", "H": "%-H",
    "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M", "ss": "%S", "s": "%-S", "SSSSSS": "%f",
    "SSS": "%g", "a": "%p", "DDD": "%j", "XXX": "Z",
}  # fmt: skip


def _naive(value: Value) -> str:
    return naive_text(value.text, value.type)


def _date(value: Value) -> str:
    is_date = value.type is not None and value.type.kind == "DATE"
    return value.text if is_date else f"CAST({_naive(value)} AS DATE)"


def _part(function: str, more: str = "") -> Say:
    def say(values: Sequence[Value], type: DataType) -> str:
        return f"CAST({function}({_naive(values[0])}){more} AS {type.duckdb})"

    return say


def _formatted(values: Sequence[Value], _type: DataType) -> str:
    pattern = values[1].text[1:-1].replace("''", "'")
    runs = letters_of(pattern)
    assert runs is not None
    format = "".join(_LETTERS[letters] if letters else text.replace("%", "%%")
                     for letters, text in runs)  # fmt: skip
    return f"strftime({_naive(values[0])}, '{format.replace(chr(39), chr(39) * 2)}')"


def _truncated(values: Sequence[Value], type: DataType) -> str:
    time, unit = values
    naive = f"date_trunc({unit.text}, {_naive(time)})"
    return f"CAST({naive} AS DATE)" if type.kind == "DATE" else moment_text(naive)


def _days(sign: str) -> Say:
    def say(values: Sequence[Value], _type: DataType) -> str:
        return f"{_date(values[0])} {sign} CAST({values[1].text} AS INTEGER)"

    return say


def _months(values: Sequence[Value], type: DataType) -> str:
    naive = f"{_naive(values[0])} + to_months(CAST({values[1].text} AS INTEGER))"
    return f"CAST({naive} AS DATE)" if type.kind == "DATE" else moment_text(naive)


def _microseconds(values: Sequence[Value], _type: DataType) -> str:
    return f"make_timestamptz(epoch_us({_naive(values[0])}) + {values[1].text}::BIGINT)"


def _since(unit: str, size: int) -> Say:
    def say(values: Sequence[Value], _type: DataType) -> str:
        # A whole number of them already: no division rounds.
        return f"epoch_us(date_trunc('{unit}', {_naive(values[0])})) // {size}"

    return say


def _from(size: int) -> Say:
    def say(values: Sequence[Value], _type: DataType) -> str:
        return f"make_timestamptz(CAST({values[0].text} AS BIGINT) * {size})"

    return say


TIMES: Mapping[Operator, Say] = {
    Operator.YEAR: _part("year"),
    Operator.QUARTER: _part("quarter"),
    Operator.MONTH: _part("month"),
    Operator.WEEK: _part("weekofyear"),
    Operator.DAY: _part("day"),
    Operator.DAY_OF_WEEK: _part("dayofweek", " + 1"),
    Operator.WEEKDAY: _part("isodow", " - 1"),
    Operator.DAY_OF_YEAR: _part("dayofyear"),
    Operator.HOUR: _part("hour"),
    Operator.MINUTE: _part("minute"),
    Operator.SECOND: _part("second"),
    Operator.FORMAT_TIME: _formatted,
    Operator.TRUNCATE_TIME: _truncated,
    Operator.ADD_DAYS: _days("+"),
    Operator.SUBTRACT_DAYS: _days("-"),
    Operator.ADD_MONTHS: _months,
    Operator.ADD_MICROSECONDS: _microseconds,
    Operator.DAYS_BETWEEN: lambda values, to: (
        f"CAST({_date(values[0])} - {_date(values[1])} AS {to.duckdb})"
    ),
    Operator.LAST_DAY: lambda values, _type: f"last_day({_date(values[0])})",
    Operator.TO_SECONDS: _since("second", 1_000_000),
    Operator.TO_WHOLE_SECONDS: lambda values, _type: f"epoch_us({_naive(values[0])}) // 1000000",
    Operator.TO_MILLISECONDS: _since("millisecond", 1_000),
    Operator.TO_MICROSECONDS: lambda values, _type: f"epoch_us({values[0].text})",
    Operator.FROM_SECONDS: _from(1_000_000),
    Operator.FROM_MILLISECONDS: _from(1_000),
    Operator.FROM_MICROSECONDS: _from(1),
}
