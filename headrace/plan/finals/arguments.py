"""What the arguments of the functions over aggregates must be, word by word."""

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from headrace.model.functions import MAX_PLACES, letters_of, unit_of
from headrace.plan.finals.casting import cast_fault
from headrace.schema.types import DataType, parse_type

__all__ = ["fault_of", "is_exact"]

_STRING = parse_type("STRING")
_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?", flags=re.ASCII
)
#: Which types a word takes.
_TYPES: dict[str, Callable[[DataType], bool]] = {
    "any": lambda _type: True,
    "number": lambda found: found.is_numeric,
    "integer": lambda found: found.is_integer,
    "fraction": lambda found: found.kind in ("FLOAT", "DOUBLE"),
    "text": lambda found: found.kind == "STRING",
    "truth": lambda found: found.kind == "BOOLEAN",
    "date": lambda found: found.kind == "DATE",
    "moment": lambda found: found.kind == "TIMESTAMP",
    "time": lambda found: found.kind in ("DATE", "TIMESTAMP"),
    "list": lambda found: found.kind == "ARRAY" and found.parts[0].is_orderable,
    "texts": lambda found: found.kind == "ARRAY" and found.parts[0].kind == "STRING",
    "map": lambda found: found.kind == "MAP",
    "group": lambda found: found.kind in ("ARRAY", "MAP"),
    "shown": lambda found: cast_fault(found, _STRING) is None,
}
_WANTED = {
    "number": "a number",
    "integer": "a whole number",
    "fraction": "a DOUBLE",
    "text": "a STRING",
    "truth": "a condition",
    "date": "a DATE",
    "moment": "a TIMESTAMP",
    "time": "a DATE or TIMESTAMP",
    "list": "an ARRAY of single values",
    "texts": "an ARRAY<STRING>",
    "map": "a MAP",
    "group": "an ARRAY or MAP",
    "shown": "a STRING, or what has one text form",
}


def fault_of(word: str, argument: exp.Expr, type: DataType | None) -> str | None:
    """Return why an argument is not what a word of `Function.takes` says; None: it is."""
    match word:
        case "places":
            places = int(argument.name) if _is_whole(argument) else -1
            return None if 0 <= places <= MAX_PLACES else f"is not a number from 0 to {MAX_PLACES}"
        case "modulus":
            fine = _is_whole(argument) and int(argument.name) > 0
            return None if fine else "is not a number from 1 to 9999"
        case "separator":
            return None if argument.is_string else "is not a text that is written out"
        case "bits":
            return None if _is_whole(argument) and argument.name == "256" else "is not 256"
        case "unit":
            known = argument.is_string and unit_of(argument.name) is not None
            return None if known else "is not a unit such as 'hour', 'day' or 'month'"
        case "pattern":
            if isinstance(argument.parent, exp.Like):
                plain = argument.is_string and "\\" not in argument.name
                return None if plain else "is not a pattern that is written out, without escapes"
            known = argument.is_string and letters_of(argument.name) is not None
            return (
                None if known else "has letters that are not proven to mean the same in the store"
            )
        case "true":
            return None if isinstance(argument, exp.Boolean) else "is not true or false"
    if type is None:
        return None if word == "any" else "is NULL"
    return None if _TYPES[word](type) else f"is {type.sql}, not {_WANTED[word]}"


def _is_whole(argument: exp.Expr) -> bool:
    is_number = isinstance(argument, exp.Literal) and not argument.is_string
    return is_number and re.fullmatch(r"[0-9]{1,4}", argument.name) is not None


def is_exact(operand: exp.Expr, to: DataType) -> bool:
    """Whether a literal is written so that every reader finds the same value of the type in it."""
    minus = isinstance(operand, exp.Neg)
    literal = operand.this if minus else operand
    if not isinstance(literal, exp.Literal):
        return False
    text = f"-{literal.name}" if minus else literal.name
    if to.kind == "STRING":
        return bool(literal.is_string)
    if to.kind in ("DATE", "TIMESTAMP"):
        return bool(_TIME.fullmatch(text)) and _is_moment(text, to)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    if to.is_integer:
        limit = 2 ** (_INTEGER_BITS[to.kind] - 1)
        return re.fullmatch(r"-?[0-9]+", text) is not None and -limit <= number < limit
    _, digits, exponent = number.as_tuple()
    return (
        to.kind == "DECIMAL"
        and isinstance(exponent, int)
        and -to.scale <= exponent <= 0
        and len(digits) + exponent <= to.precision - to.scale
    )


def _is_moment(text: str, to: DataType) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return to.kind == "TIMESTAMP" or len(text) == len("2026-01-01")
