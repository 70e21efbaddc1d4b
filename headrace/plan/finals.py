"""Expressions over merged aggregates as terms, which every store can say.

They are evaluated when a table is read, so a table at a position is a function of the state at
that position; an expression that fails (a division by zero) fails the read, as in SQL.

Promise: what is accepted means in every store what it means in Spark. Spark tells the type of every
part. Where the two convert or round differently (texts and numbers, casts, a division of decimals)
the expression is refused. This is the one module behind the front doors that parses: scalars are
Spark SQL text.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation

import sqlglot
from sqlglot import Token, TokenType
from sqlglot import expressions as exp

from headrace.model.scalars import STORE_FUNCTIONS, Scalar, escape_braces
from headrace.plan.terms import Literal, Operation, Operator, Reference, Term
from headrace.schema.types import DataType, parse_type
from headrace.sql.stack import on_own_stack

__all__ = ["Names", "derive_calls", "to_term", "typed_parts"]

#: Those of the store's functions that may leave an argument out.
_GUARDS = frozenset({"coalesce", "if", "ifnull", "nvl"})
#: Functions that give a value whatever they are given: they need no guard.
_NEVER_FAIL = frozenset(
    {
        "char_length", "concat", "concat_ws", "day", "hour", "initcap", "length", "lower", "ltrim",
        "minute", "month", "replace", "reverse", "rtrim", "second", "substr", "substring", "trim",
        "upper", "year",
    }
)  # fmt: skip
#: Words after which a parenthesis opens a group or a list, not the arguments of a function.
_NOT_FUNCTIONS = (
    "all and any as between by case distinct div else escape for from ilike in interval is like "
    "not on or over regexp rlike select some then values when where"
)

_ARITHMETIC = (exp.Abs, exp.Add, exp.Div, exp.Mul, exp.Neg, exp.Sub)
_COMPARISONS = (
    exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NEQ, exp.NullSafeEQ,
    exp.Between, exp.In, exp.Nullif,
)  # fmt: skip
_BOOLEAN = parse_type("BOOLEAN")
_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.Abs: Operator.ABSOLUTE,
    exp.Add: Operator.ADD,
    exp.And: Operator.AND,
    exp.Between: Operator.BETWEEN,
    exp.Coalesce: Operator.COALESCE,
    exp.Div: Operator.DIVIDE,
    exp.EQ: Operator.EQUAL,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.GREATER_OR_EQUAL,
    exp.In: Operator.IN,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.LESS_OR_EQUAL,
    exp.Mul: Operator.MULTIPLY,
    exp.NEQ: Operator.NOT_EQUAL,
    exp.Neg: Operator.NEGATE,
    exp.Not: Operator.NOT,
    exp.NullSafeEQ: Operator.SAME,
    exp.Nullif: Operator.NULL_IF,
    exp.Or: Operator.OR,
    exp.Sub: Operator.SUBTRACT,
}
_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?", flags=re.ASCII
)


@dataclass(frozen=True)
class Names:
    """What the names of keys, aggregates and edges are: their types, and what the user wrote.

    `types` has the type of every part of the expressions, by its text.
    """

    references: Mapping[str, DataType]
    written: Mapping[str, str]
    types: Mapping[str, DataType]


def derive_calls(
    scalar: Scalar, aggregates: frozenset[str], derive: Callable[[Scalar], str]
) -> Scalar:
    """Return an expression with a column for each function call that the store does not compute.

    Only for calls that read none of the columns `aggregates`: `derive` gives the column's name. A
    call that CASE or a function such as IF guards, and that may fail, is never asked without its
    guard: the whole guarded expression becomes the column. ValueError: that reads an aggregate.
    """
    mark = _free_mark(scalar.text)
    text = scalar.render(lambda name: f"{mark}{scalar.refs.index(name)}_")
    tokens = sqlglot.tokenize(text, read="spark")
    refs = list(scalar.refs)

    def hole(found: re.Match[str]) -> str:
        return f"{{{found[1]}}}"

    def part(begin: int, end: int) -> str:
        return re.sub(rf"{mark}(\d+)_", hole, escape_braces(text[begin:end]))

    def between(first: int, last: int) -> Scalar:
        whole = part(tokens[first].start, tokens[last].end + 1)
        return Scalar(whole, scalar.refs).substitute({})

    def is_foreign(at: int) -> bool:
        name = tokens[at].text.lower()
        inner = between(at, _closing(tokens, at + 1)) if _is_call(tokens, at) else None
        is_mine = inner is None or name in STORE_FUNCTIONS
        return not is_mine and aggregates.isdisjoint(inner.refs if inner else ())

    def never_fails(first: int, last: int) -> bool:
        calls = [tokens[at].text.lower() for at in range(first, last) if _is_call(tokens, at)]
        signs = {tokens[at].text for at in range(first, last)}
        return set(calls) <= _NEVER_FAIL and signs.isdisjoint("+-*/%")

    written, done = "", 0
    for at, token in enumerate(tokens):
        guarded = _guard_end(tokens, at)
        if token.start < done or (guarded is None and not is_foreign(at)):
            continue
        last = _closing(tokens, at + 1) if guarded is None else guarded
        inner = between(at, last)
        if guarded is not None:
            foreign = [index for index in range(at + 1, last) if is_foreign(index)]
            if not foreign:
                continue
            if not aggregates.isdisjoint(inner.refs):
                if all(never_fails(index, _closing(tokens, index + 1)) for index in foreign):
                    continue  # they are found again, one by one: no guard is needed
                raise ValueError(
                    "a function that stands beside an aggregate within CASE, IF or COALESCE would "
                    "be asked without its condition; compute it when you read the view"
                )
        end = tokens[last].end + 1
        name = derive(inner)
        refs += [] if name in refs else [name]
        written += f"{part(done, token.start)}{{{refs.index(name)}}}"
        done = end
    return Scalar(written + part(done, len(text)), tuple(refs)).substitute({})


def _is_call(tokens: Sequence[Token], at: int) -> bool:
    """Whether a function's name and its arguments begin at a token."""
    is_open = at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN
    before = tokens[at - 1].text.lower() if at > 0 else ""
    is_type = before in ("::", "as")
    text = tokens[at].text
    if tokens[at].token_type == TokenType.IDENTIFIER:
        return is_open and not is_type
    is_word = tokens[at].token_type != TokenType.STRING and re.match(r"\w", text) is not None
    return is_open and is_word and not is_type and text.lower() not in _NOT_FUNCTIONS.split()


