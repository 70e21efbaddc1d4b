"""The text of a file as tokens that know where they stand.

Promises:
- Every token's `start` and `end` are offsets into the file, so each has a line and a column.
- `'it''s'` is one token, and `1e3+5` are three, as Spark 4 reads them; sqlglot alone would make
  two of the first, and lose the quote, and one of the second.
- `render` gives the same text for the same tokens, whatever comments and white space stood between.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sqlglot import Dialect, Token, TokenType
from sqlglot.errors import SqlglotError

from headrace.errors import Location, Problem
from headrace.model.scalars import escape_braces

__all__ = [
    "SPARK",
    "Hole",
    "Refused",
    "Source",
    "TooMany",
    "identifier",
    "plain_name",
    "render",
    "word",
    "words",
]

SPARK = Dialect.get_or_raise("spark")


def words(text: str) -> frozenset[str]:
    """Return the set of words in a text."""
    return frozenset(text.split())


#: Words after which a parenthesis opens a group or a list, not the arguments of a function.
NOT_FUNCTIONS = words(
    "ALL AND ANY AS BETWEEN BY CASE DISTINCT DIV ELSE ESCAPE FOR FROM ILIKE IN INTERVAL IS LIKE "
    "NOT ON OR OVER REGEXP RLIKE SELECT SOME THEN VALUES WHEN WHERE"
)
#: Words that Spark's strictest settings would take for a call, not for a column.
_ALSO_FUNCTIONS = words("current_time localtimestamp session_user user")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")
#: sqlglot takes `1e3+5` for one number.
_SUM = re.compile(r"[0-9]+\.?[0-9]*[eE][0-9]+(?=[+-])")
_QUOTED = frozenset(
    {TokenType.STRING, TokenType.IDENTIFIER, TokenType.RAW_STRING, TokenType.HEX_STRING}
)
_OPERATOR = re.compile(r"[<>=|&!:^]+")


class Hole(NamedTuple):
    """What stands in the place of tokens: the index of the last of them, and the text."""

    last: int
    text: str


class Refused(Exception):
    """What was being read is refused; carries why. It never leaves this room."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


class TooMany(Refused):
    """There is more of something than can be; what follows it is not looked at."""


