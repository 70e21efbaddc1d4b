"""Expressions over merged aggregates, as SQL of the store.

They are evaluated when a table is read, so a table at a position is a function of the state at
that position; an expression that fails (a division by zero) fails the read, as in SQL.

Promise: what is accepted means in the store what it means in Spark. Spark tells the type of every
part. Where the store would compute in another one, the text says which; where the two convert or
round differently (texts and numbers, casts, a division of decimals) the expression is refused.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation

import sqlglot
from sqlglot import Token, TokenType
from sqlglot import expressions as exp

from headrace.model.scalars import Scalar, escape_braces
from headrace.schema.types import DataType, parse_type

__all__ = ["Names", "derive_calls", "store_expression", "typed_parts"]

#: The functions that the store computes over aggregates.
_STORE_FUNCTIONS = frozenset({"abs", "cast", "coalesce", "if", "ifnull", "nullif", "nvl"})
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
#: The store computes with these in their own width, Spark in the wider one, as soon as it can.
_WIDER = {
    "TINYINT": parse_type("INT"),
    "SMALLINT": parse_type("INT"),
    "FLOAT": parse_type("DOUBLE"),
}
_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?", flags=re.ASCII
)


@dataclass(frozen=True)
class Names:
    """What the names of keys and aggregates are: SQL of the store, and SQL as the user wrote it.

    `types` has the type of every part of the expressions, by its text.
    """

    references: Mapping[str, str]
    written: Mapping[str, str]
    types: Mapping[str, DataType]


def derive_calls(
    scalar: Scalar, aggregates: frozenset[str], derive: Callable[[Scalar], str]
) -> Scalar:
    """Return an expression with a column for each function call that the store does not compute.

    Only for calls that read none of the columns `aggregates`: `derive` gives the column's name.
    """
    mark = _free_mark(scalar.text)
    text = scalar.render(lambda name: f"{mark}{scalar.refs.index(name)}_")
    tokens = sqlglot.tokenize(text, read="spark")
    refs = list(scalar.refs)

    def hole(found: re.Match[str]) -> str:
        return f"{{{found[1]}}}"

    def part(begin: int, end: int) -> str:
        return re.sub(rf"{mark}(\d+)_", hole, escape_braces(text[begin:end]))

    written, done = "", 0
    for at, token in enumerate(tokens):
        if token.start < done or not _is_call(tokens, at):
            continue
        end = _closing(tokens, at + 1).end + 1
        inner = Scalar(part(token.start, end), scalar.refs).substitute({})
        if token.text.lower() in _STORE_FUNCTIONS or not aggregates.isdisjoint(inner.refs):
            continue
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
    is_word = tokens[at].token_type != TokenType.STRING and re.match(r"\w", text) is not None
    return is_open and is_word and not is_type and text.lower() not in _NOT_FUNCTIONS.split()


def _closing(tokens: Sequence[Token], opening: int) -> Token:
    """Return the parenthesis that closes the one at an index."""
    depth = 0
    for token in tokens[opening:]:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0:
            return token
    raise AssertionError("a scalar closes what it opens")


def _free_mark(text: str) -> str:
    """Return the beginning of names that a text does not contain."""
    mark = "__stands_for_"
    while mark in text:
        mark += "_"
    return mark


def typed_parts(expressions: Iterable[str]) -> list[str]:
    """Return the parts of expressions whose types `Names` needs, as Spark SQL, each once."""
    texts: dict[str, None] = {}
    for expression in expressions:
        texts |= dict.fromkeys(_text(node) for node in _parts(_parse(expression)))
    return list(texts)


def store_expression(expression: str, names: Names) -> str:
    """Return Spark SQL over names as SQL of the store. ValueError: they differ in what it means."""
    tree = _parse(expression)
    if isinstance(tree, exp.Column):
        return f"({names.references[tree.name]})"
    parts = [(node, names.types[_text(node)]) for node in _parts(tree)]
    for node, type in parts:
        _check(node, type, names)
    # What a name stands for is put in as it is: it may be more than sqlglot can write again.
    mark = _free_mark(expression)
    root = exp.Paren(this=tree)
    # From the leaves up, because what is replaced holds what it is over.
    for node, type in reversed(parts):
        node.replace(_stored(node, type, mark))
    text = root.this.sql(dialect="duckdb")
    return re.sub(rf"\b{mark}(\w+)\b", lambda found: f"({names.references[found[1]]})", text)


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


def _stored(node: exp.Expr, type: DataType, mark: str) -> exp.Expr:
    """Return what a node, over parts that are the store's already, is in the store."""
    if isinstance(node, exp.Column):
        return _cast(exp.column(f"{mark}{node.name}"), [_WIDER.get(type.kind)])
    if isinstance(node, exp.Cast):
        # sqlglot takes Spark's CAST for one that gives NULL, as it does without ANSI.
        return _cast(node.this, [_WIDER.get(type.kind, type)])
    if isinstance(node, exp.Div):
        # Spark divides integers as DOUBLE and fails on zero, unless there is nothing to divide; the
        # store would answer infinity.
        dividend = node.this.sql(dialect="duckdb")
        divisor = node.expression.sql(dialect="duckdb")
        return sqlglot.parse_one(
            f"CASE WHEN ({divisor}) = 0 AND ({dividend}) IS NOT NULL "
            f"THEN error('division by zero') "
            f"ELSE CAST(({dividend}) AS DOUBLE) / CAST(({divisor}) AS DOUBLE) END",
            read="duckdb",
        )
    if isinstance(node, _ARITHMETIC) and (type.kind in _WIDER or type.kind == "DECIMAL"):
        # Rounded, or refused for its size, where Spark does it.
        return _cast(node.copy(), [type, _WIDER.get(type.kind)])
    return node


def _cast(tree: exp.Expr, types: Iterable[DataType | None]) -> exp.Expr:
    for type in types:
        if type is not None:
            tree = exp.Cast(this=tree, to=exp.DataType.build(type.duckdb, dialect="duckdb"))
    return tree


def _say(node: exp.Expr, names: Names) -> str:
    """Return a part of an expression as the user wrote it."""

    def write(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column):
            return exp.Var(this=names.written.get(each.name, each.name))
        return each

    return _text(node.copy().transform(write))
