"""Calls over keys that Spark computes, as columns, within expressions over aggregates."""

import re
from collections.abc import Callable, Sequence

import sqlglot
from sqlglot import Token, TokenType

from headrace.model.functions import FUNCTIONS
from headrace.model.scalars import Scalar, escape_braces

__all__ = ["derive_calls", "is_for_spark", "naming_fault"]

#: The functions that the store computes also over keys alone: they convert, or leave arguments out.
_OF_THE_STORE = frozenset({"abs", "cast", "coalesce", "if", "ifnull", "nullif", "nvl"})
#: Those of the store's functions that may leave an argument out.
_GUARDS = frozenset({"coalesce", "if", "ifnull", "nanvl", "nvl", "nvl2"})
#: Functions that give a value whatever they are given: they need no guard.
_NEVER_FAIL = frozenset(
    {
        "char_length", "concat", "concat_ws", "day", "hour", "initcap", "length", "lower", "ltrim",
        "minute", "month", "replace", "reverse", "rtrim", "second", "substr", "substring", "trim",
        "upper", "year",
    }
)  # fmt: skip
#: Calls with a syntax of their own, which other names of functions stand for.
_OWN_SYNTAX = frozenset({"extract", "position", "try_cast"})
#: Functions that make intervals or variants, which stand beside other values and are no column.
_NO_COLUMNS = frozenset(
    {
        "make_dt_interval", "make_interval", "make_ym_interval", "parse_json", "to_variant_object",
        "try_make_interval", "try_parse_json",
    }
)  # fmt: skip
#: Functions that name the fields of what they make after columns.
_NAMING = re.compile(r"\b(arrays_zip|struct)\s*\(", re.IGNORECASE)
#: Words after which a parenthesis opens a group or a list, not the arguments of a function.
_NOT_FUNCTIONS = (
    "all and any as between by case distinct div else escape for from ilike in interval is like "
    "not on or over regexp rlike select some then values when where"
)


def derive_calls(
    scalar: Scalar, aggregates: frozenset[str], derive: Callable[[Scalar], str]
) -> Scalar:
    """Return an expression with a column for each function call that the store does not compute.

    Only for calls that read none of the columns `aggregates`: `derive` gives the column's name. A
    call that CASE or a function such as IF guards, and that may fail, is never asked without its
    guard: the whole guarded expression becomes the column. ValueError: that reads an aggregate.
    """
    mark = _free_mark(scalar.text)
    text = scalar.render(lambda name: f"{mark}{scalar.refs.index(name)}_")
    tokens = sqlglot.tokenize(text, read="spark")
    refs = list(scalar.refs)

    def hole(found: re.Match[str]) -> str:
        return f"{{{found[1]}}}"

    def part(begin: int, end: int) -> str:
        return re.sub(rf"{mark}(\d+)_", hole, escape_braces(text[begin:end]))

    def between(first: int, last: int) -> Scalar:
        whole = part(tokens[first].start, tokens[last].end + 1)
        return Scalar(whole, scalar.refs).substitute({})

    def is_foreign(at: int, *, guarded: bool) -> bool:
        name = tokens[at].text.lower()
        inner = between(at, _closing(tokens, at + 1)) if _is_call(tokens, at) else None
        is_mine = inner is None or name in (FUNCTIONS if guarded else _OF_THE_STORE)
        return not is_mine and aggregates.isdisjoint(inner.refs if inner else ())

    def never_fails(first: int, last: int) -> bool:
        calls = [tokens[at].text.lower() for at in range(first, last) if _is_call(tokens, at)]
        signs = {tokens[at].text for at in range(first, last)}
        return set(calls) <= _NEVER_FAIL and signs.isdisjoint("+-*/%")

    written, done, guard = "", 0, -1  # the last token of the guard around
    for at, token in enumerate(tokens):
        guarded = _guard_end(tokens, at)
        if token.start < done or (guarded is None and not is_foreign(at, guarded=at < guard)):
            continue
        last = _closing(tokens, at + 1) if guarded is None else guarded
        inner = between(at, last)
        if guarded is not None:
            is_mixed = not aggregates.isdisjoint(inner.refs)
            inside = range(at + 1, last)
            foreign = [each for each in inside if is_foreign(each, guarded=is_mixed)]
            guard = max(guard, last)
            if not foreign:
                continue
            if is_mixed:
                if all(never_fails(index, _closing(tokens, index + 1)) for index in foreign):
                    continue  # they are found again, one by one: no guard is needed
                raise ValueError(
                    "a function that stands beside an aggregate within CASE, IF or COALESCE would "
                    "be asked without its condition; compute it when you read the view"
                )
        end = tokens[last].end + 1
        name = derive(inner)
        refs += [] if name in refs else [name]
        written += f"{part(done, token.start)}{{{refs.index(name)}}}"
        done = end
    return Scalar(written + part(done, len(text)), tuple(refs)).substitute({})