def _guard_end(tokens: Sequence[Token], at: int) -> int | None:
    """Return where CASE, or a call that may leave an argument out, ends; None: none begins here."""
    if tokens[at].token_type == TokenType.CASE:
        depth = 0
        for index in range(at, len(tokens)):
            kind = tokens[index].token_type
            depth += (kind == TokenType.CASE) - (kind == TokenType.END)
            if depth == 0:
                return index
    if _is_call(tokens, at) and tokens[at].text.lower() in _GUARDS:
        return _closing(tokens, at + 1)
    return None


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """Return the index of the parenthesis that closes the one at an index."""
    depth = 0
    for index in range(opening, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return index
    raise AssertionError("a scalar closes what it opens")


def _free_mark(text: str) -> str:
    """Return the beginning of names that a text does not contain."""
    mark = "__stands_for_"
    while mark in text:
        mark += "_"
    return mark


def typed_parts(expressions: Iterable[str]) -> list[str]:
    """Return the parts of expressions whose types `Names` needs, as Spark SQL, each once."""

    def find() -> list[str]:
        texts: dict[str, None] = {}
        for expression in expressions:
            texts |= dict.fromkeys(_text(node) for node in _parts(_parse(expression)))
        return list(texts)

    return on_own_stack(find)  # the front door reads as deep on a stack of its own


def to_term(expression: str, names: Names) -> Term:
    """Return Spark SQL over names as a term. ValueError: stores would mean something else by it."""

    def read() -> Term:
        tree = _parse(expression)
        if isinstance(tree, exp.Column):
            return Reference(tree.name, names.references[tree.name])
        for node in _parts(tree):
            _check(node, names.types[_text(node)], names)
        return _term(tree, names)

    return on_own_stack(read)


def _parse(expression: str) -> exp.Expr:
    return sqlglot.parse_one(expression, read="spark")


def _text(node: exp.Expr) -> str:
    return node.sql(dialect="spark")


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    """Return every node that has a value of some type, parents before what they are over."""
    found = []
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Column | exp.DataType)):
        is_branch = node.arg_key == "ifs"  # WHEN ... THEN ...
        if not (is_branch or isinstance(node, exp.Null | exp.Paren | exp.DataType)):
            found.append(node)
    return found


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """Return what must be alike for a node to compare or to choose between, NULL left out."""
    if isinstance(node, exp.Case):
        found = [each.args["true"] for each in node.args["ifs"]] + [node.args.get("default")]
    elif isinstance(node, exp.If):
        found = [node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Between):
        found = [node.this, node.args["low"], node.args["high"]]
    else:
        found = [node.this, node.args.get("expression"), *node.expressions]
    operands = [each.unnest() for each in found if each is not None]
    return [each for each in operands if not isinstance(each, exp.Null)]


