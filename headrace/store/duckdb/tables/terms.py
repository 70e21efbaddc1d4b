"""Terms in DuckDB: what Spark means by an expression over merged rows, said in DuckDB's SQL."""

from collections.abc import Mapping

from headrace.plan.terms import Literal, Operation, Operator, Reference, Term
from headrace.schema.types import DataType, parse_type

__all__ = ["term_text"]

#: DuckDB computes with these in their own width, Spark in the wider one, as soon as it can.
_WIDER = {
    "TINYINT": parse_type("INT"),
    "SMALLINT": parse_type("INT"),
    "FLOAT": parse_type("DOUBLE"),
}
_ARITHMETIC = (
    Operator.ABSOLUTE,
    Operator.ADD,
    Operator.MULTIPLY,
    Operator.NEGATE,
    Operator.SUBTRACT,
)
_CALLS = {
    Operator.ABSOLUTE: "abs",
    Operator.COALESCE: "coalesce",
    Operator.NULL_IF: "nullif",
}
_BEFORE = {Operator.NEGATE: "-", Operator.NOT: "NOT "}
_BEHIND = {
    Operator.IS_NULL: "IS NULL",
    Operator.IS_TRUE: "IS TRUE",
    Operator.IS_FALSE: "IS FALSE",
}
_BETWEEN_TWO = {
    Operator.AND: "AND",
    Operator.OR: "OR",
    Operator.SAME: "IS NOT DISTINCT FROM",
}


def term_text(term: Term, references: Mapping[str, str]) -> str:
    """Return a term as SQL; `references` has the SQL of the names that it refers to."""
    if isinstance(term, Reference):
        return f"({references[term.name]})"
    return _text(term, references)


def _text(term: Term, references: Mapping[str, str]) -> str:
    if isinstance(term, Reference):
        return _cast(f"({references[term.name]})", _WIDER.get(term.type.kind))
    if isinstance(term, Literal):
        return _literal(term)
    operands = [_operand(each, references) for each in term.operands]
    text = _operation(term.operator, operands)
    if term.operator is Operator.CAST:
        return _cast(operands[0], _WIDER.get(term.type.kind, term.type))
    if term.operator in _ARITHMETIC and (term.type.kind in _WIDER or term.type.kind == "DECIMAL"):
        # Rounded, or refused for its size, where Spark does it.
        return _cast(_cast(text, term.type), _WIDER.get(term.type.kind))
    return text


def _operand(term: Term, references: Mapping[str, str]) -> str:
    text = _text(term, references)
    return f"({text})" if isinstance(term, Operation) else text


def _operation(operator: Operator, operands: list[str]) -> str:
    if operator in _CALLS:
        return f"{_CALLS[operator]}({', '.join(operands)})"
    if operator in _BEFORE:
        return f"{_BEFORE[operator]}{operands[0]}"
    if operator in _BEHIND:
        return f"{operands[0]} {_BEHIND[operator]}"
    match operator:
        case Operator.DIVIDE:
            return _division(*operands)
        case Operator.BETWEEN:
            value, low, high = operands
            return f"{value} BETWEEN {low} AND {high}"
        case Operator.IN:
            return f"{operands[0]} IN ({', '.join(operands[1:])})"
        case Operator.CASE:
            return _case("CASE", operands)
        case Operator.CASE_OF:
            return _case(f"CASE {operands[0]}", operands[1:])
        case Operator.CAST:
            return operands[0]
    one, other = operands
    return f"{one} {_BETWEEN_TWO.get(operator, operator.value)} {other}"


def _division(dividend: str, divisor: str) -> str:
    # Spark divides integers as DOUBLE and fails on zero, unless there is nothing to divide; DuckDB
    # would answer infinity.
    return (
        f"CASE WHEN ({divisor}) = 0 AND ({dividend}) IS NOT NULL "
        f"THEN error('division by zero') "
        f"ELSE CAST(({dividend}) AS DOUBLE) / CAST(({divisor}) AS DOUBLE) END"
    )


def _case(head: str, operands: list[str]) -> str:
    branches = zip(operands[::2], operands[1::2], strict=False)
    text = " ".join([head, *(f"WHEN {when} THEN {then}" for when, then in branches)])
    return f"{text} ELSE {operands[-1]} END" if len(operands) % 2 else f"{text} END"


def _literal(literal: Literal) -> str:
    if literal.value is None:
        return "NULL"
    if isinstance(literal.value, bool):
        return "true" if literal.value else "false"
    return f"'{literal.value.replace(chr(39), chr(39) * 2)}'" if literal.is_text else literal.value


def _cast(text: str, type: DataType | None) -> str:
    return text if type is None else f"CAST({text} AS {type.duckdb})"
