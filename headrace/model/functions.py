"""The functions that may stand over aggregates: which operator each is, and what it takes.

This is the one list of them. The front door reads from it how many arguments a function takes, the
planner which types; `Operator` says what each means. A function that is not here, or that is given
other types, is not proven to mean in the store what it means in Spark.
"""

from dataclasses import dataclass

from headrace.model.operators import Operator

__all__ = ["FUNCTIONS", "MANY", "MAX_PLACES", "Function", "letters_of", "unit_of"]

#: How many places `round` may keep.
MAX_PLACES = 18
#: As many arguments as anyone writes.
MANY = 1_000


@dataclass(frozen=True)
class Function:
    """A function. `takes` has a word for the type of each argument, the last for all that follow.

    number, integer, fraction (FLOAT or DOUBLE), text, truth, date, moment (TIMESTAMP), time (date
    or moment), list, texts (a list of them), map, group (list or map), any; shown (what has one
    text form); alike (all of one type, or numbers); ordered (alike, and comparable). Literals:
    places, modulus, bits, unit, pattern,
    separator, true.
    """

    operator: Operator
    takes: tuple[str, ...]
    fewest: int
    most: int

    def word(self, at: int) -> str:
        """Return the word for an argument by its number."""
        return self.takes[min(at, len(self.takes) - 1)]


def _function(operator: Operator, takes: str) -> Function:
    """Return a function; `?` behind a word marks what may be left out, `*` what may be repeated."""
    words = takes.split()
    fewest = sum(word[-1] not in "?*" for word in words)
    most = MANY if words[-1].endswith("*") else len(words)
    return Function(operator, tuple(word.rstrip("?*") for word in words), fewest, most)


