"""Operators: what may be done with merged values, in words that every store can say.

What each means is what Spark means by it, with ANSI on: what overflows fails, and so does a
division by zero. NULL operands give NULL unless it says otherwise. Times are in UTC.
"""

from enum import StrEnum

__all__ = ["Operator"]


class Operator(StrEnum):
    """What is done with the operands."""

    # Numbers
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"  # as DOUBLE, or as DECIMAL rounded HALF_UP; NULL divided by zero is NULL
    INTEGER_DIVIDE = "integer divide"  # towards zero, as BIGINT
    REMAINDER = "%"  # with the sign of the dividend
    POSITIVE_REMAINDER = "positive remainder"  # integer, a literal above 0
    TRY_ADD = "try +"  # NULL where it would fail; what the operands raise is raised
    TRY_SUBTRACT = "try -"
    TRY_MULTIPLY = "try *"
    TRY_DIVIDE = "try /"
    TRY_REMAINDER = "try %"
    NEGATE = "negate"
    ABSOLUTE = "abs"
    ROUND = "round"  # HALF_UP, of a DOUBLE as its shortest digits say; number, places
    FLOOR = "floor"  # of a DOUBLE as BIGINT, the nearest there is
    CEILING = "ceiling"
    SIGN = "sign"
    SQUARE_ROOT = "sqrt"
    BIT_AND = "&"
    BIT_OR = "|"
    BIT_XOR = "^"
    BIT_NOT = "~"
    # Conditions and choices
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    SAME = "<=>"  # NULL is the same as NULL; never NULL
    BETWEEN = "between"  # value, low, high
    IN = "in"  # value, candidates
    AND = "and"
    OR = "or"
    NOT = "not"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"
    IS_TRUE = "is true"
    IS_FALSE = "is false"
    IS_NAN = "is nan"  # never NULL
    COALESCE = "coalesce"
    NULL_IF = "nullif"
    IF_NOT_NULL = "if not null"  # value, what holds if it is not NULL, what holds otherwise
    IF_NAN = "if nan"  # value, what holds instead of NaN
    GREATEST = "greatest"  # of those that are not NULL
    LEAST = "least"
    CASE = "case"  # condition, value, condition, value, ..., perhaps what holds otherwise
    CASE_OF = "case of"  # what is compared, then as CASE with candidates for conditions
    CAST = "cast"  # to the operation's own type
    # Texts, in characters
    CONCATENATE = "concatenate"
    JOIN_TEXTS = "join texts"  # separator, texts; those that are NULL are left out
    LENGTH = "length"
    SUBSTRING = "substring"  # text, place from 1 or from the end, perhaps length
    LEFT = "left"
    RIGHT = "right"
    PAD_LEFT = "pad left"  # text, length, perhaps what to pad with
    PAD_RIGHT = "pad right"
    TRIM = "trim"  # spaces alone
    TRIM_LEFT = "trim left"
    TRIM_RIGHT = "trim right"
    REPLACE = "replace"
    REPEAT = "repeat"
    POSITION = "position"  # text, what is looked for; 0: nowhere
    CONTAINS = "contains"
    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"
    LIKE = "like"  # text, pattern without escapes
    MD5 = "md5"
    SHA1 = "sha1"
    SHA256 = "sha256"
    # Times
    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"  # of ISO 8601
    DAY = "day"
    DAY_OF_WEEK = "day of week"  # 1 is Sunday
    WEEKDAY = "weekday"  # 0 is Monday
    DAY_OF_YEAR = "day of year"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    FORMAT_TIME = "format time"  # time, pattern of letters
    TRUNCATE_TIME = "truncate time"  # time, unit; gives the operation's own type
    ADD_DAYS = "add days"  # date, days
    SUBTRACT_DAYS = "subtract days"
    ADD_MONTHS = "add months"  # time, months; the last day of a month where there is no such day
    ADD_MICROSECONDS = "add microseconds"  # time, microseconds
    DAYS_BETWEEN = "days between"  # the later, the earlier
    LAST_DAY = "last day"  # of a date's month
    TO_SECONDS = "to seconds"  # since 1970, rounded down
    TO_WHOLE_SECONDS = "to whole seconds"  # rounded towards 1970
    TO_MILLISECONDS = "to milliseconds"
    TO_MICROSECONDS = "to microseconds"
    FROM_SECONDS = "from seconds"
    FROM_MILLISECONDS = "from milliseconds"
    FROM_MICROSECONDS = "from microseconds"
    # Lists, maps and structs
    LIST = "list"
    MAP = "map"  # key, value, key, value, ...
    STRUCT = "struct"  # values of the fields of the operation's own type
    FIELD = "field"  # struct, name
    SIZE = "size"
    ITEM = "item"  # of a list by place from 0, of a map by key; a place that is none fails
    ELEMENT = "element"  # of a list by place from 1 or from the end, of a map by key
    TRY_ELEMENT = "try element"  # NULL where there is none
    HAS_ELEMENT = "has element"  # NULL where a NULL may be it
    JOIN_LIST = "join list"  # texts, separator; those that are NULL are left out
    SORT = "sort"  # NULL first
    SORT_DESCENDING = "sort descending"  # NULL last
    SORT_NULLS_LAST = "sort nulls last"
    SLICE = "slice"  # list, place from 1 or from the end, length
    KEYS = "keys"
    VALUES = "values"
