"""Files into statements, and a cursor that reads a statement token by token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from headrace.errors import Location
from headrace.sql.text import Refused, Source, is_literal, word

__all__ = ["CLOSING", "OPENING", "Cursor", "Statement", "split_commas", "split_statements"]

#: Brackets, and what closes them.
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {closing: opening for opening, closing in OPENING.items()}


@dataclass(frozen=True)
class Statement:
    """One statement: its file and its tokens, without the semicolon; at least one token."""

    source: Source
    tokens: tuple[Token, ...]

    @property
    def sql(self) -> str:
        """The statement as written."""
        return self.source.slice(self.tokens)

    @property
    def location(self) -> Location:
        """Where it begins."""
        return self.source.location(self.tokens[0].start)


def split_statements(source: Source, tokens: Sequence[Token]) -> Iterator[Statement]:
    """Yield the statements between semicolons; empty ones are left out."""
    current: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if current:
                yield Statement(source, tuple(current))
            current = []
        else:
            current.append(token)
    if current:
        yield Statement(source, tuple(current))


def split_commas(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    """Return the parts between commas outside of all parentheses; a part may be empty."""
    parts: list[tuple[Token, ...]] = []
    begin = depth = 0
    for index, token in enumerate(tokens):
        depth += nesting(token)
        if depth == 0 and token.token_type == TokenType.COMMA:
            parts.append(tuple(tokens[begin:index]))
            begin = index + 1
    return [*parts, tuple(tokens[begin:])]


def nesting(token: Token) -> int:
    """Return 1 for a parenthesis, bracket or brace that opens, -1 for one that closes, else 0."""
    if is_literal(token):
        return 0
    return (token.text in OPENING) - (token.text in CLOSING)


class Cursor:
    """Reads tokens front to back; what is missing is answered with what was expected."""

    def __init__(self, source: Source, tokens: Sequence[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = 0

    @property
    def done(self) -> bool:
        """Whether all tokens are read."""
        return self.at >= len(self.tokens)

    def peek(self, ahead: int = 0) -> Token | None:
        """Return the token that comes next, or None at the end."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def next_is(self, *texts: str) -> bool:
        """Whether the next tokens are these words or symbols."""
        return all(_matches(self.peek(ahead), text) for ahead, text in enumerate(texts))

    def accept(self, *texts: str) -> bool:
        """Pass over these words or symbols if they come next."""
        found = self.next_is(*texts)
        if found:
            self.at += len(texts)
        return found

    def take(self, expected: str) -> Token:
        """Return the next token, whatever it is. Refused: there is none."""
        token = self.peek()
        if token is None:
            raise self.refuse(f"the statement ends where {expected} is expected")
        self.at += 1
        return token

    def expect(self, text: str, *, before: str = "") -> Token:
        """Pass over one word or symbol. Refused: something else stands there."""
        token = self.peek()
        if token is None or not _matches(token, text):
            raise self.refuse(f"{text} is expected {before or 'here'}{self.found()}")
        self.at += 1
        return token

    def take_name(self, kind: str) -> Token:
        """Return the token of a name. Refused: something else stands there."""
        token = self.peek()
        if token is None or not (word(token) or token.token_type == TokenType.IDENTIFIER):
            raise self.refuse(f"the {kind} is expected here{self.found()}")
        self.at += 1
        return token

    def take_parenthesised(self, what: str) -> tuple[Token, ...]:
        """Return the tokens within the parentheses that open here. Refused: they do not match."""
        opening = self.expect("(", before=f"before {what}")
        begin = self.at
        stack = [opening]
        while stack:
            token = self.peek()
            if token is None:
                raise self.source.refuse(stack[-1], f"{stack[-1].text} is never closed")
            change = nesting(token)
            if change > 0:
                stack.append(token)
            elif change < 0:
                if CLOSING[token.text] != stack[-1].text:
                    raise self.source.refuse(
                        token,
                        f"{token.text} closes a {stack[-1].text}; write "
                        f"{OPENING[stack[-1].text]} first",
                    )
                stack.pop()
            self.at += 1
        return tuple(self.tokens[begin : self.at - 1])

    def rest(self) -> tuple[Token, ...]:
        """Return all that is left, and be done."""
        tokens = tuple(self.tokens[self.at :])
        self.at = len(self.tokens)
        return tokens

    def found(self) -> str:
        """Return `, not x` for the next token, for messages."""
        token = self.peek()
        if token is None:
            return ", but the statement ends"
        return f", not {self.source.text[token.start : token.end + 1]}"

    def refuse(self, message: str) -> Refused:
        """Return the exception that refuses what stands at the cursor."""
        token = self.peek() or self.tokens[-1]
        return self.source.refuse(token, message)


def _matches(token: Token | None, text: str) -> bool:
    if token is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return False
    return bool(token.text.upper() == text)
