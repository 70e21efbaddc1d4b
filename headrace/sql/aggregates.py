"""Aggregate calls: `name([DISTINCT] arguments) [FILTER (WHERE condition)] [IGNORE NULLS]`."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sqlglot import Token, TokenType, exp

from headrace.model.definitions import Call
from headrace.sql.expressions import Expression, Scope, is_window_part
from headrace.sql.functions import AGGREGATES, FunctionCall
from headrace.sql.statements import split_commas
from headrace.sql.text import Source, word

__all__ = ["FoundCall", "read_call"]

#: How many values are kept by those that keep many: at most, and where it is not said.
_KEPT = {
    "approx_top_k": (10_000, 5),  # five as in Spark
    "collect_list": (10_000, 1_000),
    "collect_set": (10_000, 1_000),
}
MAX_SHARE_DIGITS = 9  # after the point

_NULLS = ("IGNORE", "RESPECT")


@dataclass(frozen=True)
class FoundCall:
    """A call without its name, and the trees of its expressions, by which equal ones are known."""

    call: Call
    trees: tuple[exp.Expr | None, ...]

    def same_as(self, other: "FoundCall") -> bool:
        """Whether both calls mean the same."""
        return self.trees == other.trees and self._written == other._written

    @property
    def _written(self) -> tuple[object, ...]:
        return (self.call.function, self.call.parameters, self.call.ignores_nulls)


def read_call(scope: Scope, tokens: Sequence[Token], call: FunctionCall) -> FoundCall:
    """Return what an aggregate call means. Refused: it cannot be read, or means nothing."""
    return _Reader(scope, tokens, call).read()


class _Reader:
    def __init__(self, scope: Scope, tokens: Sequence[Token], call: FunctionCall) -> None:
        self.scope = scope
        self.source: Source = scope.source
        self.call = call
        self.name = call.name
        self.function = AGGREGATES[call.name]
        self.where = tokens[call.at]
        self.inside = list(tokens[call.opening + 1 : call.closing])
        self.suffix = list(tokens[call.closing + 1 : call.end + 1])

    def read(self) -> FoundCall:
        nulls = self._take_nulls()
        condition = self._take_filter()
        if self.inside and word(self.inside[0]) in ("DISTINCT", "ALL"):
            if self.function != "count" or word(self.inside[0]) == "ALL":
                self._refuse_quantifier(word(self.inside[0]))
            self.function = "count_distinct"
            del self.inside[0]
            if not self.inside or self.inside[0].text == "*":
                raise self.source.refuse(
                    self.where, f"{self.name}(DISTINCT ...) is over one column; write it"
                )
        parts = split_commas(self.inside)
        if len(parts) > 1 and not all(parts):
            raise self._refuse("an argument is missing beside a comma; write it, or remove both")
        if self.function in ("first", "last") and len(parts) == 2:
            # Spark's other way of writing IGNORE NULLS.
            if word(parts[1][0]) not in ("TRUE", "FALSE") or len(parts[1]) > 1:
                raise self._refuse(f"write {self.name}(x) IGNORE NULLS")
            if nulls:
                raise self._refuse(
                    f"its second argument and {nulls} NULLS speak of the same; write "
                    f"{self.name}(x) {nulls} NULLS"
                )
            nulls = "IGNORE" if word(parts.pop()[0]) == "TRUE" else "RESPECT"
        parameters = self._take_parameters(parts)
        if [token.text for token in self.inside] == ["*"]:
            if self.function != "count":
                raise self.source.refuse(
                    self.where, f"{self.name}(*) means nothing; write a column, or count(*)"
                )
            values: list[Expression] = []
        else:
            values = self._read_values(parts)
        argument = values[0] if values else None
        by = values[1] if len(values) > 1 else None
        found = Call(
            "",
            self.function,
            argument.text if argument else None,
            by.text if by else None,
            parameters,
            nulls == "IGNORE",
            condition.text if condition else None,
        )
        trees = tuple(each.tree if each else None for each in (argument, by, condition))
        return FoundCall(found, trees)

    def _refuse(self, message: str) -> Exception:
        return self.source.refuse(self.where, f"{self.name}(): {message}")

    def _take_nulls(self) -> str:
        """Take IGNORE or RESPECT NULLS out of the parentheses or from behind them."""
        for tokens in (self.inside, self.suffix):
            for at in range(len(tokens) - 1):
                if word(tokens[at]) in _NULLS and word(tokens[at + 1]) == "NULLS":
                    found = word(tokens[at])
                    if self.function not in ("first", "last"):
                        raise self._refuse(
                            f"{found} NULLS belongs to first and last; nulls never count here, so "
                            "remove it"
                        )
                    del tokens[at : at + 2]
                    return found
        return ""

    def _take_filter(self) -> Expression | None:
        if not self.suffix:
            return None
        body = self.suffix[2:-1]
        if len(self.suffix) < 4 or self.suffix[-1].text != ")" or word(body[0]) != "WHERE":
            raise self.source.refuse(
                self.suffix[0], f"FILTER is written {self.name}(x) FILTER (WHERE condition)"
            )
        if len(body) == 1:
            raise self.source.refuse(body[0], "nothing stands after WHERE; write a condition")
        condition = self.scope.read(body[1:])
        self._refuse_window(condition)
        return condition

    def _refuse_quantifier(self, quantifier: str) -> None:
        if quantifier == "ALL":
            raise self.source.refuse(
                self.where, f"{self.name}(ALL ...) is {self.name}(...); remove ALL"
            )
        if self.function in ("min", "max", "bool_and", "bool_or"):
            message = f"{self.name}(DISTINCT ...) is {self.name}(...); remove DISTINCT"
        else:
            message = (
                f"{self.name}(DISTINCT ...) cannot be kept turn by turn; remove DISTINCT, or write "
                f"collect_set(x) and work it out when you read"
            )
        raise self.source.refuse(self.where, message)

    def _take_parameters(self, parts: list[tuple[Token, ...]]) -> tuple[str, ...]:
        if self.function == "approx_percentile":
            return (self._share(parts.pop()),)
        if self.function not in _KEPT:
            return ()
        most, default = _KEPT[self.function]
        return (str(default) if len(parts) < 2 else self._whole_number(parts.pop(), most),)

    def _share(self, tokens: tuple[Token, ...]) -> str:
        text = tokens[0].text if len(tokens) == 1 else ""
        try:
            share = Decimal(text) if tokens[0].token_type == TokenType.NUMBER else Decimal(-1)
        except InvalidOperation:
            share = Decimal(-1)
        if not 0 <= share <= 1 or round(share, MAX_SHARE_DIGITS) != share:
            raise self.source.refuse(
                tokens[0],
                f"{self.name}() takes which share of the values lies below: write a number from 0 "
                f"to 1, such as 0.95, once for each",
            )
        return f"{share.normalize():f}"

    def _whole_number(self, tokens: tuple[Token, ...], largest: int) -> str:
        number = tokens[0].text if len(tokens) == 1 else ""
        is_number = bool(tokens) and tokens[0].token_type == TokenType.NUMBER and number.isdigit()
        if not is_number or not 1 <= int(number) <= largest:
            raise self.source.refuse(
                tokens[0],
                f"{self.name}() keeps so many values: write a whole number from 1 to {largest:,}",
            )
        return str(int(number))

    def _read_values(self, parts: Sequence[tuple[Token, ...]]) -> list[Expression]:
        values = [self.scope.read(part) for part in parts]
        for value in values:
            self._refuse_window(value)
        return values

    def _refuse_window(self, expression: Expression) -> None:
        if any(is_window_part(node) for node in expression.tree.walk()):
            raise self.source.refuse(
                self.where,
                f"{self.name}() of the window is the window itself; use window.start or window.end",
            )
