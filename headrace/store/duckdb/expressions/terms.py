"""Terms in DuckDB: what Spark means by an expression over merged rows, said in DuckDB's SQL.

A value has the type that Spark gives it, but for TINYINT, SMALLINT and FLOAT, which are held in the
next wider one: DuckDB computes with these in their own width, Spark, as soon as it can, in that.

Where Spark fails, a term has any value, or DuckDB raises: failing.py tells both.
"""

from collections.abc import Mapping

from headrace.plan.terms import Literal, Operation, Operator, Reference, Term
from headrace.schema.types import DataType
from headrace.store.duckdb.expressions.casts import cast_text, held, plain_cast
from headrace.store.duckdb.expressions.functions import FUNCTIONS, Value

__all__ = ["part_text", "term_text"]

_ARITHMETIC = (Operator.ABSOLUTE, Operator.NEGATE)
_BEFORE = {Operator.NEGATE: "-", Operator.NOT: "NOT "}
_BEHIND = {
    Operator.IS_NULL: "IS NULL",
    Operator.IS_NOT_NULL: "IS NOT NULL",
    Operator.IS_TRUE: "IS TRUE",
    Operator.IS_FALSE: "IS FALSE",
}
_CHAINS = {Operator.AND: " AND ", Operator.OR: " OR "}
_BETWEEN_TWO = {Operator.SAME: "IS NOT DISTINCT FROM"}


def term_text(term: Term, references: Mapping[str, str]) -> str:
    """Return a term as SQL; `references` has the SQL of the names that it refers to."""
    if isinstance(term, Reference):
        return f"({references[term.name]})"
    return part_text(term, references)


def part_text(term: Term, references: Mapping[str, str]) -> str:
    """Return a part of a term as SQL, in the type that it is held in."""
    if isinstance(term, Reference):
        return held(f"({references[term.name]})", term.type)
    if isinstance(term, Literal):
        return _literal(term)
    operands = [_operand(each, references) for each in term.operands]
    types = [each.type for each in term.operands]
    if term.operator is Operator.CAST:
        return cast_text(operands[0], types[0], term.type, gently=True)
    if term.operator in FUNCTIONS:
        values = [Value(*each) for each in zip(operands, types, strict=True)]
        return FUNCTIONS[term.operator](values, term.type)
    if term.operator in (Operator.CASE, Operator.CASE_OF):
        return _case(term, operands)
    if term.operator in _ARITHMETIC and term.type.is_integer:
        text = _operation(term.operator, [f"CAST({each} AS HUGEINT)" for each in operands])
        return held(plain_cast(text, term.type, gently=True), term.type)
    text = _operation(term.operator, operands)
    if term.operator in _ARITHMETIC and (held("", term.type) or term.type.kind == "DECIMAL"):
        # Rounded, or refused for its size, where Spark does it.
        return held(plain_cast(text, term.type), term.type)
    return text


def _operand(term: Term, references: Mapping[str, str]) -> str:
    text = part_text(term, references)
    return f"({text})" if isinstance(term, Operation) else text


def _operation(operator: Operator, operands: list[str]) -> str:
    if operator in _BEFORE:
        return f"{_BEFORE[operator]}{operands[0]}"
    if operator in _BEHIND:
        return f"{operands[0]} {_BEHIND[operator]}"
    if operator in _CHAINS:
        return _CHAINS[operator].join(operands)
    match operator:
        case Operator.ABSOLUTE:
            return f"abs({operands[0]})"
        case Operator.BETWEEN:
            value, low, high = operands
            return f"{value} BETWEEN {low} AND {high}"
        case Operator.IN:
            return f"{operands[0]} IN ({', '.join(operands[1:])})"
    one, other = operands
    return f"{one} {_BETWEEN_TWO.get(operator, operator.value)} {other}"


def _case(term: Operation, operands: list[str]) -> str:
    begin = 1 if term.operator is Operator.CASE_OF else 0
    branches = operands[begin:]
    for at, each in enumerate(term.operands[begin:]):
        if at % 2 or (at == len(branches) - 1 and len(branches) % 2):
            branches[at] = alike(branches[at], each.type, term.type)
    head = " ".join(["CASE", *operands[:begin]])
    pairs = zip(branches[::2], branches[1::2], strict=False)
    text = " ".join([head, *(f"WHEN {when} THEN {then}" for when, then in pairs)])
    return f"{text} ELSE {branches[-1]} END" if len(branches) % 2 else f"{text} END"


def alike(text: str, type: DataType | None, to: DataType) -> str:
    """Return a value that is chosen among others as the type that they have in common."""
    return text if type in (None, to) else cast_text(text, type, to)


def _literal(literal: Literal) -> str:
    if literal.value is None:
        return "NULL"
    if isinstance(literal.value, bool):
        return "true" if literal.value else "false"
    return f"'{literal.value.replace(chr(39), chr(39) * 2)}'" if literal.is_text else literal.value
