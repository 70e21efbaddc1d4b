"""Aggregate calls: `name([DISTINCT] arguments) [FILTER (WHERE condition)] [IGNORE NULLS]`."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from sqlglot import Token, TokenType, exp

from headrace.model.nodes import WINDOW_COLUMNS, Call
from headrace.model.scalars import Scalar
from headrace.sql.query.expressions.binding import Expressions
from headrace.sql.query.reading.calls import AGGREGATES
from headrace.sql.query.reading.syntax import AggregateCall, Missing
from headrace.sql.query.reading.trees import aggregates_of
from headrace.sql.text import Refused, word

__all__ = ["read_call"]

MAX_KEPT = 10_000
#: How many values are kept by those that keep many, where it is not said; 0: it has to be.
_KEPT = {
    "approx_top_k": 5,  # as in Spark
    "bottomk": 0,
    "bottomk_distinct": 0,
    "collect_list": 1_000,
    "collect_set": 1_000,
    "collect_set_with_nulls": 1_000,
    "first_n": 0,
    "last_n": 0,
    "topk": 0,
    "topk_distinct": 0,
}
#: Those that repeated values make no difference to.
_ALIKE = (
    "bit_and", "bit_or", "bool_and", "bool_or", "bottomk_distinct", "collect_set", "max", "min",
    "topk_distinct",
)  # fmt: skip
#: What a call with DISTINCT means.
_DISTINCT = {
    "avg": "avg_distinct",
    "bottomk": "bottomk_distinct",
    "collect_list": "collect_set",
    "count": "count_distinct",
    "sum": "sum_distinct",
    "topk": "topk_distinct",
}
#: What a call means with IGNORE NULLS or RESPECT NULLS, where that is another one or the same.
_NULLS = {
    ("collect_list", "IGNORE"): "collect_list",
    ("collect_list", "RESPECT"): "first_n",
    ("collect_set", "IGNORE"): "collect_set",
    ("collect_set", "RESPECT"): "collect_set_with_nulls",
    ("first_n", "IGNORE"): "collect_list",
    ("first_n", "RESPECT"): "first_n",
}
_TAKING_NULLS = {"first", "last", "last_n"} | {function for function, _ in _NULLS}
MAX_SHARE_DIGITS = 9  # after the point


def read_call(expressions: Expressions, node: exp.Expr) -> Call:
    """Return what an aggregate call means. Refused: it cannot be read, or means nothing."""
    assert isinstance(node, AggregateCall)
    return _Reader(expressions, node).read()


def _together(values: Sequence[Scalar]) -> Scalar:
    """Return several values as one, which is null where one of them is."""
    names = [f"c{number}" for number in range(len(values))]
    known = " and ".join(f"{{{number}}} is not null" for number in range(len(values)))
    fields = ", ".join(f"'{name}', {{{number}}}" for number, name in enumerate(names))
    one = Scalar(f"case when {known} then named_struct({fields}) end", tuple(names))
    return one.substitute(dict(zip(names, values, strict=True)))


class _Reader:
    def __init__(self, expressions: Expressions, node: AggregateCall) -> None:
        self.expressions = expressions
        self.tree = expressions.tree
        self.node = node
        self.name = str(node.this)
        self.function = AGGREGATES[self.name]
        self.arguments: list[exp.Expr] = list(node.expressions)
        self.nulls: str = node.args.get("nulls") or ""

    def read(self) -> Call:
        if len([*aggregates_of(self.node)]) > 1:
            raise self.tree.refuse(
                self.node, f"{self.name}() cannot take another aggregate; remove one of the two"
            )
        self._check_nulls()
        condition = self.node.args.get("filter")
        bound = None if condition is None else self._bind(condition)
        self._take_quantifier()
        if any(isinstance(argument, Missing) for argument in self.arguments):
            raise self._refuse(
                "an argument is missing next to a comma; write it, or remove the comma"
            )
        if self.function in ("first", "last") and len(self.arguments) == 2:
            self._take_ignores_nulls()
        parameters = self._take_parameters()
        values = () if self._is_star() else tuple(map(self._bind, self.arguments))
        if self.function == "count_distinct" and len(values) > 1:
            values = (_together(values),)
        ignores_nulls = False
        if (self.function, self.nulls) in _NULLS:
            self.function = _NULLS[self.function, self.nulls]
        else:
            ignores_nulls = self.nulls == "IGNORE"
        return Call(self.function, values, parameters, ignores_nulls, bound)

    def _check_nulls(self) -> None:
        if self.nulls and self.function not in _TAKING_NULLS:
            raise self._refuse(
                f"{self.nulls} NULLS belongs to first, last, first_n, last_n, collect_list and "
                f"collect_set; nulls never count here, so remove it"
            )

    def _refuse(self, message: str) -> Refused:
        return self.tree.refuse(self.node, f"{self.name}(): {message}")

    def _bind(self, node: exp.Expr) -> Scalar:
        scalar = self.expressions.bind(node)
        if self.expressions.scope.has_window and set(scalar.refs) & set(WINDOW_COLUMNS):
            if scalar.name is None:
                message = (
                    "an aggregate cannot read the window's edges; use window.start and window.end "
                    f"outside of {self.name}()"
                )
            else:
                message = (
                    f"{self.name}() of the window is the window itself; use window.start or "
                    "window.end"
                )
            raise self.tree.refuse(self.node, message)
        return scalar

    def _is_star(self) -> bool:
        if len(self.arguments) != 1 or not isinstance(self.arguments[0], exp.Star):
            return False
        if self.function != "count":
            raise self.tree.refuse(
                self.node, f"{self.name}(*) is not allowed; write a column, or count(*)"
            )
        return True

    def _take_quantifier(self) -> None:
        quantifier = self.node.args.get("quantifier")
        if quantifier is None:
            return
        if self.function not in _DISTINCT or quantifier == "ALL":
            self._refuse_quantifier(quantifier)
        self.function = _DISTINCT[self.function]
        if not self.arguments or isinstance(self.arguments[0], exp.Star):
            raise self.tree.refuse(
                self.node,
                f"{self.name}(DISTINCT ...) needs a column; write {self.name}(DISTINCT x)",
            )

    def _take_ignores_nulls(self) -> None:
        """Take the second argument of first and last, Spark's other way of IGNORE NULLS."""
        argument = self.arguments.pop()
        if not isinstance(argument, exp.Boolean):
            raise self._refuse(f"write {self.name}(x) IGNORE NULLS")
        if self.nulls:
            raise self._refuse(
                f"its second argument and {self.nulls} NULLS mean the same; write "
                f"{self.name}(x) {self.nulls} NULLS"
            )
        self.nulls = "IGNORE" if word(self.tree.first(argument)) == "TRUE" else "RESPECT"

    def _refuse_quantifier(self, quantifier: str) -> None:
        if quantifier == "ALL":
            raise self.tree.refuse(
                self.node, f"{self.name}(ALL ...) is {self.name}(...); remove ALL"
            )
        if self.function in _ALIKE:
            message = f"{self.name}(DISTINCT ...) is {self.name}(...); remove DISTINCT"
        else:
            message = (
                f"{self.name}(DISTINCT ...) cannot be kept turn by turn; remove DISTINCT, or write "
                f"collect_set(x) and work it out when you read"
            )
        raise self.tree.refuse(self.node, message)

    def _take_parameters(self) -> tuple[str, ...]:
        if self.function == "approx_percentile":
            return (self._share(self.tree.tokens_of(self.arguments.pop())),)
        if self.function in ("min_by", "max_by") and len(self.arguments) == 3:
            return (self._kept(self.tree.tokens_of(self.arguments.pop())),)
        if self.function not in _KEPT:
            return ()
        if len(self.arguments) < 2:
            return (str(_KEPT[self.function]),)
        return (self._kept(self.tree.tokens_of(self.arguments.pop())),)

    def _share(self, tokens: tuple[Token, ...]) -> str:
        text = tokens[0].text if len(tokens) == 1 else ""
        try:
            share = Decimal(text) if tokens[0].token_type == TokenType.NUMBER else Decimal(-1)
        except InvalidOperation:
            share = Decimal(-1)
        if not 0 <= share <= 1 or round(share, MAX_SHARE_DIGITS) != share:
            raise self.tree.refuse(
                tokens[0],
                f"{self.name}() takes a percentile: write a number from 0 "
                f"to 1, such as 0.95, once for each",
            )
        return f"{share.normalize():f}"

    def _kept(self, tokens: tuple[Token, ...]) -> str:
        number = tokens[0].text if len(tokens) == 1 else ""
        is_number = bool(tokens) and tokens[0].token_type == TokenType.NUMBER and number.isdigit()
        if not is_number or not 1 <= int(number) <= MAX_KEPT:
            raise self.tree.refuse(
                tokens[0],
                f"{self.name}() takes the number of values to keep: write a whole number from 1 "
                f"to {MAX_KEPT:,}",
            )
        return str(int(number))
