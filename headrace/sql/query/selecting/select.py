"""One SELECT over its scope into a node."""

from collections.abc import Callable, Mapping, Sequence

from sqlglot import TokenType, exp

from headrace.errors import Problem
from headrace.model.nodes import (
    WINDOW_COLUMNS,
    Aggregate,
    Filter,
    Generate,
    Named,
    Node,
    Project,
    inputs_of,
)
from headrace.model.references import scalars_of
from headrace.model.scalars import Scalar
from headrace.sql.query.expressions.binding import (
    Expressions,
    check_functions,
    name_of,
    quoted_column,
    quotes_of_text,
    refuse_null,
)
from headrace.sql.query.expressions.scopes import Scope, Target
from headrace.sql.query.expressions.windows import find_window, read_window
from headrace.sql.query.reading.syntax import AggregateCall, Broken, span_of
from headrace.sql.query.reading.trees import (
    Tree,
    aggregates_of,
    is_broken,
    path_of,
    strip_parentheses,
)
from headrace.sql.query.relations.generators import bind_laterals, lateral_names, laterals_of
from headrace.sql.query.relations.window_tables import WindowChoice, edges_of, window_columns
from headrace.sql.query.selecting.distinct import distinct, is_distinct
from headrace.sql.query.selecting.grouping import Groups
from headrace.sql.query.selecting.grouping_sets import MAX_KEYS, has_sets, members_of, sets_of
from headrace.sql.query.selecting.outputs import Output, read_outputs
from headrace.sql.query.selecting.over_groups import OverGroups
from headrace.sql.text import Refused, TooMany, word, words

__all__ = ["SelectBinder"]

#: Units of date_trunc that are windows, too, and functions that cut a time to one of them.
_UNITS = words("second minute hour day week")
_CUTS = {"date": "1 day", "to_date": "1 day"}
_TOO_EARLY = "{} is evaluated before records are grouped by the window; {}"


