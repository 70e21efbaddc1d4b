"""Names in FROM: the definitions of the project, and the common table expressions of a query."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import Token

from headrace.errors import Problem
from headrace.model.definitions import Stream
from headrace.model.names import closest
from headrace.sql.query.expressions.scopes import Relation
from headrace.sql.query.reading.trees import Tree

__all__ = ["Entry", "Names", "Pending", "Unreadable"]


@dataclass(frozen=True)
class Unreadable:
    """A definition that FROM cannot read, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Pending:
    """A named query that is not bound yet."""

    name: str


#: What a definition is to FROM; None: its own statement was refused, so its readers are not judged.
Entry = Relation | Unreadable | Pending | None


@dataclass(frozen=True)
class Names:
    """What a query may read, by name in lower case; a CTE hides a definition of its name.

    `read`, `waiting` and `missing` are filled as names are looked up: the definitions that are
    read, those of them that have to be bound first, and names that are not defined.
    """

    definitions: Mapping[str, Entry]
    streams: Mapping[str, Stream]  # by their own spelling: the leaves
    whole: bool = True  # false: a file could not be read, so that a name may be defined there
    ctes: Mapping[str, Relation | None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    missing: dict[str, list[Problem]] = field(default_factory=dict)  # by name in lower case

    def anew(self) -> "Names":
        """Return the names for another query, which has read none of them yet."""
        return replace(self, read={}, waiting={}, missing={})

    def find(self, tree: Tree, token: Token, problems: list[Problem]) -> Relation | None:
        """Return what a name in FROM stands for; None: it is refused, here or where it stands."""
        name = str(token.text).lower()
        if name in self.ctes:
            return self.ctes[name]
        if name not in self.definitions:
            if self.whole:
                problem = tree.problem(token, self._unknown(str(token.text)))
                self.missing.setdefault(name, []).append(problem)
                problems.append(problem)
            return None
        self.read[name] = None
        match self.definitions[name]:
            case Pending():
                self.waiting[name] = None
                return None
            case Unreadable(reason=reason):
                problems.append(tree.problem(token, reason))
                return None
            case found:
                return found

    @property
    def read_names(self) -> tuple[str, ...]:
        """The definitions that were read, each once, in their own spelling."""
        found = (self.definitions[name] for name in self.read)
        return tuple(each.name for each in found if each is not None)

    def _unknown(self, name: str) -> str:
        known = [each.name for each in (*self.definitions.values(), *self.ctes.values()) if each]
        return (
            f"there is no stream or view {name}{closest(name, known)}; define it with CREATE "
            "STREAM or CREATE VIEW, or correct its name"
        )
