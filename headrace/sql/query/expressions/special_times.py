"""Texts that Spark takes for the time at which it runs: 'now', 'today', 'tomorrow', 'yesterday'.

It does so where a text that is known beforehand becomes a TIMESTAMP or a DATE, by CAST or because
of what stands beside it. So such a text is refused unless it is known to stay a text. The text
itself is looked for, not one that functions make of others.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from sqlglot import TokenType, exp

from headrace.errors import Problem
from headrace.schema.types import DataType
from headrace.sql.query.reading.syntax import AggregateCall, has_span, nodes_of, span_of
from headrace.sql.query.reading.trees import Tree, strip_parentheses
from headrace.sql.text import words

__all__ = ["special_times"]

#: With a time zone behind it, or without.
_SPECIAL = re.compile(r"\s*(now|today|tomorrow|yesterday)\b\s*[\w/+:-]*\s*", re.IGNORECASE)
_BEGINNING = re.compile(r"\s*[nty]", re.IGNORECASE)
#: Operators over texts alone, and those that make their sides alike.
_TEXT_OPERATORS = (exp.DPipe, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.All, exp.Any)
_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In,
    exp.Between,
)  # fmt: skip
#: Functions that take texts and give one.
_TEXT_FUNCTIONS = words(
    "btrim concat concat_ws format_string get_json_object initcap lcase left lower lpad ltrim "
    "overlay printf regexp_extract regexp_replace regexp_substr repeat replace reverse right rpad "
    "rtrim split_part substr substring substring_index translate trim ucase upper"
)
#: Functions that take texts, or keep the types of their arguments, and give something else.
_OF_TEXTS = words(
    "contains endswith find_in_set ilike instr length levenshtein like locate named_struct "
    "position regexp regexp_count regexp_extract_all regexp_instr regexp_like rlike split "
    "startswith struct"
)
#: Functions that make all of their arguments alike.
_ALIKE = words("array coalesce greatest ifnull least nullif nvl")
#: Functions of an array and something like its elements.
_OF_ELEMENTS = words("array_append array_contains array_position array_prepend array_remove")

_Types = Callable[[exp.Expr], DataType | None]


def special_times(
    tree: Tree, type_of: _Types, root: exp.Expr, *, stays_text: bool = True
) -> Iterator[Problem]:
    """Yield a problem for each such text that may become a time.

    `type_of` tells the type of a column, None where it is not known. `stays_text` says whether a
    text that is all of the expression is one to its reader, too.
    """
    texts = (token.text for token in tree.tokens_of(root) if token.token_type == TokenType.STRING)
    if not any(map(_BEGINNING.match, texts)):
        return
    judge = _Judge(tree, type_of)
    for node in nodes_of(root):
        text = _text(node)
        if text is None or not has_span(node) or not _SPECIAL.fullmatch(text):
            continue
        if judge.becomes_time(node, root, stays_text=stays_text):
            how = (
                "write a fixed time, or use the record's own time (to compare texts, write "
                f"CAST(x AS STRING) = '{text}')"
            )
            if strip_parentheses(root) is node:
                how = "write a fixed time or another text"
            yield tree.problem(
                node,
                f"'{text}' means the current time where a TIMESTAMP or DATE is expected, so a "
                f"replay would differ; {how}",
            )


def _text(node: exp.Expr) -> str | None:
    """Return what a text says; several in a row are one."""
    if isinstance(node, exp.Concat):
        return "".join(each.name for each in node.expressions)
    is_alone = not isinstance(node.parent, exp.Concat)
    return node.name if isinstance(node, exp.Literal) and node.is_string and is_alone else None


class _Judge:
    """Tells of the texts of one expression whether they may become times."""

    def __init__(self, tree: Tree, type_of: _Types) -> None:
        self.tree = tree
        self.type_of = type_of

    def becomes_time(self, text: exp.Expr, root: exp.Expr, *, stays_text: bool) -> bool:
        node = text
        while node is not root:
            parent = node.parent
            assert parent is not None
            found = self._becomes_time_in(parent, node)
            if found is not None:
                return found
            node = parent
        return not stays_text and root.find(exp.Column) is None

    def _becomes_time_in(self, parent: exp.Expr, node: exp.Expr) -> bool | None:
        """Return whether a text becomes a time in what it is a part of; None: that is one, too."""
        name = self.tree.call_name(parent) or ""
        if isinstance(parent, (*_TEXT_OPERATORS, AggregateCall)):
            return False  # an aggregate's result is not known beforehand
        if name in _OF_TEXTS | _TEXT_FUNCTIONS:
            return False
        if isinstance(parent, _COMPARISONS):
            return not self._are_texts(parent.iter_expressions())
        if isinstance(parent, exp.Bracket):
            whole = self.type_of(parent.this)
            return whole is not None and whole.kind == "MAP" and whole.parts[0].kind != "STRING"
        if isinstance(parent, exp.Cast) and not _is_text_type(parent.to):
            # DATE 'now' is told of by its first word.
            return span_of(node)[0] != span_of(parent)[0] + 1
        if isinstance(parent, exp.If) and node.arg_key == "this":  # CASE x WHEN 'now'
            compared = parent.parent.args.get("this") if parent.parent else None
            return compared is not None and not self._are_texts([compared])
        if name in _OF_ELEMENTS:
            whole = self.type_of(parent.expressions[0])
            return whole is None or whole.kind != "ARRAY" or whole.parts[0].kind != "STRING"
        if isinstance(parent, exp.Cast | exp.Case | exp.If) or name in _ALIKE | {"map", "nvl2"}:
            return None if self._are_texts(self._beside(parent, node)) else True
        return None if isinstance(parent, exp.Paren | exp.Alias | exp.Tuple) else True

    def _beside(self, parent: exp.Expr, node: exp.Expr) -> list[exp.Expr]:
        """Return what becomes like a text that is a part of something."""
        if isinstance(parent, exp.Case | exp.If):
            return self._results(parent)
        if isinstance(parent, exp.Cast):
            return []
        arguments = list(parent.expressions)
        match self.tree.call_name(parent):
            case "map":  # of keys and values in turn
                return arguments[[*map(id, arguments)].index(id(node)) % 2 :: 2]
            case "nvl2":
                return arguments[1:]
        return arguments

    def _results(self, node: exp.Expr) -> list[exp.Expr]:
        if isinstance(node, exp.Case):
            chosen = [each.args["true"] for each in node.args.get("ifs") or []]
            return [*chosen, *filter(None, [node.args.get("default")])]
        return [each for each in (node.args.get("true"), node.args.get("false")) if each]

    def _are_texts(self, nodes: Iterable[exp.Expr]) -> bool:
        return all(self._is_text(strip_parentheses(each)) for each in nodes)

    def _is_text(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Null | exp.DPipe) or _text(node) is not None:
            return True
        if isinstance(node, exp.Cast):
            return _is_text_type(node.to)
        if isinstance(node, exp.Case | exp.If):
            return self._are_texts(self._results(node))
        name = self.tree.call_name(node) or ""
        if isinstance(node, AggregateCall):
            is_one = node.this in ("any_value", "first", "last", "max", "min", "mode")
            return is_one and self._are_texts(node.expressions[:1])
        if name in _ALIKE - {"array"}:
            return self._are_texts(node.expressions)
        if name in _TEXT_FUNCTIONS:
            return True
        type = self.type_of(node)
        return type is not None and type.kind == "STRING"


def _is_text_type(type: exp.DataType) -> bool:
    return bool(type.is_type(*exp.DataType.TEXT_TYPES))
