"""The command `headrace`: its sub-commands, and how errors become exit codes.

0 done; 1 done, and the answer is no; 2 wrong call; 3 could not find out; 130 interrupted.
"""

import os
import sys
from typing import Annotated

import typer

from headrace.cli.ask import audit, explain
from headrace.cli.check import check
from headrace.cli.control import pause, resume
from headrace.cli.dashboard import dashboard
from headrace.cli.demo.command import demo
from headrace.cli.export import export
from headrace.cli.graph import graph
from headrace.cli.init import init
from headrace.cli.interrupts import INTERRUPTED
from headrace.cli.lateness import lateness
from headrace.cli.log.append import append
from headrace.cli.log.groups import groups_app
from headrace.cli.log.log import log_app
from headrace.cli.log.tail import tail
from headrace.cli.log.topics import topics_app
from headrace.cli.run import run
from headrace.cli.sql import sql
from headrace.cli.status import status
from headrace.cli.text.output import JsonOption, OutputClosed, note, show_json, show_text
from headrace.cli.text.problems import tell_refused
from headrace.errors import DefinitionError, HeadraceError, UsageError
from headrace.serve.starting import is_left_behind

__all__ = ["app", "main"]

app = typer.Typer(
    name="headrace",
    help="Event logs into live, correct tables, on Spark, from Python and SQL.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def version(json: JsonOption = False) -> None:
    """Print the version."""
    found = _version()
    if json:
        show_json({"version": found})
    else:
        show_text(f"headrace {found}")


def _version() -> str:
    from importlib.metadata import version as package_version

    return package_version("headrace")


def _show_version(asked: bool) -> None:
    if asked:
        show_text(f"headrace {_version()}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Event logs into live, correct tables, on Spark, from Python and SQL."""


for command in (
    init,
    check,
    run,
    append,
    tail,
    sql,
    export,
    status,
    dashboard,
    pause,
    resume,
    lateness,
    audit,
    explain,
    graph,
    demo,
    version,
):
    app.command()(command)
app.add_typer(topics_app, name="topics")
app.add_typer(groups_app, name="groups")
app.add_typer(log_app, name="log")


def main() -> None:
    """Run the command line and end the process with its exit code."""
    code = call(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_stdout()
    if is_left_behind():
        # Spark, while it started. Java ends by itself when this process has.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _leave_stdout() -> None:
    # The interpreter flushes once more at its end, and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def call(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are told on stderr."""
    try:
        code = app(arguments, prog_name="headrace", standalone_mode=False)
    except OutputClosed:
        _leave_stdout()
        return 0
    except DefinitionError as error:
        tell_refused(error.problems, None)
        return error.exit_code
    except HeadraceError as error:
        note(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        # A wrong call; typer's own class for it has moved between its releases.
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        return UsageError.exit_code
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
