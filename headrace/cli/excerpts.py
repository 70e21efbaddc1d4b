"""The line of a file that a problem is about, with a caret under the place."""

import unicodedata

from headrace.errors import Location

__all__ = ["excerpt"]

_WIDTH = 100  # characters of a line that are shown


def excerpt(text: str, place: Location) -> tuple[str, ...]:
    """Return the line at a place and a caret under it, to be shown below the problem.

    Of a long line only what is around the place is shown. Nothing is returned where the file has
    no such place, since it may have changed.
    """
    lines = text.split("\n")
    if place.line > len(lines):
        return ()
    line, at = lines[place.line - 1].rstrip("\r"), place.column - 1
    if at > len(line):
        return ()
    begin = 0 if at < _WIDTH * 3 // 4 else at - _WIDTH // 2
    shown = line[begin : begin + _WIDTH]
    before = ("..." if begin else "") + shown[: at - begin]
    after = shown[at - begin :] + ("..." if len(line) > begin + _WIDTH else "")
    return f"    {before}{after}", f"    {''.join(map(_blank, before))}^"


def _blank(character: str) -> str:
    """Return white space as wide as a character is shown."""
    if character == "\t":
        return "\t"
    if unicodedata.combining(character):
        return ""
    return "  " if unicodedata.east_asian_width(character) in "WF" else " "