def _conditions(node: exp.Expr) -> list[exp.Expr]:
    """Return what must be a condition within a node."""
    if isinstance(node, exp.And | exp.Or | exp.Not):
        found = _operands(node)
    elif isinstance(node, exp.If | exp.Is):
        found = [] if isinstance(node.args.get("expression"), exp.Null) else [node.this.unnest()]
    elif isinstance(node, exp.Case) and node.this is None:
        found = [each.this.unnest() for each in node.args["ifs"]]
    else:
        return []
    return [each for each in found if not isinstance(each, exp.Null)]


def _check(node: exp.Expr, type: DataType, names: Names) -> None:
    """Refuse what Spark and the store do not do alike. ValueError."""
    if isinstance(node, exp.Cast):
        _check_cast(node, names)
    elif isinstance(node, exp.Div) and type.kind == "DECIMAL":
        raise ValueError(
            f"{_say(node, names)} divides decimals, which rounds differently everywhere; write "
            f"CAST(... AS DOUBLE) / ..., or avg(...)"
        )
    elif isinstance(node, _ARITHMETIC):
        for operand in _operands(node):
            if not (found := names.types[_text(operand)]).is_numeric:
                raise ValueError(
                    f"{_say(node, names)}: {_say(operand, names)} is {found.sql}, and over "
                    f"aggregates only numbers are computed with; compute it when you read the view"
                )
    elif isinstance(node, _COMPARISONS):
        _check_alike(node, _operands(node), names, ordered=True)
    elif isinstance(node, exp.Case | exp.Coalesce | exp.If):
        _check_alike(node, _operands(node), names)
        if isinstance(node, exp.Case) and node.this is not None:
            compared = [node.this, *(each.this for each in node.args["ifs"])]
            compared = [each.unnest() for each in compared]
            compared = [each for each in compared if not isinstance(each, exp.Null)]
            _check_alike(node, compared, names, ordered=True)
    for condition in _conditions(node):
        if (found := names.types[_text(condition)]).kind != "BOOLEAN":
            raise ValueError(f"{_say(condition, names)} is {found.sql}; write a condition")


