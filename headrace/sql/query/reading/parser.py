"""The parser of queries: sqlglot's own for Spark, fed with our tokens; nodes know their place.

Promises:
- Every node of a tree that came from the text has a span: the indexes of its first and last token.
- Functions keep the name that was written: all calls are `exp.Anonymous`, but for those with a
  syntax of their own (CAST, EXTRACT, ...), and aggregates, which are `AggregateCall`.
- What cannot be read is one problem and a `Broken` node in its place, and reading goes on behind
  it: at the next comma of its list, or at the next clause.
- How deep a query may be nested is counted on tokens, before it is parsed.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser

from headrace.errors import Problem
from headrace.sql.query.reading.calls import AGGREGATES, starts_operand
from headrace.sql.query.reading.depth import TOO_DEEP, refuse_deep, refuse_open, refuse_unreadable
from headrace.sql.query.reading.recovery import FOREIGN_ERRORS, Fault, RecoveringParser
from headrace.sql.query.reading.syntax import (
    WINDOW_TABLES,
    AggregateCall,
    Missing,
    WindowTable,
    complete_spans,
    has_span,
    set_span,
    stamping,
)
from headrace.sql.query.reading.trees import Tree, is_broken
from headrace.sql.text import Source, word

__all__ = ["parse_query"]


def parse_query(source: Source, tokens: Sequence[Token], problems: list[Problem]) -> Tree:
    """Return the tree of a query; what is wrong with single parts is added to the problems.

    Refused: nothing could be read, or it is nested too deeply.
    """
    refuse_deep(source, tokens)
    refuse_open(source, tokens)
    refuse_unreadable(source, tokens)
    parser = _Parser(source, problems)
    try:
        root, end = parser.read(list(tokens))
    except RecursionError as error:  # by a way of nesting that is not counted
        raise source.refuse(tokens[0], TOO_DEEP) from error
    except ParseError as error:
        raise parser.fault(error, tokens[0], "query") from error
    except FOREIGN_ERRORS as error:
        raise source.refuse(tokens[0], "this query cannot be read; check its syntax") from error
    return Tree(source, tuple(tokens), root, end)


class _Parser(RecoveringParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
    # By the name before a bracket, which may be a column: `list[0]`, `array(a, b)[0]`.
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM",
                     "TRY_CAST")
    }  # fmt: skip

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        super().__init__(source, problems)
        self._begins: list[int] = []  # of the queries that are being read

    def read(self, tokens: list[Token]) -> tuple[exp.Expr, int]:
        """Return the tree of a query, every node with its span, and how many tokens it has."""
        self.reset()
        self.sql = self.source.text
        self._chunks = [[_as_name(tokens, at) for at in range(len(tokens))]]
        self._advance_chunk()
        tree = self._parse_statement()
        if tree is None:
            raise Fault(self._curr)
        complete_spans(tree, {token.start: at for at, token in reversed([*enumerate(tokens)])})
        return tree, self._index

    def _parse_statement(self) -> exp.Expr | None:
        """Return the query that stands here; no other statement may."""
        token = self._curr
        if token and word(token) not in ("SELECT", "WITH", "FROM") and token.text != "(":
            found = self.source.text[token.start : token.end + 1]
            raise Fault(token, f"SELECT is expected here, not {found}")
        query = self._parse_select(nested=True, parse_subquery_alias=False)
        if isinstance(query, exp.Subquery):  # behind whose parenthesis another query may stand
            query = self._parse_query_modifiers(self._parse_set_operations(query))
        return query

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if word(self._curr) == "FROM":
            raise Fault(self._curr, "a query begins with SELECT; write SELECT ... FROM ...")
        self._begins.append(self._index)
        try:
            return super()._parse_select_query(*args, **kwargs)
        finally:
            self._begins.pop()

    def _parse_set_operations(self, this: exp.Expr | None) -> exp.Expr | None:
        if isinstance(this, exp.Select) and self._begins and not has_span(this):
            set_span(this, self._begins[-1], self._index - 1)
        return super()._parse_set_operations(this)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if isinstance(this, exp.Bracket) and not has_span(this):  # `a[0]` of `a[0][1]`
            set_span(this, self._index - 1, self._index - 1)
        if this is not None and self._match_pair(TokenType.L_BRACKET, TokenType.R_BRACKET):
            this = exp.Bracket(this=this, expressions=[])  # `ARRAY[]`, which sqlglot refuses
        return super()._parse_bracket(this)

    def _parse_projections(self) -> tuple[list[exp.Expr], None]:
        at = self._tokens[self._begins[-1]]
        return self._read_list(at, "SELECT", self._read_output), None

    def _read_output(self) -> exp.Expr | None:
        self._refuse_start()
        return self._parse_expression()

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        if not skip_group_by_token and not self._match(TokenType.GROUP_BY):
            return None

        over_all: list[exp.Expr] = []  # WITH ROLLUP and its kin, which are about the whole list

        def parse() -> exp.Expr | None:
            sets = self._parse_grouping_sets() or self._parse_cube_or_rollup()
            found = sets or self._parse_disjunction()
            if word(self._curr) == "WITH" and word(self._next) in ("CUBE", "ROLLUP"):
                self._advance()
                over_all.append(exp.Cube() if word(self._curr) == "CUBE" else exp.Rollup())
                self._advance()
            elif self._match(TokenType.GROUPING_SETS, advance=False):
                over_all.extend(filter(None, [self._parse_grouping_sets()]))
            return found

        parts = self._read_list(self._prev, "GROUP BY", parse)
        if len(over_all) == 1 and not is_broken(parts):
            [whole] = over_all
            if not whole.expressions:
                whole.set("expressions", parts)
            else:
                whole.set("keys", parts)  # in the order that grouping_id() counts them
            parts = [whole]
        return exp.Group(expressions=parts)

    def _parse_cube_or_rollup(
        self,
        with_prefix: bool = False,  # noqa: ARG002 (of sqlglot; GROUP BY reads WITH CUBE itself)
    ) -> exp.Cube | exp.Rollup | None:
        # sqlglot reads no condition as a key here, and leaves out what is missing.
        kinds: dict[str, type[exp.Cube | exp.Rollup]] = {"CUBE": exp.Cube, "ROLLUP": exp.Rollup}
        kind = kinds.get(word(self._curr))
        if kind is None:
            return None
        self._advance()
        return kind(expressions=self._parse_wrapped_csv(self._read_key))

    def _parse_grouping_set(self) -> exp.Expr | None:
        sets = self._parse_grouping_sets() or self._parse_cube_or_rollup()
        return sets or self._read_key()

    def _read_key(self) -> exp.Expr:
        key = self._parse_disjunction()
        if key is None:
            raise Fault(self._curr or self._prev)
        return key

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
                raise Fault(at, "the name of a stream is missing after FROM; write one")
            token = self._curr
            is_name = bool(word(token)) and token.token_type != TokenType.NUMBER
            if not (is_name or token.token_type == TokenType.IDENTIFIER or token.text == "("):
                found = self.source.text[token.start : token.end + 1]
                raise Fault(token, f"the name of a stream is expected here, not {found}")
            return exp.From(this=self._parse_table(joins=joins, consume_pipe=consume_pipe))
        except ParseError as error:
            return exp.From(this=self._give_up(error, begin, "FROM", in_list=False))

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        ahead = self._tokens[self._index : self._index + 4]
        is_wrapped = [word(token) or token.text for token in ahead[:2]] == ["TABLE", "("]
        called = ahead[2:] if is_wrapped else ahead[:2]
        name = word(called[0]).lower() if len(called) == 2 else ""
        if name in WINDOW_TABLES and called[1].text == "(":
            return self._read_window_table(name, is_wrapped=is_wrapped)
        return super()._parse_table(*args, **kwargs)

    def _read_window_table(self, name: str, *, is_wrapped: bool) -> exp.Expr:
        begin = self._index + 2 * is_wrapped
        self._advance(2 + 2 * is_wrapped)
        table = WindowTable(this=name)
        arguments: list[exp.Expr] = []
        while True:
            keyword = None
            if self._next and self._next.token_type == TokenType.FARROW:
                keyword = str(self._curr.text).lower()
                self._advance(2)
            if keyword == "data" or (keyword is None and not table.args.get("source")):
                self._read_window_source(table, name)
            else:
                arguments.append(self._read_window_argument(keyword))
            if not self._match(TokenType.COMMA):
                break
        table.set("expressions", arguments)
        self._match_r_paren()
        set_span(table, begin, self._index - 1)
        if not table.args.get("source"):
            raise Fault(self._tokens[begin], f"{name.upper()} takes a relation: write TABLE s")
        if is_wrapped:
            self._match_r_paren()
        return exp.Table(this=table, alias=self._parse_table_alias())

    def _read_window_source(self, table: WindowTable, name: str) -> None:
        at = self._curr
        if word(at) == "TABLE":
            self._advance()
        elif at is None or at.text != "(":
            raise Fault(at, f"{name.upper()} takes its relation as TABLE s")
        source = super()._parse_table()
        if source is None:
            raise Fault(self._curr or self._prev)
        table.set("source", source)
        if self._match(TokenType.PARTITION_BY):
            is_list = self._match(TokenType.L_PAREN, advance=False)
            keys = (
                self._parse_wrapped_csv(self._parse_disjunction)
                if is_list
                else [self._parse_disjunction()]
            )
            table.set("partition", [key for key in keys if key is not None])

    def _read_window_argument(self, keyword: str | None) -> exp.Expr:
        is_descriptor = word(self._curr) == "DESCRIPTOR" and self._next.text == "("
        self._advance(2 * is_descriptor)
        begin = self._index
        argument = self._parse_disjunction()
        if argument is None:
            raise Fault(self._curr or self._prev)
        if not has_span(argument):
            set_span(argument, begin, self._index - 1)
        if is_descriptor:
            self._match_r_paren()
        argument.meta["keyword"] = keyword
        argument.meta["is_descriptor"] = is_descriptor
        return argument

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        return None if word(self._curr) == "EMIT" else super()._parse_table_alias(*args, **kwargs)

    def _read_condition(self, at: Token) -> exp.Expr:
        begin = self._index
        if self._has_no_part():
            fault = Fault(at, f"an expression is missing after {word(at)}; write one")
            return self._give_up(fault, begin, "expression", in_list=False)
        return self._read_part(self._parse_disjunction, in_list=False)

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        name = str(self._curr.text).lower() if self._curr else ""
        is_call = bool(self._next) and self._next.token_type == TokenType.L_PAREN
        if is_call and self._prev and self._prev.token_type == TokenType.DOT:
            raise Fault(self._curr, f"functions have no catalog or schema; write {name}() alone")
        if (
            name in AGGREGATES
            and is_call
            and self._curr.token_type != TokenType.STRING
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
        set_span(call, begin, self._index - 1)
        return self._parse_window(call)

    def _read_argument(self, call: AggregateCall) -> exp.Expr:
        self._take_nulls(call)
        if self._curr and self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            return Missing()
        begin = self._index
        argument = self._parse_disjunction()
        if argument is None:
            raise Fault(self._curr or self._prev)
        if not has_span(argument):
            set_span(argument, begin, self._index - 1)
        self._take_nulls(call)
        if self._match(TokenType.ORDER_BY, advance=False):
            raise Fault(
                self._curr,
                f"ORDER BY within {call.this}() is not supported: its values are in the order of "
                "their event times already; remove it",
            )
        return argument

    def _take_nulls(self, call: AggregateCall) -> None:
        if word(self._curr) in ("IGNORE", "RESPECT") and word(self._next) == "NULLS":
            if call.args.get("nulls"):
                raise Fault(self._curr, f"{word(self._curr)} NULLS stands twice; keep one")
            call.set("nulls", word(self._curr))
            self._advance(2)

    def _read_filter(self, name: str) -> exp.Expr:
        filter_ = self._curr
        self._advance(2)
        where = self._curr
        if not self._match(TokenType.WHERE):
            raise Fault(filter_, f"FILTER is written {name}(x) FILTER (WHERE condition)")
        if self._match(TokenType.R_PAREN, advance=False):
            raise Fault(where, "a condition is missing after WHERE; write one")
        condition = self._parse_disjunction()
        if condition is None:
            raise Fault(self._curr or self._prev)
        self._match_r_paren()
        return condition


def _as_name(tokens: Sequence[Token], at: int) -> Token:
    """Return a token, as that of a name where sqlglot may take it for another word.

    Those that it takes for clauses or types, and all words behind a dot: `flags.true`.
    """
    token = tokens[at]
    following = tokens[at + 1].text if at + 1 < len(tokens) else ""
    is_called = word(token) in ("WINDOW", "SESSION") and following == "("
    is_maker = word(token) in ("ARRAY", "MAP") and following == "["
    is_part = at > 0 and tokens[at - 1].token_type == TokenType.DOT and bool(word(token))
    if is_called or is_maker or (is_part and token.token_type != TokenType.NUMBER):
        return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
    return token


#: Between operators: what they return has the span of its parts, which is completed at the end.
#: They are most of the calls that an operand takes.
_OF_PARTS = frozenset(
    f"_parse_{each}"
    for each in ("assignment", "at_time_zone", "comparison", "conjunction", "disjunction",
                 "equality", "factor", "factor_operand", "join_parts", "select_or_expression",
                 "term")
)  # fmt: skip
for _name in dir(_Parser):
    # `_parse_wrapped` returns what stands in parentheses, which are no part of it.
    is_plain = "wrapped" not in _name and _name not in _OF_PARTS
    if _name.startswith("_parse_") and is_plain and callable(getattr(_Parser, _name)):
        setattr(_Parser, _name, stamping(getattr(_Parser, _name)))
