"""The tree of one query, with the tokens that it came from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import Token, TokenType, exp

from headrace.errors import Location, Problem
from headrace.sql.query.reading.calls import call_name
from headrace.sql.query.reading.syntax import (
    AggregateCall,
    Broken,
    Kind,
    has_span,
    holds,
    nodes_of,
    span_of,
)
from headrace.sql.text import NOT_FUNCTIONS, Refused, Source, is_literal, plain_name, quoted_name

__all__ = [
    "Tree",
    "aggregates_of",
    "is_broken",
    "is_lateral",
    "is_path",
    "parts_of",
    "path_of",
    "strip_parentheses",
]


@dataclass(frozen=True)
class Tree:
    """A query: its root, and the tokens that the spans of its nodes count."""

    source: Source
    tokens: tuple[Token, ...]
    root: exp.Expr
    end: int  # how many tokens the query has; those behind it could not be read
    #: What is sound and may surprise, and what could be written better; noted as it is read.
    warnings: list[Problem] = field(default_factory=list, compare=False)
    hints: list[Problem] = field(default_factory=list, compare=False)

    def first(self, node: exp.Expr) -> Token:
        """Return the first token of a node."""
        return self.tokens[span_of(node)[0]]

    def last(self, node: exp.Expr) -> Token:
        """Return the last token of a node."""
        return self.tokens[span_of(node)[1]]

    def tokens_of(self, node: exp.Expr) -> tuple[Token, ...]:
        """Return all tokens of a node."""
        first, last = span_of(node)
        return self.tokens[first : last + 1]

    def after(self, node: exp.Expr) -> Token | None:
        """Return the token behind a node, None at the end."""
        following = span_of(node)[1] + 1
        return self.tokens[following] if following < len(self.tokens) else None

    def text(self, node: exp.Expr) -> str:
        """Return a node as written."""
        return self.source.slice(self.tokens_of(node))

    def location(self, node: exp.Expr) -> Location:
        """Return where a node begins."""
        return self.source.location(self.first(node).start)

    def call_name(self, node: exp.Expr) -> str | None:
        """Return the name of the function that a node is a call of, as written, in lower case."""
        return call_name(self.tokens_of(node))

    def problem(self, where: exp.Expr | Token, message: str) -> Problem:
        """Return a problem at the beginning of a node, or at a token."""
        return self.source.problem(
            where if isinstance(where, Token) else self.first(where), message
        )

    def refuse(self, where: exp.Expr | Token, message: str) -> Refused:
        """Return the exception that refuses a node or a token."""
        return Refused(self.problem(where, message))

    @cached_property
    def names(self) -> dict[int, str]:
        """Names that are no columns, by index of their token, in the spelling that they have."""
        found: dict[int, str] = {}
        nodes = nodes_of(self.root)
        for node in nodes:
            if isinstance(node, exp.Identifier) and has_span(node):
                at = span_of(node)[0]
                is_field = isinstance(node.parent, exp.Dot) and node.arg_key == "expression"
                # After a dot every word is a name; elsewhere a word in quotes may be more without.
                is_plain = is_field or not is_literal(self.tokens[at])
                found[at] = plain_name(node.name) if is_plain else quoted_name(node.name)
            elif isinstance(node, exp.Kwarg):
                at = span_of(node)[0]
                found[at] = plain_name(str(self.tokens[at].text))
        for node in nodes:
            if not isinstance(node, exp.Anonymous):  # whose names in quotes are functions, too
                continue
            at = span_of(node)[0]
            if self.tokens[at].token_type == TokenType.IDENTIFIER:
                name = str(self.tokens[at].text).lower()
                is_word = name.upper() not in NOT_FUNCTIONS
                found[at] = plain_name(name) if is_word else quoted_name(name)
        return found


def parts_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the nodes right below a node that came from the text, in the order of the text."""
    return sorted((part for part in node.iter_expressions() if has_span(part)), key=span_of)


def strip_parentheses(node: exp.Expr) -> exp.Expr:
    """Return a node without parentheses around all of it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def is_path(node: exp.Expr) -> bool:
    """Whether a node is a column, or a field of one."""
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        node = node.this
    return isinstance(node, exp.Column)


def path_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the names that a path consists of; the last may be a star."""
    fields: list[exp.Expr] = []
    while isinstance(node, exp.Dot):
        fields.insert(0, node.expression)
        node = node.this
    assert isinstance(node, exp.Column)
    return [*node.parts, *fields]


def aggregates_of(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the aggregate calls in a node, also those within others, but for those OVER rows."""
    if not holds(node, Kind.AGGREGATE):
        return
    for call in node.find_all(AggregateCall):
        if not (isinstance(call.parent, exp.Window) and call.parent.this is call):
            yield call


def is_broken(nodes: Sequence[exp.Expr]) -> bool:
    """Whether one of the nodes could not be read."""
    return any(isinstance(node, Broken) for node in nodes)


def is_lateral(join: object) -> bool:
    """Whether what stands in the place of a join takes apart a column of the row itself."""
    return isinstance(join, exp.Join) and isinstance(join.this, exp.Lateral | exp.Unnest)
