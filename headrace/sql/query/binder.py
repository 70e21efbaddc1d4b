"""The tree of a query into nodes.

    Project(Filter?(relation))                                              without groups
    Project(Filter?(Aggregate(Filter?(relation))))                          with them
    Union(query, query, ...)                                                UNION ALL

CTEs, queries in FROM and those of a UNION ALL are each bound as a query of its own. What comes of
one is a `Relation`, as FROM reads it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import Token, exp

from headrace.errors import Problem
from headrace.model.nodes import Filter, Node, Project
from headrace.sql.query.expressions.scopes import Naming, Relation
from headrace.sql.query.reading.clauses import (
    misplaced_clauses,
    refused_clauses,
    set_operator,
    unread,
)
from headrace.sql.query.reading.parser import parse_query
from headrace.sql.query.reading.trees import Tree, aggregates_of, is_broken
from headrace.sql.query.relations.derived import (
    MAX_EXPRESSION,
    MAX_LEAVES,
    MAX_LEVELS,
    TooLong,
    pass_watermark,
    relation_of_select,
    relation_of_union,
)
from headrace.sql.query.relations.from_clause import (
    bind_from,
    columns_text,
    name_columns,
    repeated_columns,
)
from headrace.sql.query.relations.generators import find_generator, laterals_of
from headrace.sql.query.relations.names import Names
from headrace.sql.query.selecting.select import SelectBinder
from headrace.sql.text import Refused, Source

__all__ = ["MAX_ALIKE", "parse", "read_query"]

#: Problems of one query with the same text that are told one by one; more are counted.
MAX_ALIKE = 10


def parse(source: Source, tokens: Sequence[Token], problems: list[Problem]) -> Tree:
    """Return the tree of a query; what could not be read of it is added. Refused: nothing could."""
    tree = parse_query(source, tokens, problems)
    behind = unread(tree)
    problems += [] if behind is None else [behind]
    return tree


def read_query(
    tree: Tree,
    names: Names,
    problems: list[Problem],
    *,
    is_renamed: bool = False,
    is_read: bool = False,
) -> Relation | None:
    """Return what a query gives; None: it has problems, or what it reads has.

    `is_renamed` says that a column list gives names to its outputs, `is_read` that other queries
    may read it.
    Its own are added, in the order of the text, and those that the tree has already are told by
    the caller.
    """
    found: list[Problem] = []
    relation: Relation | None = None
    try:
        naming = Naming.GIVEN if is_renamed else Naming.OWN
        relation = _Queries(tree, found, is_read=is_read).bind(tree.root, names, naming)
    except Refused as refused:
        found += refused.problems
    problems += _once(sorted(found, key=lambda problem: problem.location))
    if found or relation is None:
        return None
    return replace(relation, node=pass_watermark(relation.node))


def _once(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Yield problems; of those that say the same in many places the first, with their number."""
    counts = Counter(problem.message for problem in problems)
    told: set[str] = set()
    for problem in problems:
        count = counts[problem.message]
        if count <= MAX_ALIKE:
            yield problem
        elif problem.message not in told:
            told.add(problem.message)
            message = f"{problem.message} (the same at {count - 1:,} other places of this query)"
            yield replace(problem, message=message)


