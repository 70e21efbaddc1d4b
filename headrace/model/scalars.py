"""Scalars: expressions of Spark SQL whose columns are explicit.

The text is canonical: words in lower case, one way of spacing, no comments, no aliases of tables.
Columns are numbered holes in it, `{0}`, `{1}`, ...; a brace that is meant is doubled. So which
columns an expression reads, what it is over other columns, and whether two expressions are equal
is answered without parsing one again.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

__all__ = ["Scalar", "columns_of", "escape_braces"]

_HOLE = re.compile(r"\{\{|\}\}|\{(\d+)\}")
#: A window as one column: `.start` and `.end` of it are the columns that it is made of.
_WINDOW = re.compile(r"\w+\('start', \{0\}, 'end', \{1\}\)")
_EDGE = re.compile(r"\{\{|\}\}|\{(\d+)\}(\.(start|end)\b)?", re.IGNORECASE)


def escape_braces(text: str) -> str:
    """Return text as it stands in a scalar, where braces are holes."""
    return text.replace("{", "{{").replace("}", "}}")


@dataclass(frozen=True)
class Scalar:
    """An expression; `refs` are the names of the columns that its holes stand for, each once.

    They are numbered as they first occur in the text.
    """

    text: str
    refs: tuple[str, ...] = ()

    @staticmethod
    def column(name: str) -> "Scalar":
        """Return the expression that is a column and nothing more."""
        return Scalar("{0}", (name,))

    @property
    def name(self) -> str | None:
        """The column that this is; None: it is more than the name of one."""
        return self.refs[0] if self.text == "{0}" else None

    def render(self, column: Callable[[str], str]) -> str:
        """Return the expression as Spark SQL, where `column` gives the text of each column."""

        def fill(found: re.Match[str]) -> str:
            return column(self.refs[int(found[1])]) if found[1] else found[0][0]

        return _HOLE.sub(fill, self.text)

    def substitute(self, columns: Mapping[str, "Scalar"]) -> "Scalar":
        """Return the expression with other expressions in the place of some of its columns."""
        refs: list[str] = []

        def hole(name: str) -> str:
            if name not in refs:
                refs.append(name)
            return f"{{{refs.index(name)}}}"

        def fill(found: re.Match[str]) -> str:
            if not found[1]:
                return found[0]
            name, field = self.refs[int(found[1])], found[2] or ""
            if name not in columns:
                return hole(name) + field
            inner = columns[name]
            if field and _WINDOW.fullmatch(inner.text):
                return hole(inner.refs[found[3].lower() == "end"])
            text = _HOLE.sub(lambda each: hole(inner.refs[int(each[1])]) if each[1] else each[0],
                             inner.text)  # fmt: skip
            return (text if self.name or inner.name else f"({text})") + field

        return Scalar(_EDGE.sub(fill, self.text), tuple(refs))


def columns_of(scalars: Iterable[Scalar]) -> frozenset[str]:
    """Return every column that any of the expressions reads."""
    return frozenset(name for scalar in scalars for name in scalar.refs)
