"""The parts of an expression over merged aggregates: what they are over, and their types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import TokenType, exp

from headrace.model.functions import FUNCTIONS, Function
from headrace.plan.terms import Operator
from headrace.schema.types import DataType, parse_type
from headrace.sql.query.reading.parser import parse_query
from headrace.sql.query.reading.trees import Tree, path_of, strip_parentheses
from headrace.sql.stack import on_own_stack
from headrace.sql.text import Refused, Source

__all__ = [
    "OPERATORS", "Expression", "Names", "call_of", "names_in", "operands_of", "say",
    "typed_parts",
]  # fmt: skip

#: Terms are hashed, compared and written by functions that call themselves.
MAX_DEPTH = 100
BOOLEAN, _STRING = parse_type("BOOLEAN"), parse_type("STRING")
#: Operators with a node of their own that are no function by another name.
OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.Add: Operator.ADD,
    exp.And: Operator.AND,
    exp.Between: Operator.BETWEEN,
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
    exp.Or: Operator.OR,
    exp.Sub: Operator.SUBTRACT,
}
#: Nodes that are functions by another name.
_SIGNS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseNot: "~",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.Bracket: "[]",
    exp.DPipe: "concat",
    exp.If: "if",
    exp.IntDiv: "DIV",
    exp.Like: "like",
    exp.Mod: "mod",
    exp.StrPosition: "instr",
    exp.Substring: "substring",
}
_TRIMS = {None: "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
#: The units of EXTRACT, and the functions that give them.
_EXTRACTED = {
    "year": "year", "years": "year", "quarter": "quarter", "month": "month", "months": "month",
    "week": "weekofyear", "weeks": "weekofyear", "day": "day", "days": "day",
    "dayofweek": "dayofweek", "dow": "dayofweek", "doy": "dayofyear", "hour": "hour",
    "hours": "hour", "minute": "minute", "minutes": "minute",
}  # fmt: skip
_TRUTHS = (
    exp.And, exp.Between, exp.Boolean, exp.EQ, exp.GT, exp.GTE, exp.In, exp.Is, exp.LT, exp.LTE,
    exp.Like, exp.NEQ, exp.Not, exp.NullSafeEQ, exp.Or,
)  # fmt: skip


@dataclass(frozen=True)
class Names:
    """What the names of keys, aggregates and edges are: their types, and what the user wrote.

    `types` has the types of the parts of the expressions that Spark is asked for, by their text.
    """

    references: Mapping[str, DataType]
    written: Mapping[str, str]
    types: Mapping[str, DataType]


class Expression:
    """One expression, parsed: its root, and the text of each of its parts."""

    def __init__(self, text: str) -> None:
        """ValueError: it cannot be read."""
        source = Source("expression", f"SELECT {text}")
        try:
            self._tree: Tree = parse_query(source, source.tokenize(), [])
        except Refused as refused:
            raise ValueError(refused.problems[0].message) from refused
        [self.root] = self._tree.root.expressions
        if self._depth() > MAX_DEPTH:
            raise ValueError(
                f"an expression over aggregates is at most {MAX_DEPTH} operations deep; write it "
                f"in simpler steps, or compute it when you read the view"
            )

    def _depth(self) -> int:
        """Return how many operations stand within each other."""
        deepest, level = 0, [strip_parentheses(self.root)]
        while level:
            deepest += 1
            level = [operand for node in level for operand in operands_of(node)]
        return deepest

    def text(self, node: exp.Expr) -> str:
        """Return a part as it is written."""
        if isinstance(node, exp.Literal):  # that of `1.5BD` is made up, and has no place
            return str(node.name)
        return self._tree.text(node)

    def parts(self) -> list[exp.Expr]:
        """Return every part that has a value, parents before what they are over."""
        found: list[exp.Expr] = []
        waiting = [strip_parentheses(self.root)]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += reversed(operands_of(node))
        return found

    def type_of(self, node: exp.Expr, names: Names) -> DataType | None:
        """Return the type of a part; None: it is NULL."""
        if isinstance(node, exp.Null):
            return None
        if isinstance(node, _TRUTHS):
            return BOOLEAN
        if node.is_string:
            return _STRING
        if isinstance(node, exp.Column):
            first, *fields = (each.name for each in path_of(node))
            if first not in names.references:
                raise ValueError(f"{first} is no name of a value")  # of a lambda, or a unit
            found = names.references[first]
            for field in fields:
                found = _field(found, field)
            return found
        text = self.text(node)
        if text not in names.types:
            raise ValueError(f"{self.say(node, names)} has a type that no column can have")
        return names.types[text]

    def say(self, node: exp.Expr, names: Names) -> str:
        """Return a part as the user wrote it."""
        tokens = self._tree.tokens_of(node)
        written, at = "", tokens[0].start
        for token in tokens:
            if token.start < at:
                continue
            written += self._tree.source.text[at : token.start]
            text = self._tree.source.text[token.start : token.end + 1]
            written += names.written.get(text, text)
            at = token.end + 1
        return written


def say(expression: str, names: Names) -> str:
    """Return Spark SQL over names as the user wrote it. ValueError: it cannot be read."""

    def read() -> str:
        written = Expression(expression)
        return written.say(written.root, names)

    return on_own_stack(read)


def names_in(expression: str) -> frozenset[str]:
    """Return the names that Spark SQL may refer to: every word of it that is no text."""
    tokens = sqlglot.tokenize(expression, read="spark")
    return frozenset(each.text for each in tokens if each.token_type != TokenType.STRING)


def typed_parts(expressions: Iterable[str]) -> list[str]:
    """Return the parts of expressions whose types `Names` needs, as Spark SQL, each once.

    Those that are known to be conditions are left out: hundreds of them in a row would be told by
    as many texts, each as long as all before it. ValueError: an expression is too deep.
    """

    def find() -> list[str]:
        texts: dict[str, None] = {}
        for text in expressions:
            expression = Expression(text)
            for node in expression.parts():
                if not (isinstance(node, (exp.Null, exp.Column, *_TRUTHS)) or node.is_string):
                    texts[expression.text(node)] = None
        return list(texts)

    return on_own_stack(find)  # the front door reads as deep on a stack of its own


def call_of(node: exp.Expr) -> tuple[str, Function | None, list[exp.Expr]] | None:
    """Return the name, the function, if it is known, and the arguments; None: it is no call."""
    if isinstance(node, exp.Anonymous):
        name, arguments = node.name.lower(), node.expressions
    elif isinstance(node, exp.Extract):
        name = _EXTRACTED.get(node.this.name.lower(), "extract")
        arguments = [node.expression]
    elif isinstance(node, exp.Trim):
        is_plain = node.args.get("expression") is None
        name = _TRIMS[node.args.get("position")] if is_plain else "trim of characters"
        arguments = [node.this]
    elif isinstance(node, exp.Substring):
        name, arguments = "substring", [node.this, node.args.get("start"), node.args.get("length")]
    elif isinstance(node, exp.StrPosition):
        is_plain = node.args.get("position") is None
        name = "instr" if is_plain else "position from a place"
        arguments = [node.this, node.args["substr"]]
    elif isinstance(node, exp.If):
        name, arguments = "if", [node.this, node.args["true"], node.args.get("false")]
    elif type(node) in _SIGNS:
        name = _SIGNS[type(node)]
        arguments = [node.this, node.args.get("expression"), *node.expressions]
    else:
        return None
    given = [strip_parentheses(each) for each in arguments if isinstance(each, exp.Expr)]
    return name, FUNCTIONS.get(name), given


def operands_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the values that a node is over, in the order of its term's operands."""
    call = call_of(node)
    found: list[exp.Expr | None]
    if call is not None:
        found = list(call[2]) if _takes(*call[1:]) else []
    elif isinstance(node, exp.Case):
        branches = [part for each in node.args["ifs"] for part in (each.this, each.args["true"])]
        found = [node.this, *branches, node.args.get("default")]
    elif isinstance(node, exp.Between):
        found = [node.this, node.args["low"], node.args["high"]]
    elif isinstance(node, exp.Is | exp.Cast | exp.Dot):
        found = [node.this]
    elif isinstance(node, exp.Add | exp.Sub):
        sides = [node.this, node.expression]
        found = [each for each in sides if not isinstance(strip_parentheses(each), exp.Interval)]
    elif isinstance(node, exp.And | exp.Or):
        found = list(_chain(node))
    elif type(node) in OPERATORS:
        found = [node.this, node.args.get("expression"), *node.expressions]
    else:
        found = []
    return [strip_parentheses(each) for each in found if isinstance(each, exp.Expr)]


def _takes(function: Function | None, arguments: Sequence[exp.Expr]) -> bool:
    """Whether a function is known and takes such arguments; a lambda is no value by itself."""
    if function is None or any(isinstance(each, exp.Lambda) for each in arguments):
        return False
    return function.fewest <= len(arguments) <= function.most


def _chain(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield all that one AND, or one OR, after the other connects, in the order of the text."""
    waiting = [node]
    while waiting:
        each = strip_parentheses(waiting.pop())
        if type(each) is type(node):
            waiting += [each.expression, each.this]
        else:
            yield each


def _field(found: DataType, name: str) -> DataType:
    for field, part in zip(found.names, found.parts, strict=False):
        if field.lower() == name.lower():
            return part
    raise ValueError(f"{found.sql} has no field {name}")
