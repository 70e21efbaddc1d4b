"""The parser of queries: sqlglot's own for Spark, fed with our tokens; nodes know their place.

Promises:
- Every node of a tree that came from the text has a span: the indexes of its first and last token.
- Functions keep the name that was written: all calls are `exp.Anonymous`, but for those with a
  syntax of their own (CAST, EXTRACT, ...), and aggregates, which are `AggregateCall`.
- What cannot be read is one problem and a `Broken` node in its place, and reading goes on behind
  it: at the next comma of its list, or at the next clause.
- How deep a query may be nested is counted on tokens, before it is parsed.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from headrace.errors import Problem
from headrace.sql.functions import AGGREGATES, starts_operand
from headrace.sql.statements import nesting
from headrace.sql.text import SPARK, Refused, Source, word

__all__ = ["MAX_NESTING", "AggregateCall", "Broken", "Missing", "parse_query", "span_of"]

#: Parentheses, CASE, NOT and the like within each other.
MAX_NESTING = 64

_SPAN = "span"
_TOO_DEEP = "the query is nested too deeply; write it in simpler steps"
_SYNTAX = "check its syntax"
_SET_OPERATORS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
#: What sqlglot raises about text that it was not made for.
_FOREIGN_ERRORS = (
    SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError, ArithmeticError,
    AssertionError,
)  # fmt: skip


class AggregateCall(exp.Expression):
    """`name([DISTINCT] arguments [IGNORE NULLS]) [FILTER (WHERE condition)] [IGNORE NULLS]`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,  # the name, in lower case
        "expressions": False,
        "quantifier": False,  # DISTINCT or ALL
        "nulls": False,  # IGNORE or RESPECT
        "filter": False,
    }


class Missing(exp.Expression):
    """An argument that is not there, beside a comma that is."""

    arg_types: ClassVar[dict[str, bool]] = {}


class Broken(exp.Expression):
    """What could not be read; that is said already."""

    arg_types: ClassVar[dict[str, bool]] = {}


def span_of(node: exp.Expr) -> tuple[int, int]:
    """Return the indexes of the first and last token of a node that came from the text."""
    first, last = node.meta[_SPAN]
    return int(first), int(last)


def parse_query(source: Source, tokens: Sequence[Token], problems: list[Problem]) -> exp.Expr:
    """Return the tree of a query; what is wrong with single parts is added to the problems.

    Refused: nothing could be read, or it is nested too deeply.
    """
    _refuse_deep(source, tokens)
    parser = _Parser(source, problems)
    try:
        return parser.read(list(tokens))
    except RecursionError as error:  # by a way of nesting that is not counted
        raise source.refuse(tokens[0], _TOO_DEEP) from error
    except ParseError as error:
        raise parser.fault(error, tokens[0], "query") from error
    except _FOREIGN_ERRORS as error:
        raise source.refuse(tokens[0], f"this query cannot be read; {_SYNTAX}") from error


def _refuse_deep(source: Source, tokens: Sequence[Token]) -> None:
    depth = signs = 0
    for token in tokens:
        depth += nesting(token) + (word(token) == "CASE") - (word(token) == "END")
        if word(token) == "NOT" or token.text in ("-", "+", "~", "!", "->", "<"):
            signs += 1
        elif token.text in (",", ")", "]") or word(token) in ("AND", "OR"):
            signs = 0
        if depth + signs > MAX_NESTING:
            raise source.refuse(token, _TOO_DEEP)


class _Fault(ParseError):
    """A part cannot be read; `message` is None where the token says it all."""

    def __init__(self, token: Token | None, message: str | None = None) -> None:
        super().__init__(message or "")
        self.token = token
        self.message = message