def naming_fault(scalar: Scalar) -> str | None:
    """Return why Spark cannot evaluate an expression over merged rows, which name columns anew."""
    found = _NAMING.search(scalar.text)
    if found is None:
        return None
    return (
        f"{found[1]}() names its fields after columns, and stands here beside what only Spark "
        f"computes of an aggregate; write named_struct('a', ...), or compute it when you read "
        f"the view"
    )


def is_for_spark(scalar: Scalar, aggregates: frozenset[str]) -> bool:
    """Whether no store can evaluate an expression: for a function over aggregates, or a lambda.

    Or for a function whose values are no column's. What else a store cannot evaluate is known when
    Spark has told the types.
    """
    mark = _free_mark(scalar.text)
    text = scalar.render(lambda name: f"{mark}{scalar.refs.index(name)}_")
    tokens = sqlglot.tokenize(text, read="spark")
    over = {f"{mark}{at}_" for at, name in enumerate(scalar.refs) if name in aggregates}
    for at, token in enumerate(tokens):
        if token.token_type == TokenType.ARROW:
            return True
        name = token.text.lower() if _is_call(tokens, at) else ""
        if name in _NO_COLUMNS:
            return True
        if name and name not in (*FUNCTIONS, *_OWN_SYNTAX):
            inside = tokens[at + 1 : _closing(tokens, at + 1)]
            if any(each.text in over for each in inside):
                return True
    return False


def _is_call(tokens: Sequence[Token], at: int) -> bool:
    """Whether a function's name and its arguments begin at a token."""
    is_open = at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN
    before = tokens[at - 1].text.lower() if at > 0 else ""
    is_type = before in ("::", "as")
    text = tokens[at].text
    if tokens[at].token_type == TokenType.IDENTIFIER:
        return is_open and not is_type
    is_word = tokens[at].token_type != TokenType.STRING and re.match(r"\w", text) is not None
    return is_open and is_word and not is_type and text.lower() not in _NOT_FUNCTIONS.split()


def _guard_end(tokens: Sequence[Token], at: int) -> int | None:
    """Return where CASE, or a call that may leave an argument out, ends; None: none begins here."""
    if tokens[at].token_type == TokenType.CASE:
        depth = 0
        for index in range(at, len(tokens)):
            kind = tokens[index].token_type
            depth += (kind == TokenType.CASE) - (kind == TokenType.END)
            if depth == 0:
                return index
    if _is_call(tokens, at) and tokens[at].text.lower() in _GUARDS:
        return _closing(tokens, at + 1)
    return None


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """Return the index of the parenthesis that closes the one at an index."""
    depth = 0
    for index in range(opening, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return index
    raise AssertionError("a scalar closes what it opens")


def _free_mark(text: str) -> str:
    """Return the beginning of names that a text does not contain."""
    mark = "__stands_for_"
    while mark in text:
        mark += "_"
    return mark
