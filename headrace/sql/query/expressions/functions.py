"""Which functions a view may call: the answer must follow from the log alone, and must merge.

Judged on the tokens of a node, where every function has the name that was written.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from sqlglot import Token, TokenType

from headrace.errors import Problem
from headrace.model.names import closest
from headrace.sql.query.expressions.foreign_functions import FOREIGN_FUNCTIONS
from headrace.sql.query.expressions.spark_functions import SPARK_AGGREGATES, SPARK_FUNCTIONS
from headrace.sql.query.reading.calls import AGGREGATES, FunctionCall, find_calls
from headrace.sql.statements import nesting, split_commas
from headrace.sql.text import Source, word, words

__all__ = ["refused_functions"]

_REGRESSION = sorted(name for name in AGGREGATES if name.startswith("regr_"))
#: How the aggregates are written that take anything but one value.
_USAGE = {
    "approx_percentile": (2, 2, "(x, 0.95); its error is always 1 %"),
    "approx_top_k": (1, 2, "(x) or {name}(x, 10)"),
    "bottomk": (2, 2, "(x, 10): the 10 least values"),
    "bottomk_distinct": (2, 2, "(x, 10): the 10 least values, each once"),
    "collect_list": (1, 2, "(x) or {name}(x, 100)"),
    "collect_set": (1, 2, "(x) or {name}(x, 100)"),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp"), (2, 2, "(x, y)")),
    "first": (1, 2, "(x), or {name}(x) IGNORE NULLS"),
    "first_n": (2, 2, "(x, 10): the values of the first 10 records"),
    "last": (1, 2, "(x), or {name}(x) IGNORE NULLS"),
    "last_n": (2, 2, "(x, 10): the values of the last 10 records"),
    "max_by": (2, 3, "(x, y): x where y is greatest; or {name}(x, y, 10)"),
    "min_by": (2, 3, "(x, y): x where y is least; or {name}(x, y, 10)"),
    **dict.fromkeys(_REGRESSION, (2, 2, "(y, x): y is the one that depends on x")),
    "topk": (2, 2, "(x, 10): the 10 greatest values"),
    "topk_distinct": (2, 2, "(x, 10): the 10 greatest values, each once"),
}

_TIME = words(
    "curdate current_date current_row_timestamp current_time current_timestamp current_watermark "
    "getdate localtime localtimestamp mz_now now proctime sysdate systimestamp"
)
_CHANCE = words("rand randn random randstr shuffle uniform uuid aes_encrypt")
_PLACE = words(
    "current_catalog current_database current_path current_schema current_timezone current_user "
    "input_file_block_length input_file_block_start input_file_name java_method "
    "monotonically_increasing_id reflect session_user spark_partition_id try_reflect user "
    "version"
)
#: Those that Spark also calls without parentheses, unless a column has that name.
_BARE = words(
    "current_date current_time current_timestamp current_user localtimestamp session_user user"
)
_GENERATORS = words("explode explode_outer inline inline_outer posexplode posexplode_outer unnest")
_OTHER_GENERATORS = {
    "json_tuple": "get_json_object once for each name, with its path, such as '$.name'",
    "stack": "LATERAL VIEW inline(array(struct(a, b), struct(c, d))) t AS x, y",
    "flatten_outer": "LATERAL VIEW OUTER explode(x) t AS c",
    "variant_explode": "LATERAL VIEW explode(from_json(json, 'array<...>')) t AS c",
    "variant_explode_outer": "LATERAL VIEW OUTER explode(from_json(json, 'array<...>')) t AS c",
}
_RANKS = words("cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number")
_OTHER_AGGREGATES = (SPARK_AGGREGATES - AGGREGATES.keys()) | {"group_concat", "quantile"}
_INSTEAD = {
    **dict.fromkeys(
        (name for name in SPARK_AGGREGATES if name.startswith("kll_")),
        "write approx_percentile(x, p)",
    ),
    **dict.fromkeys(
        (name for name in SPARK_AGGREGATES if name.startswith(("hll_", "theta_"))),
        "write approx_count_distinct(x)",
    ),
    "approx_top_k_accumulate": "write approx_top_k(x, k)",
    "group_concat": "write collect_list(x), and join its values when you read",
    "listagg": "write collect_list(x), and join its values when you read",
    "string_agg": "write collect_list(x), and join its values when you read",
    "histogram_numeric": "write histogram(x), or approx_percentile(x, p) once for each p",
    "median": "write approx_percentile(x, 0.5)",
    "percentile": "write approx_percentile(x, p)",
    "percentile_cont": "write approx_percentile(x, p)",
    "percentile_disc": "write approx_percentile(x, p)",
    "quantile": "write approx_percentile(x, p)",
}
#: What is known besides the functions that Spark lists: our own, and those with their own syntax.
_OTHER_FUNCTIONS = words(
    "watermark unnest tumble hop session cumulate tumble_start tumble_end tumble_rowtime hop_start "
    "hop_end hop_rowtime session_start session_end session_rowtime try_cast timestampadd "
    "timestampdiff varchar char timestamp_ntz timestamp_ltz filter placing group within over"
)
_NOW_LITERAL = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_TYPED_LITERALS = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIME")


def refused_functions(
    source: Source, tokens: Sequence[Token], columns: Collection[str]
) -> list[Problem]:
    """Return a problem for everything in an expression that no view may use.

    `columns` are the stream's, in lower case: a column hides a function without parentheses.
    """
    problems: list[Problem] = []
    for call in find_calls(tokens):
        message = _call_fault(call) or _arguments_fault(call, tokens)
        if message is None:
            message = _suffix_fault(call, tokens)
        if message is not None:
            problems.append(source.problem(tokens[call.at], message))
    subquery = 0  # how many parentheses are open around what is reported already
    for index, token in enumerate(tokens):
        subquery = max(0, subquery + nesting(token)) if subquery else 0
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        is_part = index > 0 and tokens[index - 1].text == "."  # then it is a name, whatever it says
        message, text = None, "" if is_part else word(token)
        if text == "SELECT" and not subquery:
            subquery = 1
            message = (
                "queries within expressions are not supported; a query may stand in FROM, in "
                "parentheses, or as WITH name AS (...)"
            )
        elif text in _TYPED_LITERALS and following is not None:
            if following.token_type == TokenType.STRING and _NOW_LITERAL.match(following.text):
                message = (
                    f"{text} '{following.text}' depends on when it is asked, not on the "
                    "log; write a fixed time, or use the record's own time"
                )
        elif text.lower() in _BARE and _is_bare(tokens, index) and text.lower() not in columns:
            message = _unfit(text.lower())
        if message is not None:
            problems.append(source.problem(token, message))
    return problems


def _is_bare(tokens: Sequence[Token], index: int) -> bool:
    """Whether a word stands for itself, and is neither called nor the beginning of a path."""
    following = tokens[index + 1].text if index + 1 < len(tokens) else ""
    return following not in ("(", ".")


def _call_fault(call: FunctionCall) -> str | None:
    name = call.name
    if name in _TIME | _CHANCE | _PLACE:
        return _unfit(name)
    if name == "unix_timestamp" and call.closing == call.opening + 1:
        return _unfit("unix_timestamp()")
    if name == "watermark" and call.closing != call.opening + 1:
        return "watermark() takes no argument: it is the watermark of the record itself"
    if name in _GENERATORS:
        return (
            f"{name}() makes several rows of one, and cannot stand within an expression; write "
            f"FROM ... LATERAL VIEW {name}(x) t AS c, and use c here"
        )
    if name in _OTHER_GENERATORS:
        return f"{name}() is not supported; write {_OTHER_GENERATORS[name]}"
    if name in _RANKS:
        return f"{name}() ranks rows, which is not built yet; rank them when you read the view"
    is_like_one = name.startswith(("approx_", "regr_"))
    unknown = is_like_one and name not in AGGREGATES and name not in SPARK_FUNCTIONS
    if name in _OTHER_AGGREGATES or unknown:
        instead = _INSTEAD.get(name, "the aggregates that can be are in docs/sql.md")
        return f"the aggregate {name}() cannot be kept turn by turn; {instead}"
    return _unknown_fault(name)


@lru_cache(maxsize=1_000)  # one mistake may be written thousands of times
def _unknown_fault(name: str) -> str | None:
    if name in AGGREGATES or name in SPARK_FUNCTIONS or name in _OTHER_FUNCTIONS:
        return None
    if name in FOREIGN_FUNCTIONS:
        return f"{name}() is not known here; write {FOREIGN_FUNCTIONS[name]}"
    hint = closest(name, [*AGGREGATES, *SPARK_FUNCTIONS])
    return f"there is no function {name}(){hint}; all of Spark's own can be called"


def _arguments_fault(call: FunctionCall, tokens: Sequence[Token]) -> str | None:
    if call.name not in AGGREGATES:
        return None
    inside = tokens[call.opening + 1 : call.closing]
    count = len(split_commas(inside)) if inside else 0
    if call.name == "count" and count > 1 and word(inside[0]) == "DISTINCT":
        return None  # of several columns together
    if AGGREGATES[call.name] not in _USAGE:
        return None if count == 1 else f"{call.name}() takes exactly one argument"
    fewest, most, usage = _USAGE[AGGREGATES[call.name]]
    if fewest <= count <= most:
        return None
    return f"{call.name}() is written {call.name}{usage.format(name=call.name)}"


def _unfit(name: str) -> str:
    if name in _TIME or name == "unix_timestamp()":
        reason = "depends on when it is asked, not on the log"
        instead = "use the record's own time, or watermark()"
    elif name in _CHANCE:
        reason = "gives another answer every time"
        instead = "let the producer put the value into the record"
    else:
        reason = "depends on where the query runs, not on the log"
        instead = "let the producer put the value into the record"
    return f"{name} {reason}, so a replay would differ; {instead}"


def _suffix_fault(call: FunctionCall, tokens: Sequence[Token]) -> str | None:
    name, following = call.name, tokens[call.end + 1 : call.end + 2]
    if following and word(following[0]) == "OVER":
        return (
            f"{name}() OVER: window functions are not built yet; write GROUP BY, or use OVER when "
            "you read the view"
        )
    if following and word(following[0]) == "WITHIN":
        return f"WITHIN after {name}() is not supported; remove it"
    if call.end > call.closing and name not in AGGREGATES:
        suffix = word(tokens[call.closing + 1])
        return f"{suffix} is not allowed after {name}(), which is not an aggregate; remove it"
    return None
