"""`CREATE VIEW name AS ...` and `CREATE STREAM name AS ...`: names for queries, nothing stored.

Such a query is written out where FROM names it. They may read each other and stand in any order, so
each is bound when all that it reads is; a cycle is refused. A stream `WITH (topic = '...')` is a
view as well, whose rows are written to that topic.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import Token

from headrace.errors import Location, Problem
from headrace.model.definitions import NamedQuery, Stream, View
from headrace.model.fingerprint import view_fingerprint
from headrace.model.graph import outputs_of, streams_of
from headrace.model.names import name_fault
from headrace.model.validate import validate_view, validate_writing
from headrace.sql.column_lists import read_names
from headrace.sql.creating import STREAM, Kind
from headrace.sql.options import Option, read_options
from headrace.sql.query.binder import parse, read_query
from headrace.sql.query.expressions.scopes import Relation
from headrace.sql.query.reading.trees import Tree
from headrace.sql.query.relations.from_clause import name_columns, repeated_columns
from headrace.sql.query.relations.names import Entry, Names, Pending
from headrace.sql.statements import Cursor, Statement, nesting
from headrace.sql.text import Source, word
from headrace.sql.unknown import Unknown

__all__ = ["DERIVED_OPTIONS", "Unbound", "bind_queries", "is_derived", "read_named_query"]

DERIVED_OPTIONS = ("topic", "key", "rewrite")
#: What `rewrite` can be: an edited definition goes on in the topic, or begins with one of its own.
REWRITES = ("never", "new topic")


@dataclass(frozen=True)
class Unbound:
    """A named query as it was read; what it reads is not looked at yet."""

    statement: Statement
    kind: Kind
    name: Token
    tree: Tree
    columns: tuple[Token, ...] = ()  # names for its columns
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def topic(self) -> str | None:
        """The topic that it is written to; None: it is a name alone."""
        return self.options["topic"].text if "topic" in self.options else None

    def locations(self) -> dict[str, Location]:
        """Return where its name and its options stand."""
        source = self.statement.source
        found = {name: source.location(each.value.start) for name, each in self.options.items()}
        return found | {"name": source.location(self.name.start)}


def is_derived(cursor: Cursor) -> bool:
    """Whether CREATE STREAM goes on with a query; the cursor stands at the name."""
    at, depth = cursor.at + 1, 0
    while at < len(cursor.tokens):  # behind the column list, if there is one
        depth += nesting(cursor.tokens[at])
        if depth <= 0:
            break
        at += 1
    has_list = at > cursor.at + 1
    behind = [word(token) for token in cursor.tokens[at + has_list :]]
    return behind[:1] == ["AS"] or (behind[:1] == ["WITH"] and "AS" in behind)


def read_named_query(
    statement: Statement, cursor: Cursor, kind: Kind, problems: list[Problem]
) -> Unbound | None:
    """Read what follows CREATE VIEW or CREATE STREAM; problems are added, and then there is none.

    Refused: nothing more could be read.
    """
    source, before = statement.source, len(problems)
    name = cursor.take_name(f"name of the {kind.name}")
    how = f"write CREATE {' '.join(kind.words)} {name.text} AS SELECT ..."
    fault = name_fault(kind.name, str(name.text))
    problems += [source.problem(name, fault)] if fault else []
    columns: tuple[Token, ...] = ()
    options: Mapping[str, Option] = {}
    if cursor.next_is("("):
        columns = read_names(cursor, how)
    if cursor.next_is("WITH", "("):
        at = cursor.take("WITH")
        if kind is not STREAM:
            raise source.refuse(at, f"CREATE VIEW is a name for a query and has no options; {how}")
        options = read_options(cursor, "CREATE STREAM ... AS", DERIVED_OPTIONS, problems)
        problems += _option_problems(source, str(name.text), options)
    if not cursor.accept("AS"):
        raise cursor.refuse(f"AS is expected here{cursor.found()}; {how}")
    if not any(cursor.next_is(each) for each in ("SELECT", "WITH", "(")):
        raise cursor.refuse(f"SELECT is expected here{cursor.found()}; {how}")
    tree = parse(source, cursor.rest(), problems)
    if len(problems) > before:
        return None
    return Unbound(statement, kind, name, tree, columns, options)


def _option_problems(source: Source, name: str, options: Mapping[str, Option]) -> Iterator[Problem]:
    """Yield what is wrong with the options of a stream that is written to a topic."""
    for option in ("key", "rewrite"):
        if option in options and "topic" not in options:
            yield source.problem(
                options[option].name,
                f"{option} of {name} has no effect without a topic; write topic = '...' as well, "
                "or remove it",
            )
    rewrite = options.get("rewrite")
    if rewrite is not None and rewrite.text not in REWRITES:
        yield source.problem(
            rewrite.value,
            f"rewrite {rewrite.text!r} is not known; write 'new topic' (every edit writes all "
            "records anew, to a topic whose name ends with the version) or 'never' (an edit goes "
            "on in the same topic)",
        )


def bind_queries(
    unbound: list[Unbound],
    definitions: dict[str, Entry],
    streams: Mapping[str, Stream],
    problems: list[Problem],
    unknown: Unknown,
    *,
    whole: bool,
) -> tuple[list[NamedQuery], list[View]]:
    """Bind all named queries, put them among the definitions, and return those without problems.

    The views are those that write streams to topics.
    """
    found = _Definitions(unbound, definitions, streams, problems, unknown, whole=whole)
    return found.bind(), found.written


class _Definitions:
    """Named queries, bound as they read each other; the path from one to the next is a list.

    It is no recursion: hundreds of definitions may stand over each other.
    """

    def __init__(
        self,
        unbound: list[Unbound],
        definitions: dict[str, Entry],
        streams: Mapping[str, Stream],
        problems: list[Problem],
        unknown: Unknown,
        *,
        whole: bool,
    ) -> None:
        self.definitions = definitions
        self.streams = streams
        self.problems = problems
        self.unknown = unknown
        self.whole = whole
        self.queries: dict[str, Unbound] = {}
        for each in unbound:
            self.queries.setdefault(str(each.name.text).lower(), each)
        # Another definition may have the name; that they are two is said elsewhere.
        self.queries = {
            name: each
            for name, each in self.queries.items()
            if isinstance(definitions.get(name), Pending)
        }
        self.found: dict[str, NamedQuery] = {}
        self.written: list[View] = []

    def bind(self) -> list[NamedQuery]:
        for name in self.queries:
            path = [name]
            while path:
                waiting = self._bind(path[-1])
                cycle = next((each for each in waiting if each in path), None)
                if cycle is not None:
                    self._refuse_cycle(path[path.index(cycle) :])
                elif waiting:
                    path.append(next(iter(waiting)))
                    continue
                path = [each for each in path if self._is_pending(each)]
        return [self.found[name] for name in self.queries if name in self.found]

    def _is_pending(self, name: str) -> bool:
        return isinstance(self.definitions[name], Pending)

    def _bind(self, name: str) -> dict[str, None]:
        """Bind one query; return the queries that have to be bound before it, if there are any."""
        if not self._is_pending(name):
            return {}
        query = self.queries[name]
        names = Names(self.definitions, self.streams, self.whole)
        problems: list[Problem] = []
        relation = read_query(
            query.tree, names, problems, is_renamed=bool(query.columns), is_read=True
        )
        if names.waiting:
            return names.waiting
        if relation is not None:
            relation = _finish(query, relation, problems)
        self.problems += problems
        self.unknown.note(str(query.name.text), names.missing)
        if problems or relation is None:
            self.definitions[name] = None
            return {}
        own = str(query.name.text)
        self.definitions[name] = replace(relation, name=own, qualifier=own)
        self.found[name] = NamedQuery(
            own,
            query.kind.name,
            relation.node,
            reads=names.read_names,
            topic=query.topic,
            sql=query.statement.sql,
            location=query.statement.location,
        )
        if query.topic is not None:
            self.written += self._write(query, self.found[name], query.topic)
        return {}

    def _write(self, query: Unbound, named: NamedQuery, topic: str) -> list[View]:
        """Return the view that writes a stream to its topic, none if that is refused."""
        key = query.options["key"].text if "key" in query.options else None
        spelling = {each.name.lower(): each.name for each in outputs_of(named.query)}
        view = View(
            named.name,
            named.query,
            topic=topic,
            key=None if key is None else spelling.get(key.lower(), key),
            reads=named.reads,
            sql=named.sql,
            location=named.location,
        )
        streams = {each: self.streams[each] for each in streams_of(view.query)}
        if "rewrite" in query.options and query.options["rewrite"].text == "new topic":
            view = replace(view, topic=_topic_of_version(view, streams))
            self.found[str(query.name.text).lower()] = replace(named, topic=view.topic)
        locations = query.locations()
        outputs = enumerate(outputs_of(view.query))
        named_at = locations | {f"output {index}": each.location for index, each in outputs}
        problems = validate_view(view, streams, named_at)
        problems += validate_writing(view, streams, locations)
        self.problems += problems
        return [] if problems else [view]

    def _refuse_cycle(self, members: list[str]) -> None:
        # Begin with the first in the order of the files, so that the message is always the same.
        order = list(self.queries)
        begin = members.index(min(members, key=order.index))
        members = members[begin:] + members[:begin]
        queries = [self.queries[each] for each in members]
        spelled = [str(each.name.text) for each in queries]
        what = (
            "a definition cannot read itself"
            if len(members) == 1
            else ("definitions cannot form a cycle")
        )
        reads = ", ".join(
            f"{first} reads {second}"
            for first, second in zip(spelled, [*spelled[1:], spelled[0]], strict=True)
        )
        self.problems.append(
            queries[0].statement.source.problem(
                queries[0].name,
                f"{what}: {reads}; let one of them read a stream instead",
            )
        )
        for each in members:
            self.definitions[each] = None


def _topic_of_version(view: View, streams: Mapping[str, Stream]) -> str:
    """Return the topic of this version alone; its records are all of them, from the log's first.

    Whatever changes the records, in the definition or in a stream below it, changes the topic.
    """
    return f"{view.topic}.{view_fingerprint(view, *streams.values())[:8]}"


def _finish(query: Unbound, relation: Relation, problems: list[Problem]) -> Relation | None:
    """Return a query under the names of its column list; problems are added."""
    if query.columns:
        named = name_columns(query.tree, relation, query.columns, query.name, problems)
        if named is None:
            return None
        relation = named
    problems += repeated_columns(relation)
    if query.kind is STREAM and relation.is_grouped:
        problems.append(
            query.statement.source.problem(
                query.name,
                f"{query.name.text} is grouped, and the rows of a stream are records, not groups; "
                f"write CREATE MATERIALIZED VIEW, or CREATE VIEW for a name alone",
            )
        )
    return relation
