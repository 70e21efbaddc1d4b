"""Set SQL for people: broken over lines at clauses and commas, indented by nesting.

Promises:
- Only white space between tokens changes: the tokens, and texts and names in quotes, stay as they
  are. So the text can be copied and run.
- A line is at most `width` characters long wherever it can be broken at white space.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

__all__ = ["lay_out"]

_INDENT = 2
_MIN_ROOM = 30  # below it, text is filled line by line instead of being indented further

_QUOTES = r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|'
#: Spark reads a backslash in a text as an escape, and other dialects as itself.
_TOKENS = {
    True: re.compile(rf"""(\s*)({_QUOTES}'(?:\\.|[^'\\])*'|\w+|[^\w\s])""", re.DOTALL),
    False: re.compile(rf"""(\s*)({_QUOTES}'(?:[^']|'')*'|\w+|[^\w\s])""", re.DOTALL),
}
_JOINS = ("LEFT", "RIGHT", "FULL", "CROSS", "INNER", "SEMI", "ANTI", "LATERAL")
_CLAUSES = (
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "QUALIFY"),
    *("JOIN", *_JOINS),
)


@dataclass
class _Part:
    """A token, or all that stands between brackets, or between CASE and END."""

    text: str  # of a group: how it opens
    spaced: bool  # white space stood before it
    parts: "list[_Part] | None" = None
    closing: str = ""
    closing_spaced: bool = False
    flat: str = field(default="", repr=False)  # all of it on one line

    @property
    def word(self) -> str:
        return self.text.upper() if self.parts is None else ""


def lay_out(sql: str, width: int, *, backslashes: bool = True) -> list[str]:
    """Return SQL as lines; `backslashes` are escapes in its texts, as in Spark's."""
    return [line.rstrip() for line in _lay(_parse(sql, backslashes=backslashes), 0, width)]


def _parse(sql: str, *, backslashes: bool) -> list[_Part]:
    open_groups = [_Part("", spaced=False, parts=[])]
    for space, text in _TOKENS[backslashes].findall(sql):
        here = open_groups[-1]
        assert here.parts is not None
        part = _Part(text, bool(space), flat=text)
        after_dot = bool(here.parts) and here.parts[-1].text == "."
        if text in "([" or (part.word == "CASE" and not after_dot):
            part.parts = []
            here.parts.append(part)
            open_groups.append(part)
        elif _closes(here, text) and not after_dot and len(open_groups) > 1:
            here.closing, here.closing_spaced = text, bool(space)
            here.flat = here.text + _flat(here.parts) + " " * here.closing_spaced + text
            open_groups.pop()
        else:
            here.parts.append(part)
    for group in reversed(open_groups[1:]):  # brackets that never close
        assert group.parts is not None
        group.flat = group.text + _flat(group.parts)
    assert open_groups[0].parts is not None
    return open_groups[0].parts


def _closes(group: _Part, token: str) -> bool:
    return {"(": ")", "[": "]"}.get(group.text, "END") == token.upper()


def _flat(parts: list[_Part]) -> str:
    return "".join(" " * part.spaced + part.flat for part in parts)


def _lay(parts: list[_Part], indent: int, width: int) -> Iterator[str]:
    """Yield the lines of parts, each with its indent."""
    if not parts:
        return
    margin, text = " " * indent, _flat(parts).strip()
    if indent + len(text) <= width:
        yield margin + text
    elif width - indent < _MIN_ROOM:
        yield from _fill(_tokens(parts), indent, width)
    elif len(clauses := _split(parts, _begins_clause)) > 1:
        for clause in clauses:
            yield from _lay(clause, indent, width)
    elif _begins_clause(parts, 0) and len(_split(parts, _follows_comma)) > 1:
        words = 2 if parts[0].word in ("GROUP", "ORDER") else 1
        yield margin + _flat(parts[:words]).strip()
        yield from _lay(parts[words:], indent + _INDENT, width)
    elif len(items := _split(parts, _follows_comma)) > 1:
        yield from _pack(items, indent, width)
    elif len(cases := _split(parts, _begins_case)) > 1:
        for case in cases:
            yield from _lay(case, indent, width)
    elif len(halves := _split(parts, _begins_half)) > 1 or len(halves := _terms(parts)) > 1:
        yield from _lay(halves[0], indent, width)
        for half in halves[1:]:
            yield from _lay(half, indent + _INDENT, width)
    else:
        yield from _open(parts, indent, width)


