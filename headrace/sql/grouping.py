"""GROUP BY: keys, calls, and outputs rewritten over them.

Promises:
- Whatever contains no aggregate is computed by Spark as a key, from the user's own text: it follows
  from the keys of GROUP BY, so one more key makes no other groups. (The plan refuses it over a
  FLOAT or DOUBLE, which has two zeros.)
- What is over aggregates is computed by the store, and uses nothing but what the store and Spark
  agree on; everything else is refused.
- The same expression is one key, the same call is one call, however often they are written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import Token, TokenType, exp

from headrace.model.definitions import Call, Key, Window
from headrace.sql.aggregates import FoundCall, read_call
from headrace.sql.expressions import (
    STANDS_FOR,
    Expression,
    Scope,
    is_plain_literal,
    is_window_part,
    refuse_null,
    strip_parentheses,
)
from headrace.sql.functions import AGGREGATES, FunctionCall, find_calls
from headrace.sql.text import word, words

__all__ = ["Groups", "contains_aggregate"]

_STORE_FUNCTIONS = words("abs cast coalesce if ifnull nullif nvl")
_STORE_NODES = (
    exp.Abs, exp.Add, exp.And, exp.Between, exp.Boolean, exp.Case, exp.Cast, exp.Coalesce,
    exp.Column, exp.Div, exp.EQ, exp.GT, exp.GTE, exp.Identifier, exp.If, exp.In, exp.Is, exp.LT,
    exp.LTE, exp.Literal, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Null, exp.NullSafeEQ,
    exp.Nullif, exp.Or, exp.Paren, exp.Sub, exp.TryCast,
)  # fmt: skip
#: What users call the nodes that sqlglot names otherwise.
_SIGNS = {"dpipe": "||", "mod": "%", "intdiv": "DIV", "dot": "a field", "bracket": "[]"}
_INSTEAD = "compute it when you read: SELECT round(total, 2) FROM view, or apply it to the argument"


def contains_aggregate(tokens: Sequence[Token]) -> bool:
    """Whether one of the aggregates is called anywhere in the tokens, as one (not OVER rows)."""
    for call in find_calls(tokens):
        following = tokens[call.end + 1] if call.end + 1 < len(tokens) else None
        if call.name in AGGREGATES and word(following) != "OVER":
            return True
    return False


def _within_aggregate(tokens: Sequence[Token], call: FunctionCall) -> bool:
    return any(
        each.name in AGGREGATES and each.at < call.at <= each.end for each in find_calls(tokens)
    )


class Groups:
    """The keys and calls of one grouped view, as they are found."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.source = scope.source
        self.window: Window | None = None
        self.keys: list[tuple[Key, exp.Expr]] = []
        self.found: list[FoundCall] = []

    @property
    def calls(self) -> tuple[Call, ...]:
        """The aggregate calls, each once."""
        return tuple(found.call for found in self.found)

    def add_key(self, expression: Expression, over: Sequence[str] = ()) -> str:
        """Return the name of the key for an expression, a new one if it is new.

        `over` names the keys that it follows from, if GROUP BY has not got it.
        """
        name = self._known_key(expression.tree)
        if name is None:
            name = f"k{len(self.keys)}"
            self.keys.append((Key(name, expression.text, tuple(over)), expression.tree))
        return name

    def is_window_part(self, expression: Expression) -> bool:
        """Whether an expression is the window's start or end and nothing more."""
        return is_window_part(expression.tree) is not None

    def rewrite(
        self, tokens: Sequence[Token], aliases: Mapping[str, exp.Expr] | None = None
    ) -> str:
        """Return an expression of SELECT or HAVING over the names of keys and calls.

        Refused: it uses a column that is not grouped, or what the store cannot compute.
        """
        for call in find_calls(tokens):
            if call.name == "watermark" and not _within_aggregate(tokens, call):
                raise self.source.refuse(
                    tokens[call.at],
                    "watermark() is a record's own, and a row has many of them; write "
                    "max(watermark()), or look at _closed when you read the view",
                )
        uses_alias = any(
            str(token.text).lower() in (aliases or {})
            for token in tokens
            if token.token_type == TokenType.IDENTIFIER or word(token)
        )
        if not contains_aggregate(tokens) and not uses_alias:
            return self._group_value(tokens)
        return self._over_aggregates(tokens, aliases)

    def _known_key(self, tree: exp.Expr) -> str | None:
        return next((key.name for key, known in self.keys if known == tree), None)

    def _group_value(self, tokens: Sequence[Token]) -> str:
        """Return the name of what holds for the whole group; it contains no aggregate."""
        expression = self.scope.read(tokens)
        refuse_null(self.source, expression)
        if is_plain_literal(expression.tree):
            return expression.text
        reference = is_window_part(expression.tree) or self._known_key(expression.tree)
        if reference is not None:
            return reference
        over_keys = self._replace_keys(expression.tree.copy())
        self._refuse_ungrouped(over_keys, tokens)
        self.refuse_many_windows(expression)
        keys = {key.name for key, _ in self.keys}
        found = {column.name for column in over_keys.find_all(exp.Column)}
        return self.add_key(expression, sorted(keys & found))

    def refuse_many_windows(self, expression: Expression) -> None:
        """Refuse a key over the window where a record has several, or does not know its own.

        Spark computes keys once per record, and such a key has a value per window, or one that
        records still to come decide.
        """
        if self.window is None or not any(is_window_part(node) for node in expression.tree.walk()):
            return
        if self.window.overlaps or self.window.gap_us is not None:
            which = "windows that overlap" if self.window.overlaps else "sessions"
            raise self.source.refuse(
                expression.tokens[0],
                f"{which} have a start and an end, and no expressions over them: select "
                "window.start, and compute the rest when you read the view",
            )

    def _replace_keys(self, tree: exp.Expr) -> exp.Expr:
        def replace(node: exp.Expr) -> exp.Expr:
            name = is_window_part(node) or self._known_key(strip_parentheses(node))
            return node if name is None else exp.column(name, table=STANDS_FOR)

        result: exp.Expr = tree.transform(replace)
        return result

    def _refuse_ungrouped(self, tree: exp.Expr, tokens: Sequence[Token]) -> None:
        for column in tree.find_all(exp.Column):
            if column.table != STANDS_FOR:
                spelled = self.scope.columns.get(column.name, column.name)
                raise self.source.refuse(
                    column.this.meta.get("start", tokens[0].start),
                    f"{spelled} is neither grouped nor aggregated; add it to GROUP BY, or write "
                    f"max({spelled})",
                )

    def _over_aggregates(
        self, tokens: Sequence[Token], aliases: Mapping[str, exp.Expr] | None
    ) -> str:
        stand_ins: dict[int, str] = {}
        shortened: list[Token] = []
        calls = {call.at: call for call in find_calls(tokens)}
        at = 0
        while at < len(tokens):
            call = calls.get(at)
            name = self._stand_in(tokens, call) if call is not None else None
            if call is not None and name is not None:
                end = call.end if call.name in AGGREGATES else call.closing
                first, last = tokens[at], tokens[end]
                stand_ins[first.start] = name
                shortened.append(
                    Token(TokenType.VAR, name, first.line, first.col, first.start, last.end)
                )
                at = end + 1
            else:
                shortened.append(tokens[at])
                at += 1
        expression = self.scope.read(shortened, stand_ins=stand_ins, aliases=aliases)
        tree = self._replace_keys(expression.tree.copy())
        self._refuse_ungrouped(tree, tokens)
        self._refuse_foreign(tree, tokens)
        bare = tree.transform(
            lambda node: exp.column(node.name) if isinstance(node, exp.Column) else node
        )
        return str(bare.sql(dialect="spark"))

    def _stand_in(self, tokens: Sequence[Token], call: FunctionCall) -> str | None:
        """Return the name that stands for a call, or None if the store computes the function."""
        if call.name in AGGREGATES:
            return self._add_call(tokens, call)
        if call.name in _STORE_FUNCTIONS:
            return None
        span = tokens[call.at : call.closing + 1]
        if contains_aggregate(span):
            raise self.source.refuse(
                tokens[call.at], f"{call.name}() cannot be applied to an aggregate; {_INSTEAD}"
            )
        return self._group_value(span)

    def _add_call(self, tokens: Sequence[Token], call: FunctionCall) -> str:
        if contains_aggregate(tokens[call.opening + 1 : call.end + 1]):
            raise self.source.refuse(
                tokens[call.at],
                f"{call.name}() of an aggregate is not possible; remove one of the two",
            )
        found = read_call(self.scope, tokens, call)
        for known in self.found:
            if known.same_as(found):
                return known.call.name
        name = f"a{len(self.found)}"
        self.found.append(replace(found, call=replace(found.call, name=name)))
        return name

    def _refuse_foreign(self, tree: exp.Expr, tokens: Sequence[Token]) -> None:
        for node in tree.walk(prune=lambda node: isinstance(node, exp.DataType)):
            if not isinstance(node, (*_STORE_NODES, exp.DataType)):
                inner = node.find(exp.Identifier)
                where = inner.meta.get("start") if inner is not None else None
                raise self.source.refuse(
                    tokens[0].start if where is None else where,
                    f"{_SIGNS.get(node.key, node.key.upper())} cannot be computed beside an "
                    f"aggregate; {_INSTEAD}",
                )