def _check_alike(
    node: exp.Expr, operands: list[exp.Expr], names: Names, *, ordered: bool = False
) -> None:
    types = [names.types[_text(operand)] for operand in operands]
    # A text is read as what it stands beside; the first that is more than a text says what that is.
    first = next((at for at, each in enumerate(operands) if not each.is_string), 0)
    for operand, type in zip(operands, types, strict=True):
        if ordered and not type.is_orderable:
            raise ValueError(
                f"{_say(node, names)}: {_say(operand, names)} is {type.sql}, whose values are not "
                f"compared over aggregates; compare them when you read the view"
            )
        numbers = type.is_numeric and types[first].is_numeric
        alike = type.kind == types[first].kind if type.is_orderable else type == types[first]
        if not (numbers or alike or (operand.is_string and _is_exact(operand, types[first]))):
            raise ValueError(
                f"{_say(node, names)}: {_say(operands[first], names)} is {types[first].sql} and "
                f"{_say(operand, names)} is {type.sql}, and over aggregates only numbers are "
                f"converted; write both alike, such as max(CAST(... AS BIGINT)) > 5 or "
                f"max(...) > TIMESTAMP '2026-01-01'"
            )


def _check_cast(node: exp.Cast, names: Names) -> None:
    to, operand = parse_type(_text(node.to)), node.this.unnest()
    if isinstance(operand, exp.Null) or _is_exact(operand, to):
        return
    if to.kind != "DOUBLE":
        raise ValueError(
            f"{_say(node, names)}: over aggregates only a cast to DOUBLE means the "
            f"same everywhere; cast when you read the view instead"
        )
    if not (found := names.types[_text(operand)]).is_numeric:
        raise ValueError(
            f"{_say(node, names)}: {_say(operand, names)} is {found.sql}, and over aggregates only "
            f"numbers are cast; cast within the aggregate, such as max(CAST(... AS DOUBLE))"
        )


def _is_exact(operand: exp.Expr, to: DataType) -> bool:
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


def _term(tree: exp.Expr, names: Names) -> Term:
    """Return a tree, all of whose parts were found to mean the same everywhere, as a term."""
    node = tree.unnest()
    if isinstance(node, exp.Column):
        return Reference(node.name, names.references[node.name])
    if isinstance(node, exp.Null):
        return Literal(None)
    if isinstance(node, exp.Boolean):
        return Literal(bool(node.this))
    if isinstance(node, exp.Literal):
        return Literal(node.name, is_text=bool(node.is_string))
    type = names.types[_text(node)]
    if isinstance(node, exp.Is):
        return Operation(_test(node.expression), (_term(node.this, names),), _BOOLEAN)
    operator = _operator(node)
    if operator is None or node.args.get("symmetric"):
        raise ValueError(
            f"{_say(node, names)} cannot be computed over aggregates or windows that overlap; "
            "compute it when you read the view"
        )
    operands = tuple(_term(each, names) for each in _written_operands(node))
    return Operation(operator, operands, type)


def _operator(node: exp.Expr) -> Operator | None:
    if isinstance(node, exp.Cast):
        return Operator.CAST
    if isinstance(node, exp.Case | exp.If):
        is_compared = isinstance(node, exp.Case) and node.this is not None
        return Operator.CASE_OF if is_compared else Operator.CASE
    return _OPERATORS.get(node.__class__)


def _test(found: exp.Expr) -> Operator:
    if isinstance(found, exp.Null):
        return Operator.IS_NULL
    return Operator.IS_TRUE if found.this else Operator.IS_FALSE


def _written_operands(node: exp.Expr) -> list[exp.Expr]:
    """Return everything that a node is over, in the order of its term's operands."""
    if isinstance(node, exp.Case):
        branches = [part for each in node.args["ifs"] for part in (each.this, each.args["true"])]
        found = [node.this, *branches, node.args.get("default")]
    elif isinstance(node, exp.If):
        found = [node.this, node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Between):
        found = [node.this, node.args["low"], node.args["high"]]
    else:
        found = [node.this, node.args.get("expression"), *node.expressions]
    return [each for each in found if each is not None]


def _say(node: exp.Expr, names: Names) -> str:
    """Return a part of an expression as the user wrote it."""

    def write(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column):
            return exp.Var(this=names.written.get(each.name, each.name))
        return each

    return _text(node.copy().transform(write))