_TABLE = {
    "abs": (Operator.ABSOLUTE, "number"),
    "negative": (Operator.NEGATE, "number"),
    "mod": (Operator.REMAINDER, "number number"),
    "pmod": (Operator.POSITIVE_REMAINDER, "integer modulus"),
    "DIV": (Operator.INTEGER_DIVIDE, "number number"),
    "try_add": (Operator.TRY_ADD, "number number"),
    "try_subtract": (Operator.TRY_SUBTRACT, "number number"),
    "try_multiply": (Operator.TRY_MULTIPLY, "number number"),
    "try_divide": (Operator.TRY_DIVIDE, "number number"),
    "try_mod": (Operator.TRY_REMAINDER, "number number"),
    "round": (Operator.ROUND, "number places?"),
    "floor": (Operator.FLOOR, "number"),
    "ceil ceiling": (Operator.CEILING, "number"),
    "sign signum": (Operator.SIGN, "number"),
    "sqrt": (Operator.SQUARE_ROOT, "number"),
    "coalesce": (Operator.COALESCE, "alike alike*"),
    "ifnull nvl": (Operator.COALESCE, "alike alike"),
    "nullif": (Operator.NULL_IF, "ordered ordered"),
    "nvl2": (Operator.IF_NOT_NULL, "any alike alike"),
    "nanvl": (Operator.IF_NAN, "fraction fraction"),
    "if": (Operator.CASE, "truth alike alike?"),
    "isnull": (Operator.IS_NULL, "any"),
    "isnotnull": (Operator.IS_NOT_NULL, "any"),
    "isnan": (Operator.IS_NAN, "fraction"),
    "greatest": (Operator.GREATEST, "ordered ordered ordered*"),
    "least": (Operator.LEAST, "ordered ordered ordered*"),
    "concat": (Operator.CONCATENATE, "shown shown*"),
    "concat_ws": (Operator.JOIN_TEXTS, "text shown shown*"),
    "length char_length character_length len": (Operator.LENGTH, "text"),
    "substring substr": (Operator.SUBSTRING, "text integer integer?"),
    "left": (Operator.LEFT, "text integer"),
    "right": (Operator.RIGHT, "text integer"),
    "lpad": (Operator.PAD_LEFT, "text integer text?"),
    "rpad": (Operator.PAD_RIGHT, "text integer text?"),
    "trim": (Operator.TRIM, "text"),
    "ltrim": (Operator.TRIM_LEFT, "text"),
    "rtrim": (Operator.TRIM_RIGHT, "text"),
    "replace": (Operator.REPLACE, "text text text?"),
    "repeat": (Operator.REPEAT, "text integer"),
    "instr": (Operator.POSITION, "text text"),
    "contains": (Operator.CONTAINS, "text text"),
    "startswith": (Operator.STARTS_WITH, "text text"),
    "endswith": (Operator.ENDS_WITH, "text text"),
    "md5": (Operator.MD5, "text"),
    "sha sha1": (Operator.SHA1, "text"),
    "sha2": (Operator.SHA256, "text bits"),
    "year": (Operator.YEAR, "time"),
    "quarter": (Operator.QUARTER, "time"),
    "month": (Operator.MONTH, "time"),
    "weekofyear": (Operator.WEEK, "time"),
    "day dayofmonth": (Operator.DAY, "time"),
    "dayofweek": (Operator.DAY_OF_WEEK, "time"),
    "weekday": (Operator.WEEKDAY, "time"),
    "dayofyear": (Operator.DAY_OF_YEAR, "time"),
    "hour": (Operator.HOUR, "moment"),
    "minute": (Operator.MINUTE, "moment"),
    "second": (Operator.SECOND, "moment"),
    "date_format": (Operator.FORMAT_TIME, "time pattern"),
    "date_trunc": (Operator.TRUNCATE_TIME, "unit time"),
    "trunc": (Operator.TRUNCATE_TIME, "time unit"),
    "date_add": (Operator.ADD_DAYS, "time integer"),
    "date_sub": (Operator.SUBTRACT_DAYS, "time integer"),
    "add_months": (Operator.ADD_MONTHS, "date integer"),
    "datediff date_diff": (Operator.DAYS_BETWEEN, "time time"),
    "last_day": (Operator.LAST_DAY, "time"),
    "to_date date": (Operator.CAST, "time"),
    "to_timestamp timestamp": (Operator.CAST, "time"),
    "unix_timestamp to_unix_timestamp": (Operator.TO_WHOLE_SECONDS, "time"),
    "unix_seconds": (Operator.TO_SECONDS, "moment"),
    "unix_millis": (Operator.TO_MILLISECONDS, "moment"),
    "unix_micros": (Operator.TO_MICROSECONDS, "moment"),
    "timestamp_seconds": (Operator.FROM_SECONDS, "integer"),
    "timestamp_millis": (Operator.FROM_MILLISECONDS, "integer"),
    "timestamp_micros": (Operator.FROM_MICROSECONDS, "integer"),
    "array": (Operator.LIST, "alike alike*"),
    "map": (Operator.MAP, "any any any*"),
    "named_struct": (Operator.STRUCT, "any any any*"),
    "size cardinality": (Operator.SIZE, "group"),
    "array_size": (Operator.SIZE, "list"),
    "element_at": (Operator.ELEMENT, "group any"),
    "try_element_at": (Operator.TRY_ELEMENT, "group any"),
    "array_contains": (Operator.HAS_ELEMENT, "list any"),
    "array_join": (Operator.JOIN_LIST, "texts separator"),
    "sort_array": (Operator.SORT, "list true?"),
    "array_sort": (Operator.SORT_NULLS_LAST, "list"),
    "slice": (Operator.SLICE, "list integer integer"),
    "map_keys": (Operator.KEYS, "map"),
    "map_values": (Operator.VALUES, "map"),
    # Those that are written with a syntax of their own, under names that no function has.
    "cast": (Operator.CAST, "any"),
    "[]": (Operator.ITEM, "group any"),
    "like": (Operator.LIKE, "text pattern"),
    "&": (Operator.BIT_AND, "integer integer"),
    "|": (Operator.BIT_OR, "integer integer"),
    "^": (Operator.BIT_XOR, "integer integer"),
    "~": (Operator.BIT_NOT, "integer"),
}
#: By every name that Spark knows it under.
FUNCTIONS = {name: _function(*row) for names, row in _TABLE.items() for name in names.split()}

_UNITS = {
    "year": "year yyyy yy",
    "quarter": "quarter",
    "month": "month mon mm",
    "week": "week",
    "day": "day dd",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "millisecond": "millisecond",
    "microsecond": "microsecond",
}
#: Letters of patterns of time that are proven to mean the same.
_LETTERS = frozenset(
    {
        "yyyy", "yy", "MMMM", "MMM", "MM", "M", "dd", "d", "EEEE", "EEE", "EE", "E", "HH", "H",
        "hh", "h", "mm", "m", "ss", "s", "SSSSSS", "SSS", "a", "DDD", "XXX",
    }
)  # fmt: skip


def unit_of(text: str) -> str | None:
    """Return the unit of time that a word of `date_trunc` names; None: Spark knows none."""
    found = (unit for unit, names in _UNITS.items() if text.lower() in names.split())
    return next(found, None)


def letters_of(pattern: str) -> list[tuple[str, str]] | None:
    """Return the runs of a pattern of time: (letters, "") or ("", text as it stands).

    None: it has letters, or a quote, that are not proven to mean the same everywhere.
    """
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "'":
            end = pattern.find("'", at + 1)
            if end <= at + 1:  # no end, or the quote that is meant
                return None
            found.append(("", pattern[at + 1 : end]))
            at = end + 1
        elif character.isascii() and character.isalpha():
            run = len(pattern[at:]) - len(pattern[at:].lstrip(character))
            letters = character * run
            if letters not in _LETTERS:
                return None
            found.append((letters, ""))
            at += run
        elif character in "[]{}#" or not character.isprintable():
            return None
        else:
            found.append(("", character))
            at += 1
    return found
