"""Reading on behind what cannot be read: at the next comma of its list, or at the next clause."""

from collections.abc import Callable
from typing import Any

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from headrace.errors import Problem
from headrace.model.names import closest
from headrace.sql.query.reading.cast_types import SPARK_TYPES
from headrace.sql.query.reading.clauses import foreign_clause
from headrace.sql.query.reading.syntax import Broken, set_span
from headrace.sql.statements import nesting
from headrace.sql.text import SPARK, Refused, Source, word

__all__ = ["FOREIGN_ERRORS", "Fault", "RecoveringParser"]

#: What sqlglot raises about text that it was not made for.
FOREIGN_ERRORS = (
    SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError, ArithmeticError,
    AssertionError,
)  # fmt: skip

#: What no name can be: where an expression is expected, it is missing.
_NO_NAMES = {
    TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.WHERE, TokenType.GROUP_BY,
    TokenType.HAVING, TokenType.ORDER_BY,
}  # fmt: skip
#: What an expression can end before.
_ENDS_PART = {
    *_NO_NAMES, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT,
    *SparkParser.QUERY_MODIFIER_PARSERS, TokenType.JOIN, *SparkParser.JOIN_KINDS,
    *SparkParser.JOIN_SIDES, *SparkParser.JOIN_METHODS, TokenType.LATERAL, TokenType.PARTITION_BY,
} - {TokenType.FOR, TokenType.LOCK, TokenType.USING, TokenType.FETCH}  # fmt: skip


class Fault(ParseError):
    """A part cannot be read; `message` is None where the token says it all."""

    def __init__(self, token: Token | None, message: str | None = None) -> None:
        super().__init__(message or "")
        self.token = token
        self.message = message


class RecoveringParser(SparkParser):
    """Spark's parser, with parts that are read by themselves."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        super().__init__(dialect=SPARK)
        self.source = source
        self.problems = problems
        self._attempts = 0  # within each other, which may fail without a word

    def fault(self, error: ParseError, first: Token, what: str) -> Refused:
        """Return the refusal of what an error of the parser is about."""
        token = (error.token if isinstance(error, Fault) else None) or first
        message = error.message if isinstance(error, Fault) else None
        near = self.source.text[token.start : token.end + 1]
        if message is None:
            following = self._next if token is self._curr else None
            message = foreign_clause(token, following)
        unread = f"this {what} cannot be read near {near}; check its syntax"
        return self.source.refuse(token, message or unread)

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """Raise the fault at a token, the next one if none is given; sqlglot calls this."""
        token = token or self._curr or self._prev or None
        if message.startswith("Found multiple") and token is not None:
            if not self._attempts:
                again = f"{word(token)} occurs twice; keep one"
                self.problems.append(self.source.problem(token, again))
            return
        if message.startswith("Expected TYPE") and token is not None and word(token):
            known = closest(word(token), SPARK_TYPES)
            raise Fault(token, f"there is no type {word(token)}{known}")
        raise Fault(token)

    def _try_parse(self, parse_method: Callable[[], Any], retreat: bool = False) -> Any:
        self._attempts += 1
        try:
            return super()._try_parse(parse_method, retreat)
        finally:
            self._attempts -= 1

    def _read_list(
        self, at: Token, clause: str, parse: Callable[[], exp.Expr | None]
    ) -> list[exp.Expr]:
        """Return the parts between commas; each is read by itself, whatever the others are."""
        parts: list[exp.Expr] = []
        missing = False
        while True:
            if self._has_no_part():
                missing = True
            else:
                parts.append(self._read_part(parse, in_list=True))
            if not self._match(TokenType.COMMA):
                break
        if missing and not self._attempts:
            message = (
                "there is an empty column between two commas"
                if parts
                else f"an expression is missing after {clause}; write one"
            )
            self.problems.append(self.source.problem(at, message))
        return parts

    def _read_part(self, parse: Callable[[], exp.Expr | None], *, in_list: bool) -> exp.Expr:
        begin = self._index
        try:
            if not in_list:
                self._refuse_start()
            part = parse()
            if self._match(TokenType.COMMA, advance=False) and not in_list:
                raise Fault(self._curr, "one expression is expected here; remove the comma")
            if part is None or not self._at_end_of_part() or self._is_open(begin):
                raise Fault(self._curr or self._prev)
        except ParseError as error:
            return self._give_up(error, begin, "expression", in_list=in_list)
        except FOREIGN_ERRORS:
            fault = Fault(self._tokens[begin], "this expression cannot be read; check its syntax")
            return self._give_up(fault, begin, "expression", in_list=in_list)
        return part

    def _refuse_start(self) -> None:
        if word(self._curr) in ("ALL", "AS", "DISTINCT"):  # which would belong to the SELECT
            raise Fault(self._curr, f"an expression cannot start with {word(self._curr)}")

    def _has_no_part(self) -> bool:
        return not self._curr or self._curr.token_type in _NO_NAMES

    def _at_end_of_part(self) -> bool:
        if not self._curr or self._curr.token_type in _ENDS_PART:
            return True
        return word(self._curr) == "EMIT" and bool(word(self._next))

    def _is_open(self, begin: int) -> bool:
        """Whether a parenthesis opened since, which sqlglot lets some functions leave so."""
        return sum(map(nesting, self._tokens[begin : self._index])) != 0

    def _give_up(self, error: ParseError, begin: int, what: str, *, in_list: bool) -> exp.Expr:
        """Say what is wrong, and pass over the rest of the part."""
        if self._attempts:
            raise error
        first = self._tokens[min(begin, self._tokens_size - 1)]
        self.problems += self.fault(error, first, what).problems
        at, depth = begin, 0
        while at < self._tokens_size:
            token = self._tokens[at]
            depth += nesting(token)
            # In a list the words of later clauses may be columns, which these cannot.
            ends = token.token_type in (_NO_NAMES if in_list else _ENDS_PART - {TokenType.COMMA})
            ends = ends and token.token_type != TokenType.R_PAREN
            if depth < 0 or (depth == 0 and ends and not self._is_distinct_from(at)):
                break
            at += 1
        self._retreat(at)
        broken = Broken()
        set_span(broken, begin, max(begin, at - 1))
        return broken

    def _is_distinct_from(self, at: int) -> bool:
        return word(self._tokens[at]) == "FROM" and word(self._tokens[at - 1]) == "DISTINCT"