class _Parser(SparkParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM",
                     "TRY_CAST")
    }  # fmt: skip

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        super().__init__(dialect=SPARK)
        self.source = source
        self.problems = problems
        self._attempts = 0
        self._begins: list[int] = []

    def read(self, tokens: list[Token]) -> exp.Expr:
        """Return the tree of all tokens, every node with its span."""
        self.reset()
        self.sql = self.source.text
        self._chunks = [[_as_name(tokens, at) for at in range(len(tokens))]]
        self._advance_chunk()
        tree = self._parse_select()
        if tree is None:
            raise _Fault(self._curr)
        _complete_spans(tree, {token.start: at for at, token in reversed([*enumerate(tokens)])})
        tree.meta["rest"] = self._index
        result: exp.Expr = tree
        return result

    def fault(self, error: ParseError, first: Token, what: str) -> Refused:
        """Return the refusal of what an error of the parser is about."""
        token = (error.token if isinstance(error, _Fault) else None) or first
        message = error.message if isinstance(error, _Fault) else None
        near = self.source.text[token.start : token.end + 1]
        return self.source.refuse(
            token, message or f"this {what} cannot be read near {near}; {_SYNTAX}"
        )

    def raise_error(self, message: str, token: Token | None = None) -> None:
        token = token or self._curr or self._prev or None
        if message.startswith("Found multiple") and token is not None:
            if not self._attempts:
                again = f"{word(token)} stands twice; keep one"
                self.problems.append(self.source.problem(token, again))
            return
        raise _Fault(token)

    def _try_parse(self, parse_method: Callable[[], Any], retreat: bool = False) -> Any:
        self._attempts += 1
        try:
            return super()._try_parse(parse_method, retreat)
        finally:
            self._attempts -= 1

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        self._begins.append(self._index)
        try:
            return super()._parse_select_query(*args, **kwargs)
        finally:
            self._begins.pop()

    def _parse_set_operations(self, this: exp.Expr | None) -> exp.Expr | None:
        if isinstance(this, exp.Select) and self._begins and _SPAN not in this.meta:
            this.meta[_SPAN] = (self._begins[-1], self._index - 1)
        return super()._parse_set_operations(this)

    def _parse_projections(self) -> tuple[list[exp.Expr], None]:
        at = self._tokens[self._begins[-1]]
        return self._read_list(at, "SELECT", self._read_output), None

    def _read_output(self) -> exp.Expr | None:
        self._refuse_start()
        return self._parse_expression()

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        if not skip_group_by_token and not self._match(TokenType.GROUP_BY):
            return None

        def parse() -> exp.Expr | None:
            found = self._parse_grouping_sets() or self._parse_cube_or_rollup()
            return found or self._parse_disjunction()

        return exp.Group(expressions=self._read_list(self._prev, "GROUP BY", parse))

    def _parse_where(self, skip_where_token: bool = False) -> exp.Where | None:
        if not skip_where_token and not self._match(TokenType.WHERE):
            return None
        return exp.Where(this=self._read_condition(self._prev))

    def _parse_having(self, skip_having_token: bool = False) -> exp.Having | None:
        if not skip_having_token and not self._match(TokenType.HAVING):
            return None
        return exp.Having(this=self._read_condition(self._prev))

    def _parse_from(
        self, joins: bool = False, skip_from_token: bool = False, consume_pipe: bool = False
    ) -> exp.From | None:
        if not skip_from_token and not self._match(TokenType.FROM):
            return None
        at, begin = self._prev, self._index
        try:
            if self._has_no_part():
                raise _Fault(at, "nothing stands after FROM; write what it is about")
            token = self._curr
            if not (word(token) or token.token_type == TokenType.IDENTIFIER or token.text == "("):
                found = self.source.text[token.start : token.end + 1]
                raise _Fault(token, f"the name of a stream is expected here, not {found}")
            return exp.From(this=self._parse_table(joins=joins, consume_pipe=consume_pipe))
        except ParseError as error:
            return exp.From(this=self._give_up(error, begin, "FROM", in_list=False))

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        return None if word(self._curr) == "EMIT" else super()._parse_table_alias(*args, **kwargs)

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
                else f"nothing stands after {clause}; write what it is about"
            )
            self.problems.append(self.source.problem(at, message))
        return parts

    def _read_condition(self, at: Token) -> exp.Expr:
        begin = self._index
        if self._has_no_part():
            fault = _Fault(at, f"nothing stands after {word(at)}; write what it is about")
            return self._give_up(fault, begin, "expression", in_list=False)
        return self._read_part(self._parse_disjunction, in_list=False)

    def _read_part(self, parse: Callable[[], exp.Expr | None], *, in_list: bool) -> exp.Expr:
        begin = self._index
        try:
            if not in_list:
                self._refuse_start()
            part = parse()
            if self._match(TokenType.COMMA, advance=False) and not in_list:
                raise _Fault(self._curr, "one expression is expected here; remove the comma")
            if part is None or not self._at_end_of_part() or self._is_open(begin):
                raise _Fault(self._curr or self._prev)
        except ParseError as error:
            return self._give_up(error, begin, "expression", in_list=in_list)
        except _FOREIGN_ERRORS:
            fault = _Fault(self._tokens[begin], f"this expression cannot be read; {_SYNTAX}")
            return self._give_up(fault, begin, "expression", in_list=in_list)
        return part

    def _refuse_start(self) -> None:
        if word(self._curr) in ("ALL", "AS", "DISTINCT"):  # which would belong to the SELECT
            raise _Fault(self._curr, f"an expression cannot start with {word(self._curr)}")

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
        broken.meta[_SPAN] = (begin, max(begin, at - 1))
        return broken

    def _is_distinct_from(self, at: int) -> bool:
        return word(self._tokens[at]) == "FROM" and word(self._tokens[at - 1]) == "DISTINCT"

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        name = str(self._curr.text).lower() if self._curr else ""
        if (
            name in AGGREGATES
            and self._next.token_type == TokenType.L_PAREN
            and self._curr.token_type != TokenType.STRING
            and self._prev.token_type != TokenType.DOT
            and (name not in ("any", "some") or starts_operand(self._prev))
        ):
            return self._read_aggregate(name)
        return super()._parse_function_call(*args, **kwargs)

    def _read_aggregate(self, name: str) -> exp.Expr | None:
        begin = self._index
        self._advance(2)
        call = AggregateCall(this=name)
        if word(self._curr) in ("DISTINCT", "ALL"):
            call.set("quantifier", word(self._curr))
            self._advance()
        arguments = [self._read_argument(call)]
        while self._match(TokenType.COMMA):
            arguments.append(self._read_argument(call))
        if len(arguments) > 1 or not isinstance(arguments[0], Missing):
            call.set("expressions", arguments)
        self._match_r_paren()
        self._take_nulls(call)
        if self._match_pair(TokenType.FILTER, TokenType.L_PAREN, advance=False):
            call.set("filter", self._read_filter(name))
        self._take_nulls(call)
        call.meta[_SPAN] = (begin, self._index - 1)
        return self._parse_window(call)

    def _read_argument(self, call: AggregateCall) -> exp.Expr:
        self._take_nulls(call)
        if self._curr and self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            return Missing()
        begin = self._index
        argument = self._parse_disjunction()
        if argument is None:
            raise _Fault(self._curr or self._prev)
        argument.meta.setdefault(_SPAN, (begin, self._index - 1))
        self._take_nulls(call)
        return argument

    def _take_nulls(self, call: AggregateCall) -> None:
        if word(self._curr) in ("IGNORE", "RESPECT") and word(self._next) == "NULLS":
            call.set("nulls", word(self._curr))
            self._advance(2)

    def _read_filter(self, name: str) -> exp.Expr:
        filter_ = self._curr
        self._advance(2)
        where = self._curr
        if not self._match(TokenType.WHERE):
            raise _Fault(filter_, f"FILTER is written {name}(x) FILTER (WHERE condition)")
        if self._match(TokenType.R_PAREN, advance=False):
            raise _Fault(where, "nothing stands after WHERE; write a condition")
        condition = self._parse_disjunction()
        if condition is None:
            raise _Fault(self._curr or self._prev)
        self._match_r_paren()
        return condition