class _Queries:
    """Binds the queries of one tree."""

    def __init__(self, tree: Tree, problems: list[Problem], *, is_read: bool) -> None:
        self.tree = tree
        self.problems = problems
        self.is_read = is_read

    def bind(self, query: exp.Expr, names: Names, naming: Naming) -> Relation | None:
        """Return what a query gives; None: it has problems, which are added, or what it reads has.

        `naming` says which of its outputs need names.
        Refused: it is no query at all.
        """
        before = len(self.problems)
        names = self._bind_ctes(query, names)
        if isinstance(query, exp.Subquery):  # parentheses around a query
            self.problems += refused_clauses(self.tree, query)
            relation = self.bind(query.this, names, naming)
        elif isinstance(query, exp.SetOperation):
            relation = self._bind_union(query, names, naming)
        elif isinstance(query, exp.Select):
            relation = self._bind_select(query, names, naming)
        else:
            first = self.tree.first(query).text
            raise self.tree.refuse(query, f"SELECT is expected here, not {first}")
        if relation is not None:
            self._refuse_large(query, relation)
        return None if len(self.problems) > before else relation

    def _add(self, where: exp.Expr | Token, message: str) -> None:
        self.problems.append(self.tree.problem(where, message))

    def _refuse_large(self, query: exp.Expr, relation: Relation) -> None:
        if relation.levels > MAX_LEVELS:
            self._add(
                query,
                f"the query has more than {MAX_LEVELS} levels of queries below it; write it in "
                "fewer steps",
            )
        elif relation.leaves > MAX_LEAVES:
            self._add(
                query,
                f"the query reads streams {relation.leaves:,} times with all definitions "
                f"inlined; at most {MAX_LEAVES:,} are possible",
            )

    def _bind_ctes(self, query: exp.Expr, names: Names) -> Names:
        """Return the names within a query; each CTE sees those before it."""
        clause = query.args.get("with_")
        if clause is None:
            return names
        if clause.args.get("recursive"):
            second = self.tree.tokens_of(clause)[1]
            raise self.tree.refuse(second, "recursive queries are not supported; remove RECURSIVE")
        own: set[str] = set()
        known = dict(names.ctes)  # grows as they are read
        names = replace(names, ctes=known)
        for cte in clause.expressions:
            name = self.tree.first(cte)
            relation = self._bind_cte(cte, name, names)
            if str(name.text).lower() in own:
                self._add(name, f"{name.text} stands twice in WITH; rename one")
                continue
            own.add(str(name.text).lower())
            known[str(name.text).lower()] = relation
        return names

    def _bind_cte(self, cte: exp.Expr, name: Token, names: Names) -> Relation | None:
        before = len(self.problems)
        try:
            columns = [self.tree.first(column) for column in cte.args["alias"].columns]
            naming = Naming.GIVEN if columns else Naming.IF_READ
            relation = self.bind(cte.this, names, naming)
        except Refused as refused:
            self.problems += refused.problems
            return None
        if relation is None:
            return None
        named = name_columns(self.tree, relation, columns, name, self.problems)
        if named is None:
            return None
        self.problems += repeated_columns(named)
        if len(self.problems) > before:
            return None
        return replace(named, name=str(name.text), qualifier=str(name.text))

    def _bind_union(self, query: exp.SetOperation, names: Names, naming: Naming) -> Relation | None:
        branches: list[exp.Expr] = []
        left: exp.Expr = query
        # Hundreds of queries make a tree as deep, so no method calls itself here. Parentheses
        # around the first queries mean nothing; those around later ones stay, as in Spark.
        while isinstance(left, exp.SetOperation) and (left is query or not left.args.get("with_")):
            problem = set_operator(self.tree, left)
            self.problems += [] if problem is None else [problem]
            self.problems += refused_clauses(self.tree, left)
            branches.append(left.expression)
            left = _unwrapped(left.this)
        branches.append(left)
        first_branch, *others = reversed(branches)
        bound = [(first_branch, self._bind_branch(first_branch, names, naming))]
        bound += [(branch, self._bind_branch(branch, names, Naming.GIVEN)) for branch in others]
        relations = [relation for _, relation in bound if relation is not None]
        first = bound[0][1]
        if first is None:
            return None
        for branch, relation in bound[1:]:
            if relation is not None and len(relation.columns) != len(first.columns):
                self._add(
                    branch,
                    f"this query of UNION ALL has {columns_text(len(relation.columns))}, and the "
                    f"first has {len(first.columns)}; select as many in each",
                )
                return None
        if len(relations) < len(bound):
            return None
        return relation_of_union(relations, names.streams)

    def _bind_branch(self, branch: exp.Expr, names: Names, naming: Naming) -> Relation | None:
        try:
            relation = self.bind(branch, names, naming)
        except Refused as refused:
            self.problems += refused.problems
            return None
        if relation is not None and relation.is_grouped:
            self._add(
                branch,
                "UNION ALL of grouped queries is not built yet; combine the records first, then "
                "group them: SELECT ... FROM (SELECT ... UNION ALL SELECT ...) GROUP BY ...",
            )
            return None
        return relation

    def _bind_select(self, select: exp.Select, names: Names, naming: Naming) -> Relation | None:
        self.problems += refused_clauses(self.tree, select)
        self.problems += misplaced_clauses(self.tree, select)
        if not select.args.get("from_"):
            if is_broken(select.expressions) or self.tree.end < len(self.tree.tokens):
                return None  # that may have hidden it, and is said already
            raise self.tree.refuse(select, "FROM is missing; write SELECT ... FROM <stream>")
        scope = bind_from(self.tree, select, names, self.bind, self.problems)
        if scope is None:
            return None
        scope.naming = naming
        scope.is_read = self.is_read or select is not self.tree.root
        below = scope.relation  # generators of FROM are put over it
        if below.is_grouped and self._regroups(select, below):
            return None
        before = len(self.problems)
        node = SelectBinder(self.tree, select, scope, self.problems).bind()
        if node is None or len(self.problems) > before:
            return None
        assert not below.is_grouped or _is_linear(node, below.node)
        try:
            return relation_of_select(node, scope.relation, names.streams)
        except TooLong as error:
            message = (
                f"with all that it uses written out, this has {error.size:,} characters; at most "
                f"{MAX_EXPRESSION:,} are possible: use each column once, or let the producer "
                "compute it"
            )
            place = error.place or self.tree.location(select)
            self.problems.append(Problem(place, message))
            return None

    def _regroups(self, select: exp.Select, relation: Relation) -> bool:
        """Whether a query does more with groups than to select and filter them, which is said."""
        having = select.args.get("having")
        parts = [*select.expressions, *([having] if having else [])]
        calls = [call for part in parts for call in aggregates_of(part)]
        places = [*([select.args["group"]] if select.args.get("group") else []), *calls]
        if select.args.get("distinct"):
            places.append(select)
        found = (find_generator(self.tree, each) for each in select.expressions)
        generators = [*laterals_of(select), *(each for each in found if each is not None)]
        if places:
            self._add(places[0], _regrouped("an aggregate", relation))
        elif generators:
            self._add(generators[0], _regrouped("a generator", relation))
        return bool(places or generators)


def _unwrapped(query: exp.Expr) -> exp.Expr:
    """Return a query without parentheses around all of it."""
    while isinstance(query, exp.Subquery) and query.is_wrapper:
        query = query.this
    return query


def _is_linear(node: Node, below: Node) -> bool:
    while isinstance(node, Project | Filter) and node is not below:
        node = node.input
    return node is below


def _regrouped(what: str, relation: Relation) -> str:
    return (
        f"{what} over groups is not built yet: {relation.name} is grouped already; group once, "
        "over its records, or work it out when you read the view"
    )
