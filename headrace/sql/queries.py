"""The clauses of a SELECT over one stream into a Query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType, exp, parse_one

from headrace.errors import Location, Problem
from headrace.model.definitions import Output, Query, Stream
from headrace.sql.expressions import STANDS_FOR, Scope, name_of, refuse_null
from headrace.sql.functions import AGGREGATES, find_calls
from headrace.sql.grouping import Groups, contains_aggregate
from headrace.sql.projections import Projection, check_functions, read_projections
from headrace.sql.select import Clauses
from headrace.sql.text import Refused, Source, word
from headrace.sql.windows import find_window, name_window_time, read_window

__all__ = ["QueryReader"]


@dataclass
class QueryReader:
    """Reads the clauses of one view over its stream into a Query."""

    source: Source
    stream: Stream
    clauses: Clauses
    problems: list[Problem]

    def read(self) -> Query | None:
        """Return the query, or None after a problem."""
        before = len(self.problems)
        try:
            clauses = self.clauses = self._name_window_times()
        except Refused as refused:
            self.problems += refused.problems
            return None
        scope = self._scope()
        grouped = (
            bool(clauses.group_by)
            or any(map(contains_aggregate, clauses.projections))
            or (clauses.having is not None and contains_aggregate(clauses.having))
        )
        if clauses.having is not None and not grouped:
            self.problems.append(
                self.source.problem(
                    clauses.having[0], "HAVING without GROUP BY filters nothing; write WHERE"
                )
            )
        projections = read_projections(
            scope, clauses.projections, grouped=grouped, problems=self.problems
        )
        scope.outputs = frozenset(each.name.lower() for each in projections if each.has_alias)
        where = self._read_where(scope)
        if grouped:
            query = self._read_grouped(scope, projections, where)
        else:
            query = Query(
                stream=self.stream.name, where=where, grouped=False, window=None, keys=(), calls=(),
                outputs=self._read_outputs(scope, projections),
            )  # fmt: skip
        return query if len(self.problems) == before else None

    def _name_window_times(self) -> Clauses:
        clauses = self.clauses

        def name(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
            return name_window_time(self.source, tokens)

        return replace(
            clauses,
            projections=[name(tokens) for tokens in clauses.projections],
            where=None if clauses.where is None else name(clauses.where),
            group_by=[name(tokens) for tokens in clauses.group_by],
            having=None if clauses.having is None else name(clauses.having),
        )

    def _scope(self) -> Scope:
        alias = self.clauses.alias
        return Scope(self.source, self.stream, str(alias.text) if alias else self.stream.name)

    def _read_where(self, scope: Scope) -> str | None:
        tokens = self.clauses.where
        if tokens is None:
            return None
        try:
            check_functions(scope, tokens)
            if contains_aggregate(tokens):
                raise self.source.refuse(
                    tokens[0], "WHERE looks at single records; move the aggregate to HAVING"
                )
            return scope.read(tokens).text
        except Refused as refused:
            self.problems += refused.problems
            return None

    def _read_outputs(self, scope: Scope, projections: Sequence[Projection]) -> tuple[Output, ...]:
        outputs: list[Output] = []
        for each in projections:
            try:
                expression = scope.read(each.tokens)
                refuse_null(self.source, expression)
                outputs.append(Output(each.name, expression.text, self._place(each)))
            except Refused as refused:
                self.problems += refused.problems
        return tuple(outputs)

    def _place(self, projection: Projection) -> Location:
        return self.source.location(projection.place.start)

    def _read_grouped(
        self, scope: Scope, projections: Sequence[Projection], where: str | None
    ) -> Query:
        groups = Groups(scope)
        sound = self._read_group_by(groups, projections)
        outputs: list[Output] = []
        for each in projections if sound else ():
            try:
                expression = groups.rewrite(each.tokens)
                outputs.append(Output(each.name, expression, self._place(each)))
            except Refused as refused:
                self.problems += refused.problems
        having: str | None = None
        if self.clauses.having is not None and sound and len(outputs) == len(projections):
            try:
                check_functions(scope, self.clauses.having)
                having = self._read_having(groups, self.clauses.having, outputs)
            except Refused as refused:
                self.problems += refused.problems
        return Query(
            stream=self.stream.name,
            where=where,
            grouped=True,
            window=groups.window,
            keys=tuple(key for key, _ in groups.keys),
            calls=groups.calls,
            outputs=tuple(outputs),
            having=having,
        )

    def _read_group_by(self, groups: Groups, projections: Sequence[Projection]) -> bool:
        """Read the keys; the window first, because other keys may use it."""
        before = len(self.problems)
        items: list[tuple[Token, ...]] = []
        for part in self.clauses.group_by:
            try:
                items.append(self._look_up(groups.scope, part, projections))
            except Refused as refused:
                self.problems += refused.problems
        for only_windows in (True, False):
            for item in items:
                try:
                    if (find_window(item) is not None) is only_windows:
                        self._read_key(groups, item)
                except Refused as refused:
                    self.problems += refused.problems
        return len(self.problems) == before

    def _look_up(
        self, scope: Scope, tokens: tuple[Token, ...], projections: Sequence[Projection]
    ) -> tuple[Token, ...]:
        """Return the expression that one part of GROUP BY means: itself, or an output's."""
        first = tokens[0]
        name = name_of(tokens)
        if word(first) in ("ROLLUP", "CUBE", "GROUPING") or (word(first) == "ALL" and name):
            raise self.source.refuse(
                first, f"GROUP BY {word(first)} is not built yet; name the columns"
            )
        if len(tokens) == 1 and first.token_type == TokenType.NUMBER:
            if not (first.text.isdigit() and 1 <= int(first.text) <= len(projections)):
                raise self.source.refuse(
                    first, f"GROUP BY {first.text}: there are {len(projections)} outputs"
                )
            return projections[int(first.text) - 1].tokens
        if name is not None and name.lower() not in scope.columns:
            found = (each.tokens for each in projections if each.name.lower() == name.lower())
            return next(found, tokens)
        return tokens

    def _read_key(self, groups: Groups, tokens: tuple[Token, ...]) -> None:
        window = find_window(tokens)
        if window is not None:
            if groups.window is not None:
                raise self.source.refuse(tokens[0], "a view has one window; remove this one")
            groups.window = read_window(groups.scope, tokens, window)
            groups.scope.has_window = True
            return
        check_functions(groups.scope, tokens)
        if contains_aggregate(tokens):
            raise self.source.refuse(
                tokens[0], "GROUP BY cannot use an aggregate; group by what it is computed from"
            )
        expression = groups.scope.read(tokens)
        refuse_null(self.source, expression)
        if isinstance(expression.tree, exp.Tuple):
            raise self.source.refuse(tokens[0], "remove the parentheses around the columns")
        if not groups.is_window_part(expression):
            groups.refuse_many_windows(expression)
            groups.add_key(expression)

    def _read_having(
        self, groups: Groups, tokens: Sequence[Token], outputs: Sequence[Output]
    ) -> str:
        """Return HAVING over keys and calls; outputs may be used by name, as in Spark."""
        columns = groups.scope.columns
        aliases: dict[str, exp.Expr] = {}
        for output in outputs:
            tree = parse_one(output.expression, read="spark")
            key = next((key for key, _ in groups.keys if key.name == output.expression), None)
            is_itself = key is not None and key.expression.strip("`").lower() == output.name.lower()
            if output.name.lower() in columns and not is_itself:
                self._refuse_ambiguous(tokens, output)
            elif not is_itself:
                aliases[output.name.lower()] = tree.transform(_stand_in)
        return groups.rewrite(tokens, aliases)

    def _refuse_ambiguous(self, tokens: Sequence[Token], output: Output) -> None:
        inside = [
            range(call.opening, call.end)
            for call in find_calls(tokens)
            if call.name in AGGREGATES  # whose arguments can only be columns
        ]
        for index, token in enumerate(tokens):
            qualified = index > 0 and tokens[index - 1].text == "."
            is_name = bool(word(token)) or token.token_type == TokenType.IDENTIFIER
            if not is_name or qualified or any(index in each for each in inside):
                continue
            if str(token.text).lower() == output.name.lower():
                raise self.source.refuse(
                    token,
                    f"{token.text} is an output and also a column of {self.stream.name}; name "
                    "the output differently",
                )


def _stand_in(node: exp.Expr) -> exp.Expr:
    return exp.column(node.name, table=STANDS_FOR) if isinstance(node, exp.Column) else node