def _split(parts: list[_Part], begins: Callable[[list[_Part], int], bool]) -> list[list[_Part]]:
    found: list[list[_Part]] = []
    for at, part in enumerate(parts):
        if not found or begins(parts, at):
            found.append([])
        found[-1].append(part)
    return found


def _begins_clause(parts: list[_Part], at: int) -> bool:
    if parts[at].word not in _CLAUSES or (at > 0 and parts[at - 1].word in (".", "AS")):
        return False  # a name
    is_call = at + 1 < len(parts) and parts[at + 1].text == "(" and not parts[at + 1].spaced
    follows_join = at > 0 and parts[at - 1].word in (*_JOINS, "OUTER")
    return not is_call and not follows_join


def _follows_comma(parts: list[_Part], at: int) -> bool:
    return at > 0 and parts[at - 1].text == ","


def _begins_case(parts: list[_Part], at: int) -> bool:
    return parts[at].word in ("WHEN", "ELSE")


def _begins_half(parts: list[_Part], at: int) -> bool:
    return at > 0 and parts[at].word in ("THEN", "ON")


def _terms(parts: list[_Part]) -> list[list[_Part]]:
    """Return parts split before AND and OR, but for the AND of a BETWEEN."""
    found: list[list[_Part]] = [[]]
    between = False
    for part in parts:
        if part.word in ("AND", "OR") and not between:
            found.append([])
        between = part.word == "BETWEEN" or (between and part.word not in ("AND", "OR"))
        found[-1].append(part)
    return [terms for terms in found if terms]


def _pack(items: list[list[_Part]], indent: int, width: int) -> Iterator[str]:
    """Yield items, as many on a line as it holds; one that is longer has lines of its own."""
    line = ""
    for item in items:
        text = _flat(item).strip()
        if line and indent + len(line) + 1 + len(text) <= width:
            line = f"{line} {text}"
            continue
        if line:
            yield " " * indent + line
            line = ""
        if indent + len(text) <= width:
            line = text
        else:
            yield from _lay(item, indent, width)
    if line:
        yield " " * indent + line


def _open(parts: list[_Part], indent: int, width: int) -> Iterator[str]:
    """Yield parts that have nothing to be split at: groups that do not fit are opened."""
    line = ""
    for part in parts:
        before = " " if part.spaced and line else ""
        room = width - indent - len(line) - len(before)
        fits = len(part.flat) <= room
        if before and not fits and (part.parts is None or len(part.text) > room):
            yield " " * indent + line
            line, before = "  ", ""  # a line that goes on
        if fits or part.parts is None or len(part.parts) == 0:
            line += before + part.flat
            continue
        yield " " * indent + line + before + part.text
        yield from _lay(part.parts, indent + _INDENT, width)
        line = part.closing
    if line:
        yield " " * indent + line


def _tokens(parts: list[_Part]) -> Iterator[tuple[str, bool]]:
    """Yield the tokens of parts, and whether white space stood before each."""
    waiting = list(reversed(parts))
    while waiting:
        part = waiting.pop()
        yield part.text, part.spaced
        if part.parts is not None:
            closing = [_Part(part.closing, part.closing_spaced)] if part.closing else []
            waiting += [*closing, *reversed(part.parts)]


def _fill(tokens: Iterator[tuple[str, bool]], indent: int, width: int) -> Iterator[str]:
    """Yield tokens line after line, broken where white space stood."""
    line = ""
    for text, space in tokens:
        if space and line and indent + len(line) + 1 + len(text) > width:
            yield " " * indent + line
            line = text
        else:
            line += (" " if space and line else "") + text
    if line:
        yield " " * indent + line
