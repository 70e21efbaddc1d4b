"""SQL text into the model: `CREATE STREAM`, `CREATE MATERIALIZED VIEW` and `CREATE SINK`.

Promises:
- All problems of all files are reported at once, each with file, line and column, and with what
  to do; text of any kind raises DefinitionError and nothing else.
- Definitions may stand in any order and in any file.
- A definition carries its statement as written, for people; nothing behind this room parses it.
"""

from collections.abc import Mapping

from headrace.errors import DefinitionError, Problem
from headrace.model.definitions import Project, Sink, Stream, View
from headrace.model.validate import validate_project
from headrace.sql.sinks import read_sink
from headrace.sql.stack import on_own_stack
from headrace.sql.statements import Cursor, Statement, split_statements
from headrace.sql.streams import read_stream
from headrace.sql.text import Refused, Source, word
from headrace.sql.views import read_view

__all__ = ["parse_project"]

_KNOWN = "write CREATE STREAM ..., CREATE MATERIALIZED VIEW ... AS SELECT ... or CREATE SINK ..."
_REFUSED = {
    "DROP": "DROP is not a definition; delete the statement that creates it",
    "ALTER": "ALTER is not a definition; edit the statement that creates it",
    "INSERT": "INSERT is not a definition; append records with `headrace append`",
    "UPDATE": "UPDATE is not a definition; records are never changed, append new ones",
    "DELETE": "DELETE is not a definition; records are never changed, append new ones",
    "MERGE": "MERGE is not a definition; records are never changed, append new ones",
    "SELECT": "a query alone defines nothing; ask it with `headrace sql`, or write CREATE "
    "MATERIALIZED VIEW name AS before it",
    "WITH": "a query alone defines nothing; ask it with `headrace sql`",
    "SET": "settings belong into headrace.toml",
    "USE": "there are no databases to choose from; remove it",
}
_CREATE_REFUSED = {
    "TABLE": "CREATE TABLE (changelog topics) is not built yet; read the topic as a stream: "
    "CREATE STREAM",
    "VIEW": "views are kept up to date; write CREATE MATERIALIZED VIEW",
    "OR": "OR REPLACE is not needed: an edited definition replaces the old one; remove it",
    "FUNCTION": "functions of your own are not built yet; use Spark's",
    "TEMPORARY": "definitions last; remove TEMPORARY",
}


def parse_project(sources: Mapping[str, str]) -> Project:
    """Return the project that the files define, from file name to SQL text.

    DefinitionError: carries every problem of every file.
    """
    return on_own_stack(lambda: _parse_project(sources))


def _parse_project(sources: Mapping[str, str]) -> Project:
    problems: list[Problem] = []
    views: list[tuple[Statement, Cursor]] = []
    streams: list[Stream] = []
    sinks: list[Sink] = []
    known: dict[str, Stream | None] = {}
    for statement in _read_statements(sources, problems):
        cursor = Cursor(statement.source, statement.tokens)
        try:
            kind = _accept_create(statement, cursor)
            if kind == "VIEW":
                views.append((statement, cursor))
            elif kind == "SINK":
                sinks.append(read_sink(statement, cursor, problems))
            else:
                name = cursor.peek()
                known.setdefault(str(name.text).lower() if name else "", None)
                stream, sound = read_stream(statement, cursor, problems)
                streams.append(stream)
                # A stream whose columns are in doubt would make its views look wrong too.
                if sound:
                    known[stream.name.lower()] = known[stream.name.lower()] or stream
        except Refused as refused:
            problems += refused.problems
    found = [_read_view(statement, cursor, known, problems) for statement, cursor in views]
    read = tuple(view for view in found if view is not None)
    project = Project(tuple(streams), read, tuple(sinks))
    # A view that was refused would make its sinks look wrong too.
    problems += validate_project(project, whole=len(read) == len(found))
    if problems:
        raise DefinitionError(list(dict.fromkeys(problems)))
    return project


def _read_statements(sources: Mapping[str, str], problems: list[Problem]) -> list[Statement]:
    statements: list[Statement] = []
    for file, text in sources.items():
        source = Source(file, text)
        try:
            statements += split_statements(source, source.tokenize())
        except Refused as refused:
            problems += refused.problems
    return statements


def _read_view(
    statement: Statement,
    cursor: Cursor,
    known: Mapping[str, Stream | None],
    problems: list[Problem],
) -> View | None:
    try:
        return read_view(statement, cursor, known, problems)
    except Refused as refused:
        problems += refused.problems
    return None


def _accept_create(statement: Statement, cursor: Cursor) -> str:
    """Pass over CREATE and what is created. Refused: it is another statement."""
    first, second = cursor.peek(), cursor.peek(1)
    if not cursor.accept("CREATE"):
        advice = _REFUSED.get(word(first), f"this is not a definition; {_KNOWN}")
        raise statement.source.refuse(statement.tokens[0], advice)
    if cursor.accept("STREAM"):
        kind = "STREAM"
    elif cursor.accept("MATERIALIZED", "VIEW"):
        kind = "VIEW"
    elif cursor.accept("SINK"):
        kind = "SINK"
    else:
        found = word(second) or "alone"
        raise cursor.refuse(_CREATE_REFUSED.get(found, f"CREATE {found} is not known; {_KNOWN}"))
    if cursor.next_is("IF"):
        raise cursor.refuse("IF NOT EXISTS is not needed: definitions say what is; remove it")
    return kind