#: What no name can be: where an expression is expected, it is missing.
_NO_NAMES = {
    TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.WHERE, TokenType.GROUP_BY,
    TokenType.HAVING, TokenType.ORDER_BY,
}  # fmt: skip
_ENDS_PART = {
    *_NO_NAMES, *_SET_OPERATORS,
    *SparkParser.QUERY_MODIFIER_PARSERS, TokenType.JOIN, *SparkParser.JOIN_KINDS,
    *SparkParser.JOIN_SIDES, *SparkParser.JOIN_METHODS, TokenType.LATERAL,
} - {TokenType.FOR, TokenType.LOCK, TokenType.USING, TokenType.FETCH}  # fmt: skip


def _as_name(tokens: Sequence[Token], at: int) -> Token:
    """Return a token, as that of a name where sqlglot takes it for the beginning of a clause."""
    token = tokens[at]
    following = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if word(token) in ("WINDOW", "SESSION") and following == "(":
        return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
    return token


def _stamping(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of the parser that notes which tokens the node that it returns came from."""

    def parse(self: _Parser, *args: Any, **kwargs: Any) -> Any:
        begin = self._index
        node = method(self, *args, **kwargs)
        end = self._index - 1
        if isinstance(node, exp.Expr) and end >= begin and all(node is not arg for arg in args):
            for part in (*args, node):  # what was read before, and is a part of it now
                if isinstance(part, exp.Expr) and _SPAN in part.meta:
                    begin = min(begin, part.meta[_SPAN][0])
            node.meta[_SPAN] = (begin, end)
        return node

    return parse


for _name in dir(_Parser):
    if _name.startswith("_parse_") and callable(getattr(_Parser, _name)):
        setattr(_Parser, _name, _stamping(getattr(_Parser, _name)))


def _complete_spans(tree: exp.Expr, index: dict[int, int]) -> None:
    """Give each node the span of its parts, too: of `a + b + c` the parser returns one node."""
    for node in reversed(list(tree.walk())):
        spans = [part.meta[_SPAN] for part in node.iter_expressions() if _SPAN in part.meta]
        if _SPAN in node.meta:
            spans.append(node.meta[_SPAN])
        elif node.meta.get("start") in index:
            at = index[node.meta["start"]]
            spans.append((at, at))
        if spans:
            node.meta[_SPAN] = (min(first for first, _ in spans), max(last for _, last in spans))
