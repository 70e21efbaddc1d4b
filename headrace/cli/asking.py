"""Ask before something is deleted or moved: people are asked, scripts pass --yes."""

import sys
from typing import Annotated

import typer

from headrace.errors import UsageError

__all__ = ["YesOption", "ask"]

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def ask(question: str, *, yes: bool, refused: str) -> None:
    """Return if the answer is yes. UsageError says what was not done."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{refused}: there is nobody to ask; pass --yes")
    if not typer.confirm(question, err=True):
        raise UsageError(refused)
