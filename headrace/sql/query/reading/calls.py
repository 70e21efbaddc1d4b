"""Function calls among tokens: where they stand, and under which name they were written.

sqlglot's tree knows a call, but not every name: `cast`, `if` and their kin are nodes of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from headrace.sql.statements import nesting
from headrace.sql.text import NOT_FUNCTIONS, word, words

__all__ = ["AGGREGATES", "FunctionCall", "call_name", "find_calls", "starts_operand"]

#: Aggregates that can be merged turn by turn, and the names that Spark also knows them by.
AGGREGATES = {
    "any": "bool_or",
    "any_value": "first",  # of any value the earliest, so that it is the same in every replay
    "approx_count_distinct": "approx_count_distinct",
    "approx_percentile": "approx_percentile",
    "approx_top_k": "approx_top_k",
    "array_agg": "collect_list",
    "avg": "avg",
    "bit_and": "bit_and",
    "bit_or": "bit_or",
    "bit_xor": "bit_xor",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
    "bottomk": "bottomk",
    "bottomk_distinct": "bottomk_distinct",
    "collect_list": "collect_list",
    "collect_set": "collect_set",
    "corr": "corr",
    "count": "count",
    "count_if": "count_if",
    "covar_pop": "covar_pop",
    "covar_samp": "covar_samp",
    "every": "bool_and",
    "first": "first",
    "first_n": "first_n",
    "first_value": "first",
    "histogram": "histogram",
    "kurtosis": "kurtosis",
    "last": "last",
    "last_n": "last_n",
    "last_value": "last",
    "max": "max",
    "max_by": "max_by",
    "mean": "avg",
    "min": "min",
    "min_by": "min_by",
    "mode": "mode",
    "percentile_approx": "approx_percentile",
    "regr_avgx": "regr_avgx",
    "regr_avgy": "regr_avgy",
    "regr_count": "regr_count",
    "regr_intercept": "regr_intercept",
    "regr_r2": "regr_r2",
    "regr_slope": "regr_slope",
    "regr_sxx": "regr_sxx",
    "regr_sxy": "regr_sxy",
    "regr_syy": "regr_syy",
    "skewness": "skewness",
    "some": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "sum": "sum",
    "topk": "topk",
    "topk_distinct": "topk_distinct",
    "topkdistinct": "topk_distinct",  # as ksqlDB writes it
    "try_avg": "avg",  # which never overflows here
    "try_sum": "try_sum",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
}

_BEFORE_OPERANDS = words("AND OR NOT WHEN THEN ELSE SELECT WHERE HAVING ON") | {"", "GROUP BY"}


@dataclass(frozen=True)
class FunctionCall:
    """A call within tokens: indexes of its name, of its parentheses and of its last token.

    That is the closing parenthesis, or the end of the FILTER and IGNORE NULLS that follow it.
    """

    name: str  # in lower case
    at: int
    opening: int
    closing: int
    end: int


def find_calls(tokens: Sequence[Token]) -> Iterator[FunctionCall]:
    """Yield every function call, also within others, in the order of their names."""
    types = 0  # within each other: ARRAY<DECIMAL(10, 2)>
    for at, token in enumerate(tokens[:-1]):
        opening = tokens[at + 1]
        previous = tokens[at - 1].text if at > 0 else ""
        is_cast = previous == "::" or previous.upper() == "AS"
        is_nested = opening.text == "<" and word(token) in ("ARRAY", "MAP", "STRUCT")
        if is_nested and (is_cast or types):  # elsewhere a column may be called so
            types += 1
        elif set(token.text) == {">"}:
            types = max(0, types - len(token.text))
        if opening.token_type != TokenType.L_PAREN:
            continue
        is_name = bool(word(token)) and word(token) not in NOT_FUNCTIONS
        # ANY and SOME are also functions, but not after LIKE and not after a comparison.
        if word(token) in ("ANY", "SOME"):
            is_name = at == 0 or starts_operand(tokens[at - 1])
        is_type = is_cast or types > 0
        is_suffix = previous == ")" and word(token) == "FILTER"
        if is_suffix:
            continue
        if (is_name and not is_type) or token.token_type == TokenType.IDENTIFIER:
            closing = _closing(tokens, at + 1)
            end = _suffix_end(tokens, closing)
            yield FunctionCall(str(token.text).lower(), at, at + 1, closing, end)


def starts_operand(previous: Token) -> bool:
    """Whether an operand begins after a token, and not the right side of a comparison."""
    return word(previous) in _BEFORE_OPERANDS and (
        previous.text not in ("=", "<", ">", "<=", ">=", "<>", "!=", "==")
    )


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        depth += nesting(tokens[index])
        if depth == 0:
            return index
    return len(tokens) - 1


def _suffix_end(tokens: Sequence[Token], closing: int) -> int:
    """Return the index of the last token of FILTER (...) and IGNORE NULLS, in either order."""
    end = closing
    while end + 2 < len(tokens):
        first, second = tokens[end + 1], tokens[end + 2]
        if word(first) in ("IGNORE", "RESPECT") and word(second) == "NULLS":
            end += 2
        elif word(first) == "FILTER" and second.token_type == TokenType.L_PAREN:
            end = _closing(tokens, end + 2)
        else:
            break
    return end


def call_name(tokens: Sequence[Token]) -> str | None:
    """Return the name, in lower case, if the tokens are one call and nothing else."""
    first = next(find_calls(tokens[:2]), None) if len(tokens) > 2 else None
    if first is None or _closing(tokens, 1) != len(tokens) - 1:
        return None
    return first.name
