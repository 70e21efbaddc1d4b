"""Expressions over a query that is grouped: they obey the rules of one grouped SELECT."""

from sqlglot import exp

from headrace.model.graph import window_of
from headrace.model.nodes import WINDOW_COLUMNS, Filter, Project, key_column
from headrace.model.scalars import Scalar
from headrace.sql.query.expressions.binding import Expressions
from headrace.sql.query.expressions.scopes import Target
from headrace.sql.query.reading.trees import is_path, path_of, strip_parentheses
from headrace.sql.query.selecting.grouping import Groups

__all__ = ["OverGroups"]


class OverGroups(Groups):
    """The groups that a SELECT reads; its columns stand for keys, calls and window edges."""

    def __init__(self, expressions: Expressions) -> None:
        super().__init__(expressions)
        relation = expressions.scope.relation
        self.window = window_of(relation.node)
        self._origins = {column.name: column.origins for column in relation.columns}

    def judge(self, node: exp.Expr, scalar: Scalar) -> Scalar:
        """Return an expression over the groups as it is. Refused: the store cannot compute it."""
        if scalar.name is None and self._is_known_later(node, scalar):
            self._refuse_foreign(strip_parentheses(node))
        return scalar

    def column_of_node(self, node: exp.Expr) -> str | None:
        """Return the column of the groups that a node is."""
        if not is_path(node):
            return None
        target = self.expressions.scope.find([part.name for part in path_of(node)])
        return target.column if isinstance(target, Target) and not target.fields else None

    def column_of_path(self, scalar: Scalar) -> str | None:
        """Return the column of the groups that a path is."""
        return scalar.name

    def _is_output(self, node: exp.Expr) -> bool:
        """Whether a node is a column that follows from an aggregate, not from keys alone."""
        if not isinstance(node, exp.Column):
            return False
        target = self.expressions.scope.find([part.name for part in path_of(node)])
        if not isinstance(target, Target):
            return False
        return any(not _is_key(origin) for origin in self._origins.get(target.column, ()))

    def _is_known_later(self, node: exp.Expr, scalar: Scalar) -> bool:
        """Whether no record knows the value: it is over an aggregate, or over windows to come."""
        if self._written_out(scalar).name in WINDOW_COLUMNS:
            return False  # an edge of a window that was selected as one column
        if any(map(self._is_output, node.find_all(exp.Column))):
            return True
        origins = {each for ref in scalar.refs for each in self._origins.get(ref, ())}
        return self._has_many_windows and not origins.isdisjoint(WINDOW_COLUMNS)

    def _written_out(self, scalar: Scalar) -> Scalar:
        """Return an expression over the columns of the aggregate."""
        below = self.expressions.scope.relation.node
        while isinstance(below, Project | Filter):
            if isinstance(below, Project):
                scalar = scalar.substitute({each.name: each.scalar for each in below.columns})
            below = below.input
        return scalar


def _is_key(origin: str) -> bool:
    return origin in WINDOW_COLUMNS or origin.startswith(key_column(0)[:-1])
