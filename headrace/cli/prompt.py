"""The prompt of `headrace sql`: statements over lines, history, completion of names.

A statement ends with `;` and may take several lines. Ctrl-C gives up what is being written, or
waited for; Ctrl-D ends the prompt. What was asked is kept in `.headrace/sql_history`.
"""

import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, completion_is_selected
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import PostgresLexer

from headrace.cli.question import ask_desk
from headrace.cli.sql import show_answer
from headrace.cli.text.output import make_table, note, show_renderable, show_text
from headrace.cli.text.plans import ask_for_tree
from headrace.errors import HeadraceError, UsageError
from headrace.store.base import MAX_ROWS
from headrace.store.opening import COLUMNS_QUERY, QUERY_WORDS, is_whole, split_statements
from headrace.wording import counted

if TYPE_CHECKING:
    from headrace.project.config import Config

__all__ = ["Prompt", "ViewCompleter", "is_ready", "run_prompt"]

HISTORY = "sql_history"
HELP = """\
End a statement with ; to have it answered. Views are asked in DuckDB's SQL.
  \\d        the views and their columns
  \\d VIEW   the columns of a view with their types
  \\x        a line for every cell, or tables again
  \\q        end; so does Ctrl-D
Tab completes names, up and down go through what was asked before, and Ctrl-C
gives up what is being written or waited for."""

_WORD = re.compile(r"[A-Za-z0-9_]+")
_LAST_WORD = re.compile(r"[A-Za-z0-9_]*$")


def run_prompt(config: "Config", *, expanded: bool, max_rows: int | None) -> None:
    """Answer statements until the end of input. UsageError: there is no terminal to show them."""
    if not sys.stdout.isatty():
        raise UsageError("the prompt needs a terminal; give a query, or --file")
    prompt = Prompt(config, expanded=expanded, max_rows=max_rows)
    prompt.look_up_names()  # also tells whether there is anything to ask
    note(f"{config.name}: {counted(len(prompt.completer.views), 'view')}; \\? helps, \\q ends")
    prompt.run(make_session(config.runtime / HISTORY, prompt.completer), f"{config.name}> ")


class ViewCompleter(Completer):
    """Completes names of views and of their columns, and words of SQL."""

    def __init__(self) -> None:
        self.views: Mapping[str, Mapping[str, str]] = {}  # the type of each column

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterator[Completion]:
        """Offer what begins like the word before the cursor, columns of the named views first."""
        word = _LAST_WORD.findall(document.text_before_cursor)[0]
        before = document.text_before_cursor.removesuffix(word)
        words = set(_WORD.findall(document.text.lower()))
        named = [view for view in self.views if view.lower() in words] or list(self.views)
        offers = {column: type for view in named for column, type in self.views[view].items()}
        if not before.endswith("."):
            if not word:
                return
            offers = {
                **dict.fromkeys(self.views, "view"),
                **offers,
                **dict.fromkeys(QUERY_WORDS, ""),
            }
        for name, meaning in offers.items():
            if name.lower().startswith(word.lower()) and name != word:
                yield Completion(name, -len(word), display_meta=meaning)


def is_ready(text: str) -> bool:
    """Tell whether Enter has the text answered, instead of beginning another line."""
    return not text.strip() or text.lstrip().startswith("\\") or is_whole(text)


def make_session(history: Path, completer: Completer, **ends: Any) -> "PromptSession[str]":
    """Return a session that keeps what was asked; `ends` are another input and output."""
    history.touch(mode=0o600)  # it may hold what the tables hold
    bindings = KeyBindings()
    ready = Condition(lambda: is_ready(get_app().current_buffer.text))

    @bindings.add("enter", filter=ready & ~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return PromptSession(
        history=FileHistory(str(history)),
        completer=completer,
        complete_while_typing=False,
        lexer=PygmentsLexer(PostgresLexer),
        key_bindings=bindings,
        multiline=True,
        prompt_continuation=lambda width, _line, _wrapped: "-> ".rjust(width),
        **ends,
    )


class Prompt:
    """Answers what is asked, one statement after the other."""

    def __init__(self, config: "Config", *, expanded: bool, max_rows: int | None) -> None:
        self.completer = ViewCompleter()
        self._config = config
        self._expanded = expanded
        self._max_rows = max_rows or MAX_ROWS

    def run(self, session: "PromptSession[str]", message: str) -> None:
        """Ask and answer until the end of input."""
        while True:
            try:
                text = session.prompt(message).strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if text.rstrip("; ") in ("\\q", "exit", "quit"):
                return
            try:
                self.answer(text)
            except HeadraceError as error:
                note(f"error: {error}")
            except KeyboardInterrupt:
                note("given up")

    def answer(self, text: str) -> None:
        """Answer one entry: a command, or statements. HeadraceError."""
        if text.startswith("\\"):
            self._command(text.rstrip("; ").split())
            return
        for statement in split_statements(text):
            since = time.monotonic()
            found = self._ask(ask_for_tree(statement))
            milliseconds = (time.monotonic() - since) * 1000
            show_answer(found, expanded=self._expanded)
            note(f"{counted(len(found['rows']), 'row')} in {milliseconds:.0f} ms")
        self.look_up_names()

    def _ask(self, statement: str) -> dict[str, Any]:
        return ask_desk(self._config, lambda desk: desk.sql(statement, max_rows=self._max_rows))

    def _command(self, words: list[str]) -> None:
        name, arguments = words[0], words[1:]
        if name == "\\x" and not arguments:
            self._expanded = not self._expanded
            note("a line for every cell" if self._expanded else "tables")
        elif name == "\\d" and len(arguments) < 2:
            self.look_up_names()
            self._describe(arguments)
        else:
            show_text(HELP)

    def _describe(self, views: Iterable[str]) -> None:
        known = self.completer.views
        for view in views:
            if view not in known:
                raise UsageError(f"there is no view {view}; there are: {', '.join(known)}")
            columns = list(known[view].items())
            show_renderable(make_table("", ["column", "type"], columns))
            return
        rows = [[view, ", ".join(columns)] for view, columns in known.items()]
        show_renderable(make_table("", ["view", "columns"], rows))

    def look_up_names(self) -> None:
        """Learn which views and columns there are. HeadraceError."""
        rows = self._ask(COLUMNS_QUERY)["rows"]
        views: dict[str, dict[str, str]] = {}
        for view, column, type in rows:
            views.setdefault(view, {})[column] = type
        self.completer.views = views