class SelectBinder:
    """One SELECT over its scope, on its way to a node."""

    def __init__(
        self, tree: Tree, select: exp.Select, scope: Scope, problems: list[Problem]
    ) -> None:
        self.tree = tree
        self.select = select
        self.scope = scope
        self.problems = problems
        self.expressions = Expressions(tree, scope)
        self.over = OverGroups(self.expressions) if scope.relation.is_grouped else None
        self.source = scope.relation.node  # what FROM names
        self.choice: WindowChoice | None = None  # whose window is that of the groups

    def bind(self) -> Node | None:
        """Return the node; after a problem it is not to be used. None: a part was not readable."""
        having = self._clause("having")
        group = self.select.args.get("group")
        outputs = self.select.expressions
        grouped = group is not None or any(
            any(aggregates_of(node)) for node in (*outputs, *([having] if having else []))
        )
        if having is not None and not grouped and not isinstance(having, Broken):
            self._add(having, "HAVING needs GROUP BY or an aggregate; write WHERE")
        try:
            self._choose_windows()
        except Refused as refused:
            self.problems += refused.problems
            return None
        if not bind_laterals(self.expressions, self.select, self.problems):
            return None  # without its columns the rest cannot be judged
        read = read_outputs(self.expressions, self.select, grouped=grouped, problems=self.problems)
        self.scope.outputs = frozenset(each.name.lower() for each in read.sound if each.has_alias)
        node = self.scope.relation.node
        where, condition = self._clause("where"), self._bind_where()
        if where is not None and condition is not None:
            node = Filter(node, condition, self.tree.location(where))
        if grouped:
            return self._bind_groups(node, read.items, having)
        if read.generator is not None:
            node = read.generator.over(node, read.made)
        columns = self._bind_outputs(read.items, self._bind_output)
        if self.select.args.get("distinct"):
            self._check_distinct()
            return distinct(node, columns)
        return Project(node, columns)

    def _choose_windows(self) -> None:
        """Decide what a window function of FROM is: the window of the groups, or rows."""
        if self.scope.relation.windowed is None:
            return
        self.scope.made += window_columns(self.scope.relation)
        choice = WindowChoice(self.tree, self.scope, self.select.args["from_"].this)
        if choice.of_groups(edges_of(self.scope, self._grouped_nodes())):
            self.choice = choice
        else:
            choice.assign()

    def _grouped_nodes(self) -> list[exp.Expr]:
        """Return what GROUP BY names, as far as that can be told before it is read."""
        outputs = [
            (each.alias_or_name.lower(), each.this if isinstance(each, exp.Alias) else each)
            for each in self.select.expressions
        ]
        columns = {*self.scope.columns, *lateral_names(self.select)}
        nodes: list[exp.Expr] = []
        for node in (each for part in self._group_parts() for each in (part, *members_of(part))):
            name, number = name_of(self.tree, node), self.tree.first(node).text
            nodes.append(node)
            if self._is_all(node):
                nodes += [output for _, output in outputs]
            elif number.isdigit() and 1 <= int(number) <= len(outputs):
                nodes.append(outputs[int(number) - 1][1])
            elif name is not None and name.lower() not in columns:
                nodes += [output for known, output in outputs if known == name.lower()]
        return nodes

    def _group_parts(self) -> list[exp.Expr]:
        """Return the parts of GROUP BY; several in parentheses are a part each."""
        group = self.select.args.get("group")
        parts: list[exp.Expr] = []
        for part in [] if group is None else group.expressions:
            inner = strip_parentheses(part)
            parts += inner.expressions if isinstance(inner, exp.Tuple) else [part]
        return parts

    def _clause(self, name: str) -> exp.Expr | None:
        clause = self.select.args.get(name)
        return None if clause is None else clause.this

    def _add(self, node: exp.Expr, message: str) -> None:
        self.problems.append(self.tree.problem(node, message))

    def _bind_where(self) -> Scalar | None:
        node = self._clause("where")
        if node is None or isinstance(node, Broken):
            return None
        try:
            check_functions(self.tree, self.scope, node)
            if any(aggregates_of(node)):
                raise self.tree.refuse(
                    node, "WHERE looks at single records; move the aggregate to HAVING"
                )
            self._refuse_window_in_where(node)
            return self._bind_row(node)
        except Refused as refused:
            self.problems += refused.problems
            return None

    def _bind_row(self, node: exp.Expr) -> Scalar:
        scalar = self.expressions.bind(node)
        return scalar if self.over is None else self.over.judge(node, scalar)

    def _bind_outputs(
        self, outputs: Sequence[Output | None], bind: Callable[[exp.Expr], Scalar]
    ) -> tuple[Named, ...]:
        columns: list[Named] = []
        for each in outputs:
            if each is None:
                continue
            try:
                scalar = each.scalar if each.node is None else bind(each.node)
                assert scalar is not None
                begins = each.place if each.node is None else self.tree.location(each.node)
                columns.append(Named(each.name, scalar, each.place, begins))
            except Refused as refused:
                self.problems += refused.problems
                if isinstance(refused, TooMany):
                    break
        return tuple(columns)

    def _bind_output(self, node: exp.Expr) -> Scalar:
        scalar = self._bind_row(node)
        refuse_null(self.tree, node)
        return scalar

    def _bind_groups(
        self, node: Node, outputs: Sequence[Output | None], having: exp.Expr | None
    ) -> Node | None:
        groups = Groups(self.expressions)
        before = len(self.problems)
        if self.choice is not None:
            self._refuse_windows_below(node)
            groups.window = self.choice.window
            self.scope.has_window = True
        self._read_group_by(groups, outputs)
        if self.choice is not None and len(self.problems) == before:
            try:
                self.choice.check_keys(groups.keys)
            except Refused as refused:
                self.problems += refused.problems
        group = self.select.args.get("group")
        # What could not be read behind the query may be its GROUP BY.
        broken = self._is_cut and group is None
        if group is not None:
            broken = not group.expressions or is_broken(group.expressions) or None in outputs
        if len(self.problems) > before or broken:
            return None  # without all keys, what is selected cannot be judged
        columns = self._bind_outputs(outputs, groups.bind)
        condition: Scalar | None = None
        if having is not None and len(columns) == len(outputs) and not isinstance(having, Broken):
            try:
                check_functions(self.tree, self.scope, having)
                condition = self._bind_having(groups, having, columns)
            except Refused as refused:
                self.problems += refused.problems
        node = groups.aggregate(node)
        if self.select.args.get("distinct"):
            self._check_distinct(node, columns)
        if having is not None and condition is not None:
            node = Filter(node, condition, self.tree.location(having))
        return Project(node, columns)

    @property
    def _is_cut(self) -> bool:
        """Whether what stands behind the SELECT could not be read."""
        last = span_of(self.select)[1]
        return last + 1 == self.tree.end < len(self.tree.tokens)

    def _refuse_windows_below(self, node: Node) -> None:
        """Refuse WHERE and LATERAL VIEW over a window that only groups have."""
        laterals = laterals_of(self.select)
        while node is not self.source:
            lateral = laterals.pop() if isinstance(node, Generate) else None
            if any(set(scalar.refs) & set(WINDOW_COLUMNS) for scalar in scalars_of(node)):
                if lateral is not None:
                    self._add(
                        lateral, _TOO_EARLY.format("LATERAL VIEW", "use window_start in SELECT")
                    )
                else:
                    place = self._clause("where") or self.select
                    self._add(place, _TOO_EARLY.format("WHERE", "write HAVING window_start > ..."))
            [node] = inputs_of(node)

    def _refuse_window_in_where(self, node: exp.Expr) -> None:
        """Refuse WHERE over window.start where GROUP BY makes the window."""
        if "window" in self.scope.columns or not any(
            find_window(self.tree, part) is not None for part in self._group_parts()
        ):
            return
        for column in node.find_all(exp.Column):
            if path_of(column)[0].name.lower() in ("window", "session_window"):
                how = f"write HAVING {self.tree.text(column)} > ..."
                raise self.tree.refuse(column, _TOO_EARLY.format("WHERE", how))

    def _check_distinct(
        self, aggregate: Aggregate | None = None, columns: Sequence[Named] = ()
    ) -> None:
        """Refuse a DISTINCT of some columns, and one that would leave out groups."""
        clause = self.select.args["distinct"]
        token = self.tree.tokens[span_of(self.select)[0] + 1]
        if clause.args.get("on"):
            self.problems.append(
                self.tree.problem(
                    token, "DISTINCT ON is not supported; write GROUP BY, and first(x) of the rest"
                )
            )
        elif aggregate is not None and not is_distinct(aggregate, columns):
            self.problems.append(
                self.tree.problem(
                    token,
                    "DISTINCT over groups would have to compare their rows, which change; select "
                    "all that GROUP BY names as it is, and remove DISTINCT",
                )
            )

    def _read_group_by(self, groups: Groups, outputs: Sequence[Output | None]) -> None:
        parts = self._group_parts()
        sets: list[list[exp.Expr]] = []
        if len(parts) == 1 and self._is_all(parts[0]):
            nodes = self._ungrouped(outputs)
        elif has_sets(parts):
            try:
                nodes, sets = sets_of(self.tree, parts, lambda node: self._look_up(node, outputs))
            except Refused as refused:
                self.problems += refused.problems
                return
        else:
            nodes = self._look_up_all(parts, outputs)
        nodes = [*{id(node): node for node in nodes}.values()]
        numbers: dict[int, int | None] = {}
        # The window first: others may be over it.
        for only_windows in (True, False):
            for node in nodes:
                try:
                    if (find_window(self.tree, node) is not None) is only_windows:
                        numbers[id(node)] = self._read_key(groups, node)
                except Refused as refused:
                    self.problems += refused.problems
        if sets and len(numbers) == len(nodes):
            self._read_sets(groups, sets, numbers)

    def _read_sets(
        self, groups: Groups, sets: Sequence[Sequence[exp.Expr]], numbers: Mapping[int, int | None]
    ) -> None:
        edges = [{self._edge(node) for node in each if numbers[id(node)] is None} for each in sets]
        for node in (node for each in sets for node in each if numbers[id(node)] is None):
            if not all(self._edge(node) in each for each in edges):
                written = self.tree.text(node)
                self._add(
                    node,
                    f"{written} must be in all sets, because a row belongs to one window; write "
                    f"GROUP BY {written}, ROLLUP (...)",
                )
                return
        if len(groups.keys) > MAX_KEYS:
            self._add(sets[0][0], f"GROUP BY has more than {MAX_KEYS} keys in sets; write fewer")
            return
        found = [[numbers[id(node)] for node in each] for each in sets]
        groups.set_sets([frozenset(at for at in each if at is not None) for each in found])

    def _edge(self, node: exp.Expr) -> str:
        """Return which column of the window a key is, or that it is the window itself."""
        is_whole = find_window(self.tree, node) is not None
        return "window" if is_whole else self.expressions.bind(node).name or ""

    def _is_all(self, node: exp.Expr) -> bool:
        is_word = word(self.tree.first(node)) == "ALL" and name_of(self.tree, node) is not None
        return is_word and "all" not in self.scope.columns

    def _ungrouped(self, outputs: Sequence[Output | None]) -> list[exp.Expr]:
        """Return what GROUP BY ALL groups by: the outputs that are over columns alone."""
        nodes = [each.node for each in outputs if each is not None and each.node is not None]
        return [
            node
            for node in nodes
            if node.find(exp.Column, exp.Anonymous) and not any(aggregates_of(node))
        ]

    def _look_up_all(
        self, parts: Sequence[exp.Expr], outputs: Sequence[Output | None]
    ) -> list[exp.Expr]:
        items: list[exp.Expr] = []
        for part in parts:
            try:
                item = None if isinstance(part, Broken) else self._look_up(part, outputs)
                items += [] if item is None else [item]
            except Refused as refused:
                self.problems += refused.problems
        return items

    def _look_up(self, node: exp.Expr, outputs: Sequence[Output | None]) -> exp.Expr | None:
        """Return the expression that one part of GROUP BY means: itself, or an output's.

        None: that of an output that has problems itself.
        """
        first, name = self.tree.first(node), name_of(self.tree, node)
        if self._is_all(node):
            raise self.tree.refuse(first, "ALL stands alone in GROUP BY; remove the other columns")
        if self.tree.last(node) is first and first.token_type == TokenType.NUMBER:
            if not (first.text.isdigit() and 1 <= int(first.text) <= len(outputs)):
                raise self.tree.refuse(
                    first, f"GROUP BY {first.text}: there are {len(outputs)} outputs"
                )
            output = outputs[int(first.text) - 1]
            return None if output is None else output.node
        if name is not None and name.lower() not in self.scope.columns:
            named = (each for each in outputs if each and each.name.lower() == name.lower())
            output = next(named, None)
            if output is None and None in outputs:
                return None  # it may be the name of one that has problems
            return node if output is None else output.node
        return node

    def _read_key(self, groups: Groups, node: exp.Expr) -> int | None:
        if find_window(self.tree, node) is not None:
            window = read_window(self.expressions, node)
            is_second = self.choice is None and self.scope.relation.windowed is not None
            if is_second or groups.window not in (None, window):
                raise self.tree.refuse(node, "a view has one window; remove this one")
            groups.window = window
            self.scope.has_window = True
            self.scope.has_session = window.gap_us is not None
            return None
        first = self.tree.first(node)
        if self.tree.last(node) is first and quoted_column(self.tree, self.scope, first):
            raise self.tree.refuse(first, quotes_of_text(self.tree, self.scope, first))
        check_functions(self.tree, self.scope, node)
        self._hint_at_window(groups, node)
        if any(aggregates_of(node)):
            raise self.tree.refuse(
                node, "GROUP BY cannot use an aggregate; group by what it is computed from"
            )
        return groups.add_key(node)

    def _hint_at_window(self, groups: Groups, node: exp.Expr) -> None:
        """Note that a grouping by the event time, cut by a function, never closes."""
        time = self.scope.relation.event_time
        cut = strip_parentheses(node)
        if groups.window is not None or time is None or not isinstance(cut, exp.Anonymous):
            return
        size = _CUTS.get(self.tree.call_name(cut) or "")
        if size is None and self.tree.call_name(cut) == "date_trunc" and cut.expressions:
            unit = str(self.tree.first(cut.expressions[0]).text).lower()
            size = f"1 {unit}" if unit in _UNITS else None
        columns = [column.name.lower() for column in cut.find_all(exp.Column)]
        if size is not None and time.lower() in columns:
            self.tree.hints.append(
                self.tree.problem(
                    node,
                    f"groups by {self.tree.text(node)} are kept for ever and never close; GROUP BY "
                    f"window({time}, '{size}') has the same rows, which close and can be emitted "
                    "when they are final",
                )
            )

    def _bind_having(self, groups: Groups, node: exp.Expr, columns: Sequence[Named]) -> Scalar:
        """Return HAVING over keys and calls; outputs may be used by name, as in Spark."""
        outputs: dict[str, Scalar] = {}
        for column in columns:
            if column.name.lower() not in self.scope.columns:
                outputs[column.name.lower()] = column.scalar
            elif not self._is_itself(groups, column):
                self._refuse_ambiguous(node, column)
        return groups.bind(node, outputs)

    def _is_itself(self, groups: Groups, column: Named) -> bool:
        target = self.scope.find([column.name])
        if not isinstance(target, Target):
            return False
        if self.scope.has_window and target.column in WINDOW_COLUMNS:
            return column.scalar.name == target.column
        key = groups.column_of_path(Scalar.column(target.column))
        return key is not None and column.scalar.name == key

    def _refuse_ambiguous(self, having: exp.Expr, output: Named) -> None:
        for column in having.find_all(exp.Column):
            parent = column.find_ancestor(AggregateCall)
            if column.name.lower() != output.name.lower() or column.table or parent is not None:
                continue  # the arguments of an aggregate can only be columns
            raise self.tree.refuse(
                column,
                f"{column.name} is an output and also a column of {self.scope.relation.name}; "
                "name the output differently",
            )