@dataclass(frozen=True)
class Source:
    """One file of definitions, and the environment variables that its options may name."""

    file: str
    text: str
    environment: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def location(self, offset: int) -> Location:
        """Return the line and column of an offset."""
        line = bisect_right(self._line_starts, offset)
        return Location(self.file, line, offset - self._line_starts[line - 1] + 1)

    def problem(self, where: Token | int, message: str) -> Problem:
        """Return a problem at a token or an offset."""
        return Problem(self.location(where if isinstance(where, int) else where.start), message)

    def refuse(self, where: Token | int, message: str) -> Refused:
        """Return the exception that refuses what stands at a token or an offset."""
        return Refused(self.problem(where, message))

    def tokenize(self) -> list[Token]:
        """Return the tokens. Refused: a quote or comment has no end, or a character no meaning."""
        try:
            tokens = SPARK.tokenize(self.text)
        except SqlglotError as error:
            offset = self._unclosed()
            raise self.refuse(
                offset, "the quote or comment that begins here is never closed"
            ) from error
        return self._join_quotes(self._part_numbers(tokens))

    def slice(self, tokens: Sequence[Token]) -> str:
        """Return the text from the first token to the last, as written."""
        return self.text[tokens[0].start : tokens[-1].end + 1]

    def _part_numbers(self, tokens: Sequence[Token]) -> list[Token]:
        parted: list[Token] = []
        for token in tokens:
            text = self.text[token.start : token.end + 1]
            found = _SUM.match(text)
            if found is None:
                parted.append(token)
            elif not parted or parted[-1].end < token.start:  # else that of `1e3+1L` again
                for at, part in ((0, text[: found.end()]), (found.end(), text[found.end() :])):
                    offset = token.start + at
                    parted += [
                        Token(each.token_type, each.text, token.line, token.col,
                              each.start + offset, each.end + offset)
                        for each in Source(self.file, part).tokenize()
                    ]  # fmt: skip
        return parted

    def _join_quotes(self, tokens: Sequence[Token]) -> list[Token]:
        joined: list[Token] = []
        for token in tokens:
            last = joined[-1] if joined else None
            if (
                last is not None
                and last.token_type == token.token_type == TokenType.STRING
                and last.end + 1 == token.start
                and self.text[last.end] == self.text[token.start]
            ):
                text = f"{last.text}{self.text[last.end]}{token.text}"
                joined[-1] = Token(
                    TokenType.STRING, text, token.line, token.col, last.start, token.end
                )
            else:
                joined.append(token)
        return joined

    def _unclosed(self) -> int:
        """Return where the quote or comment begins that has no end."""
        pattern = re.compile(
            r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|(/\*|['\"`])", re.S
        )
        found = (match.start() for match in pattern.finditer(self.text) if match.group(1))
        return next(found, 0)


def word(token: Token | None) -> str:
    """Return a bare word in upper case; for anything else, quoted names too, an empty string."""
    if token is None or token.token_type in _QUOTED:
        return ""
    text: str = token.text  # hot: asked of every token, many times over
    return text.upper() if text[:1].isalnum() or text[:1] == "_" else ""


def identifier(name: str) -> str:
    """Return a name as SQL, in backquotes where it would not be read as a name otherwise."""
    if name.isidentifier() and name.isascii() and name.lower() not in _ALSO_FUNCTIONS:
        tokens = SPARK.tokenize(name)
        if len(tokens) == 1 and tokens[0].token_type == TokenType.VAR:
            return name
    return quoted_name(name)


def plain_name(name: str) -> str:
    """Return a name as it is if it is a word, else in backquotes.

    For fields, since after a dot every word is a name to Spark, and for what stood without quotes.
    """
    return name if _PLAIN.fullmatch(name) else quoted_name(name)


def quoted_name(name: str) -> str:
    """Return a name in backquotes."""
    return f"`{name.replace('`', '``')}`"


def render(
    source: Source, tokens: Sequence[Token], names: Mapping[int, str], holes: Mapping[int, Hole]
) -> str:
    """Return tokens as canonical text: words in lower case, one way of spacing, no comments.

    `names` maps indexes of tokens to what stands there instead, `holes` indexes of first tokens to
    what stands in the place of several. The functions and literals are the user's own, because
    what sqlglot generates is not always what Spark would read.
    """
    parts: list[str] = []
    previous: Token | None = None
    at = 0
    while at < len(tokens):
        token = tokens[at]
        hole = holes.get(at)
        last = at if hole is None else hole.last
        if previous is not None and token.start == previous.start:
            at += 1  # `1L` is three tokens over the same two characters
            continue
        text = escape_braces(names[at]) if at in names else _written(source, token)
        if hole is not None:
            token = Token(TokenType.VAR, "x", 1, 1, token.start, tokens[last].end)
            text = hole.text
        if previous is not None and _spaced(previous, token):
            parts.append(" ")
        parts.append(text)
        previous = token
        at = last + 1
    return "".join(parts)


def _written(source: Source, token: Token) -> str:
    text = source.text[token.start : token.end + 1]
    if token.token_type == TokenType.STRING and text[:1] in "'\"":
        quote = text[0]
        # A doubled quote, which every reader of this text must take for one quote.
        inner = re.sub(
            rf"\\.|{quote}{quote}",
            lambda match: "\\" + quote if match[0] == quote * 2 else match[0],
            text[1:-1],
            flags=re.DOTALL,
        )
        return escape_braces(f"{quote}{inner}{quote}")
    if token.token_type == TokenType.NUMBER:
        digits = _NUMBER.fullmatch(text)
        return f"{digits[1].lower()}{digits[2].upper()}" if digits else text
    if token.token_type == TokenType.HEX_STRING:
        return text.lower()
    return escape_braces(" ".join(text.lower().split()) if word(token) else text)


def is_literal(token: Token) -> bool:
    """Whether a token is a text, whatever it says, or a name in quotes."""
    return token.token_type in _QUOTED


def _spaced(left: Token, right: Token) -> bool:
    if right.text in (")", "]", ",", ".") and not is_literal(right):
        return False
    if left.text in ("(", "[", ".") and not is_literal(left):
        return False
    if right.text == "[" and not is_literal(right):
        return False
    if right.text == "(" and not is_literal(right):
        is_name = left.token_type == TokenType.IDENTIFIER or bool(word(left))
        return not (is_name and word(left) not in NOT_FUNCTIONS)
    adjacent = left.end + 1 == right.start
    # `>>` reaches us as two tokens, and must not come apart.
    both_operators = _OPERATOR.fullmatch(left.text) and _OPERATOR.fullmatch(right.text)
    return not (adjacent and both_operators)
