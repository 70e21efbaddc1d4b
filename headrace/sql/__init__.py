"""SQL text into the model: streams, tables, views, materialized views and sinks.

Promises:
- All problems of all files are reported at once, each with file, line and column, and with what
  to do; text of any kind raises DefinitionError and nothing else.
- Definitions may stand in any order and in any file, and read each other in any order.
- A definition that was refused does not make its readers look wrong: the cause is told alone.
- A definition carries its statement as written, for people; nothing behind this room parses it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headrace.errors import DefinitionError, Problem
from headrace.model.definitions import Project, Sink, Stream, View
from headrace.model.table_views import table_view
from headrace.model.validate import taken_fault, validate_project
from headrace.sql.creating import (
    MATERIALIZED_VIEW,
    SINK,
    STREAM,
    TABLE,
    Kind,
    accept_create,
    created_name,
    may_create_stream,
)
from headrace.sql.queries import Unbound, bind_queries, is_derived, read_named_query
from headrace.sql.query.expressions.scopes import Relation
from headrace.sql.query.reading.trees import Tree
from headrace.sql.query.relations.names import Entry, Names, Pending, Unreadable
from headrace.sql.sinks import read_sink
from headrace.sql.stack import on_own_stack
from headrace.sql.statements import Cursor, Statement, split_statements
from headrace.sql.streams import read_stream
from headrace.sql.text import Refused, Source
from headrace.sql.unknown import Unknown
from headrace.sql.views import read_view

__all__ = ["Reading", "parse_project", "read_project"]

_VIEW_OVER_VIEW = (
    "{0} is a materialized view, and views over views are not built yet; write its query as CREATE "
    "VIEW or CREATE STREAM ... AS, which others can read, or read the streams that {0} reads"
)
_VIEW_OVER_TABLE = (
    "{0} is a table, and views over tables are not built yet; read its rows with `headrace sql`, "
    "by HTTP or with a sink"
)
_FROM_SINK = "{0} is a sink, which only writes; read what {1} reads"


@dataclass(frozen=True)
class Reading:
    """What files say: all that could be read of it, and every problem of it.

    `sound` are the views that have no problem of their own, `doubtful` the streams that have one.
    """

    project: Project
    problems: tuple[Problem, ...]
    sound: tuple[View, ...]
    doubtful: tuple[Stream, ...]
    misses_streams: bool  # there may be streams that could not be read at all
    warnings: tuple[Problem, ...]  # of sound queries: what may surprise
    hints: tuple[Problem, ...]  # and what could be written better
    statements: int  # how many there are, refused ones included


def parse_project(
    sources: Mapping[str, str], *, environment: Mapping[str, str] | None = None
) -> Project:
    """Return the project that the files define, from file name to SQL text.

    `environment` has the variables that options may name; None: those of the process.
    DefinitionError: carries every problem of every file.
    """
    reading = read_project(sources, environment=environment)
    if reading.problems:
        raise DefinitionError(reading.problems)
    return reading.project


def read_project(
    sources: Mapping[str, str], *, environment: Mapping[str, str] | None = None
) -> Reading:
    """Return what the files say, from file name to SQL text, with every problem."""
    variables = os.environ if environment is None else environment
    return on_own_stack(lambda: _Files(sources, variables).read())


@dataclass
class _Files:
    """The definitions of all files, as they are read."""

    sources: Mapping[str, str]
    environment: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    #: What each name is to FROM; the first of two definitions counts, and None was refused.
    entries: dict[str, Entry] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    unbound: list[Unbound] = field(default_factory=list)
    views: list[tuple[Statement, Cursor]] = field(default_factory=list)
    whole: bool = True  # all files could be read
    first: dict[str, Statement] = field(default_factory=dict)  # that has each name
    unknown: Unknown = field(default_factory=Unknown)
    tables: list[View] = field(default_factory=list)  # those without problems
    sound: list[View] = field(default_factory=list)
    doubtful: list[Stream] = field(default_factory=list)
    misses_streams: bool = False
    warnings: list[Problem] = field(default_factory=list)
    hints: list[Problem] = field(default_factory=list)

    def read(self) -> Reading:
        """Return what the files say."""
        statements = self._statements()
        for statement in statements:
            try:
                self._read(statement)
            except Refused as refused:
                self._note(statement, None)
                self.problems += refused.problems
                self.misses_streams |= may_create_stream(statement)
        # As leaves: the first of two streams of one name, like everywhere else.
        leaves = {stream.name: stream for stream in reversed(self.streams)}
        queries, written = bind_queries(
            self.unbound, self.entries, leaves, self.problems, self.unknown, whole=self.whole
        )
        for query in self.unbound:
            self._advise(query.tree)
        names = Names(self.entries, leaves, self.whole)
        found = [self._read_view(statement, cursor, names) for statement, cursor in self.views]
        read = tuple(view for view in found if view is not None)
        views = (*self.tables, *read, *written)
        known = [*(each.name for each in queries), *(each.name for each in views)]
        spelling = {name.lower(): name for name in known}
        sinks = tuple(
            replace(sink, view=spelling.get(sink.view.lower(), sink.view)) for sink in self.sinks
        )
        project = Project(tuple(self.streams), views, sinks, tuple(queries))
        # A definition that was refused would make its sinks look wrong too.
        unread = frozenset(name for name, entry in self.entries.items() if entry is None)
        whole = self.whole and len(read) == len(found)
        self.problems += validate_project(project, whole=whole, refused=unread)
        problems = tuple(dict.fromkeys(self.unknown.tell(self.problems)))
        return Reading(
            project,
            problems,
            (*self.tables, *self.sound),
            tuple(self.doubtful),
            self.misses_streams or not self.whole,
            tuple(dict.fromkeys(self.warnings)),
            tuple(dict.fromkeys(self.hints)),
            len(statements),
        )

    def _statements(self) -> list[Statement]:
        statements: list[Statement] = []
        for file, text in self.sources.items():
            source = Source(file, text, self.environment)
            try:
                statements += split_statements(source, source.tokenize())
            except Refused as refused:
                self.whole = False
                self.problems += refused.problems
        return statements

    def _note(self, statement: Statement, entry: Entry) -> None:
        name = created_name(statement)
        if name is not None:
            self.entries.setdefault(name.lower(), entry)
            self.first.setdefault(name.lower(), statement)

    def _read(self, statement: Statement) -> None:
        cursor = Cursor(statement.source, statement.tokens)
        kind = accept_create(statement, cursor)
        name = created_name(statement) or ""
        if kind is MATERIALIZED_VIEW:
            self._note(statement, Unreadable(name, _VIEW_OVER_VIEW.format(name)))
            self.views.append((statement, cursor))
        elif kind is SINK:
            sink = read_sink(statement, cursor, self.problems)
            self.sinks.append(sink)
            self._note(statement, Unreadable(name, _FROM_SINK.format(name, sink.view)))
        elif kind is TABLE or (kind is STREAM and not is_derived(cursor)):
            self._read_stream(statement, cursor, kind, name)
        else:
            self._read_query(statement, cursor, kind, name)

    def _read_stream(self, statement: Statement, cursor: Cursor, kind: Kind, name: str) -> None:
        before = len(self.problems)
        stream, sound = read_stream(statement, cursor, kind, self.problems)
        has_problems = len(self.problems) > before
        self.doubtful += [stream] if has_problems else []
        entry: Entry = None  # where columns are in doubt, which would make readers look wrong too
        if kind is TABLE:
            entry = Unreadable(name, _VIEW_OVER_TABLE.format(name)) if sound else None
            if not has_problems:
                self.tables.append(table_view(stream))
        elif sound:
            entry = Relation.of_stream(stream, None)
        self.streams.append(stream)
        self._note(statement, entry)

    def _read_query(self, statement: Statement, cursor: Cursor, kind: Kind, name: str) -> None:
        query = read_named_query(statement, cursor, kind, self.problems)
        first = self.first.get(name.lower())
        if first is not None:
            self.problems.append(Problem(statement.location, taken_fault(name, first.location)))
            return
        self._note(statement, None if query is None else Pending(name))
        self.unbound += [] if query is None else [query]

    def _advise(self, tree: Tree) -> None:
        self.warnings += tree.warnings
        self.hints += tree.hints

    def _read_view(self, statement: Statement, cursor: Cursor, names: Names) -> View | None:
        before, view, names = len(self.problems), None, names.anew()
        try:
            view, tree = read_view(statement, cursor, names, self.problems)
            self._advise(tree)
        except Refused as refused:
            self.problems += refused.problems
        self.unknown.note(created_name(statement) or "a view", names.missing)
        if view is not None and len(self.problems) == before:
            self.sound.append(view)
        return view
