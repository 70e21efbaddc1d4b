"""`CREATE VIEW name AS ...` and `CREATE STREAM name AS ...`: names for queries, nothing stored.

Such a query is written out where FROM names it. They may read each other and stand in any order, so
each is bound when all that it reads is; a cycle is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType

from headrace.errors import Problem
from headrace.model.definitions import NamedQuery, Stream
from headrace.model.names import name_fault
from headrace.sql.creating import STREAM, Kind
from headrace.sql.options import read_options
from headrace.sql.query.binder import parse, read_query
from headrace.sql.query.names import Entry, Names, Pending
from headrace.sql.query.relations import name_columns, repeated_columns
from headrace.sql.query.scopes import Relation
from headrace.sql.query.trees import Tree
from headrace.sql.statements import Cursor, Statement, split_commas
from headrace.sql.text import word
from headrace.sql.unknown import Unknown

__all__ = ["DERIVED_OPTIONS", "Unbound", "bind_queries", "is_derived", "read_named_query"]

DERIVED_OPTIONS = ("topic",)


@dataclass(frozen=True)
class Unbound:
    """A named query as it was read; what it reads is not looked at yet."""

    statement: Statement
    kind: Kind
    name: Token
    tree: Tree
    columns: tuple[Token, ...] = ()  # names for its columns


def is_derived(cursor: Cursor) -> bool:
    """Whether CREATE STREAM goes on with a query; the cursor stands at the name."""
    behind = [word(token) for token in cursor.tokens[cursor.at + 1 :]]
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
    if cursor.next_is("("):
        columns = _read_columns(cursor, how)
    if cursor.next_is("WITH", "("):
        at = cursor.take("WITH")
        if kind is not STREAM:
            raise source.refuse(at, f"CREATE VIEW is a name for a query and has no options; {how}")
        options = read_options(cursor, "CREATE STREAM ... AS", DERIVED_OPTIONS, problems)
        if "topic" in options:
            problems.append(
                source.problem(
                    options["topic"].name,
                    f"writing a stream to a topic is not built yet; remove topic, and {name.text} "
                    "is a name for its query",
                )
            )
    if not cursor.accept("AS"):
        raise cursor.refuse(f"AS is expected here{cursor.found()}; {how}")
    if not any(cursor.next_is(each) for each in ("SELECT", "WITH", "(")):
        raise cursor.refuse(f"SELECT is expected here{cursor.found()}; {how}")
    tree = parse(source, cursor.rest(), problems)
    if len(problems) > before:
        return None
    return Unbound(statement, kind, name, tree, columns)


def _read_columns(cursor: Cursor, how: str) -> tuple[Token, ...]:
    opening = cursor.peek()
    assert opening is not None
    found: list[Token] = []
    for part in split_commas(cursor.take_parenthesised("the columns")):
        is_name = len(part) == 1 and part[0].token_type != TokenType.STRING
        if not is_name:
            raise cursor.source.refuse(
                part[0] if part else opening,
                f"only names are allowed here, one for each column of the query; {how}",
            )
        found.append(part[0])
    return tuple(found)


def bind_queries(
    unbound: list[Unbound],
    definitions: dict[str, Entry],
    streams: Mapping[str, Stream],
    problems: list[Problem],
    unknown: Unknown,
    *,
    whole: bool,
) -> list[NamedQuery]:
    """Bind all named queries, put them among the definitions, and return those without problems."""
    return _Definitions(unbound, definitions, streams, problems, unknown, whole=whole).bind()


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
        relation = read_query(query.tree, names, problems, is_renamed=bool(query.columns))
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
            sql=query.statement.sql,
            location=query.statement.location,
        )
        return {}

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
