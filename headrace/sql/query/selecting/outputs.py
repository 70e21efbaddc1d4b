"""The select list: names of the outputs, stars written out, and the generator among them."""

from dataclasses import dataclass, field

from sqlglot import Token, TokenType, exp

from headrace.errors import Location, Problem
from headrace.model.names import closest, name_fault
from headrace.model.nodes import COORDINATES
from headrace.model.scalars import Scalar, escape_braces
from headrace.sql.query.expressions.binding import Expressions, check_functions
from headrace.sql.query.expressions.scopes import (
    Beside,
    Naming,
    Target,
    Unknown,
    is_unnamed,
    unnamed,
)
from headrace.sql.query.reading.syntax import Broken, span_of
from headrace.sql.query.reading.trees import Tree, is_path, path_of
from headrace.sql.query.relations.generators import Generator, find_generator, read_generator
from headrace.sql.text import Refused, identifier, plain_name, word

__all__ = ["Output", "Outputs", "read_outputs"]


@dataclass(frozen=True)
class Output:
    """One output: its name, where that or the expression stands, and the expression.

    `scalar` is what it is if no node says so: a column that a star or a generator stands for.
    """

    name: str
    place: Location
    node: exp.Expr | None
    has_alias: bool = False
    scalar: Scalar | None = None


@dataclass
class Outputs:
    """What a SELECT gives; None for an output with problems. One generator may be among them."""

    items: list[Output | None] = field(default_factory=list)
    generator: Generator | None = None
    made: list[Beside] = field(default_factory=list)  # the generator's columns

    @property
    def sound(self) -> list[Output]:
        """The outputs without problems."""
        return [each for each in self.items if each is not None]


def read_outputs(
    expressions: Expressions, select: exp.Select, *, grouped: bool, problems: list[Problem]
) -> Outputs:
    """Return the outputs, stars written out; problems are added."""
    reader = _Reader(expressions, grouped=grouped)
    for node in select.expressions:
        try:
            reader.read(node)
        except Refused as refused:
            problems += refused.problems
            reader.outputs.items.append(None)
    return reader.outputs


class _Reader:
    def __init__(self, expressions: Expressions, *, grouped: bool) -> None:
        self.expressions = expressions
        self.tree = expressions.tree
        self.scope = expressions.scope
        self.grouped = grouped
        self.outputs = Outputs()

    def read(self, node: exp.Expr) -> None:
        """Add what one item of the select list stands for."""
        call = find_generator(self.tree, node)
        if isinstance(node, Broken):
            self.outputs.items.append(None)
        elif _is_star(node.this if isinstance(node, exp.Alias) else node):
            self.outputs.items += self._expand(node)
        elif call is not None:
            self.outputs.items += self._generate(node, call)
        else:
            self.outputs.items.append(self._read_output(node))

    def _expand(self, node: exp.Expr) -> list[Output]:
        tree = self.tree
        if isinstance(node, exp.Alias):
            raise tree.refuse(
                tree.last(node), "* stands for several columns and has no name; remove AS"
            )
        if self.grouped:
            raise tree.refuse(node, "* cannot stand in a grouped view; name the columns")
        inner = node
        while isinstance(inner, exp.Dot):
            inner = inner.this
        if isinstance(inner, exp.Star) and inner is not node:
            raise tree.refuse(node, "* has no fields; write * alone, or name the columns")
        if not isinstance(inner, exp.Column | exp.Star):
            raise tree.refuse(
                node, f"{tree.text(inner)[:40]} is no column, and * stands for columns; name them"
            )
        star = node if isinstance(node, exp.Star) else path_of(node)[-1]
        chosen = self._starred(node)
        for name, value in star.args.items():
            if value and name != "except_":
                raise tree.refuse(
                    tree.tokens[span_of(star)[0] + 1],
                    f"* {name.upper()} is not supported; write * EXCEPT (...), and the columns",
                )
        left_out = self._left_out(star, list(chosen))
        place = tree.location(node)
        kept = [
            Output(name, place, None, scalar=scalar)
            for name, scalar in chosen.items()
            if name.lower() not in left_out
        ]
        if not kept:
            raise tree.refuse(node, "EXCEPT leaves no column; name those to keep")
        return kept

    def _starred(self, node: exp.Expr) -> dict[str, Scalar]:
        """Return the columns that a star stands for, by name."""
        tree, scope = self.tree, self.scope
        if isinstance(node, exp.Star):
            return self._distinct(node, [*scope.visible])
        path = path_of(node)[:-1]
        written = [part.name for part in path]
        if len(path) == 1 and written[0].lower() in scope.qualifiers:
            qualifier = written[0].lower()
            found = [each for each in scope.visible if each.qualifier.lower() == qualifier]
            return self._distinct(node, found)
        target = scope.find(written)
        shown = ".".join(written)
        if isinstance(target, Unknown) or target is None:
            # A subquery without an alias has no name to write.
            known = " or ".join(f"{each}.*" for each in scope.qualifiers.values() if each) or "*"
            hint = closest(written[-1], scope.columns.values())
            raise tree.refuse(node, f"{shown}.* names no stream of this view{hint}; write {known}")
        if target.type is None or target.type.kind != "STRUCT":
            kind = "is not known to be a STRUCT"
            kind = kind if target.type is None else f"is {target.type.sql}, not a STRUCT"
            raise tree.refuse(node, f"{shown} {kind}; name what to select of it")
        return {name: _field(target, name) for name in target.type.names}

    def _distinct(self, node: exp.Expr, found: list[Beside]) -> dict[str, Scalar]:
        """Return columns by name. Refused: two of them have the same."""
        chosen: dict[str, Scalar] = {}
        for each in found:
            if is_unnamed(each.name):
                raise self.tree.refuse(
                    node,
                    "* stands for a column without a name; add AS name to it in the query that it "
                    "comes from, or name the columns here",
                )
            twice = [other for other in found if other.name.lower() == each.name.lower()]
            if len(twice) > 1:
                both = " and ".join(other.written for other in twice)
                what = f"{both}, which have one name"
                if not any(other.qualifier for other in twice):
                    what = f"{len(twice)} columns named {each.name}"
                raise self.tree.refuse(node, f"* stands for {what}; name the columns, with AS")
            chosen[each.name] = Scalar.column(each.column)
        return chosen

    def _left_out(self, star: exp.Expr, names: list[str]) -> set[str]:
        left_out: set[str] = set()
        for each in star.args.get("except_") or []:
            name = str(self.tree.last(each).text)
            if span_of(each)[0] != span_of(each)[1]:
                raise self.tree.refuse(each, "EXCEPT takes the names of columns, without dots")
            if name.lower() not in map(str.lower, names):
                raise self.tree.refuse(
                    each, f"EXCEPT {name}: there is no such column{closest(name, names)}"
                )
            left_out.add(name.lower())
        return left_out

    def _generate(self, node: exp.Expr, call: exp.Expr) -> list[Output]:
        tree = self.tree
        name = tree.call_name(call) or ""
        instead = f"FROM ... LATERAL VIEW {tree.text(call)[:60]} t AS c"
        if self.grouped:
            raise tree.refuse(
                call, f"{name}() cannot stand in a grouped SELECT; write {instead}, and use c"
            )
        if self.outputs.generator is not None:
            raise tree.refuse(
                call, f"a SELECT has one generator; write this one as {instead}, and select c"
            )
        names: list[exp.Expr] = []
        if isinstance(node, exp.Alias):
            names = [node.args["alias"]]
        elif isinstance(node, exp.Aliases):
            names = node.expressions
        generator = read_generator(self.expressions, call, name, names)
        made = [
            self.scope.make(each, "", type)
            for each, type in zip(generator.names, generator.types, strict=True)
        ]
        self.outputs.generator, self.outputs.made = generator, made
        place = tree.location(names[0] if names else call)
        return [
            Output(_checked(tree, tree.first(call), each.name), place, None, bool(names),
                   Scalar.column(each.column))
            for each in made
        ]  # fmt: skip

    def _read_output(self, node: exp.Expr) -> Output:
        tree, scope = self.tree, self.scope
        inner = node.this if isinstance(node, exp.Alias) else node
        check_functions(
            tree,
            scope,
            inner,
            may_be_window=self.grouped,
            stays_text=not scope.is_read,
        )
        if isinstance(node, exp.Aliases):
            raise tree.refuse(
                tree.first(node), "an expression has one name; only generators have several"
            )
        if isinstance(node, exp.Alias):
            place, expression = tree.last(node), node.this
            if place.token_type == TokenType.STRING:
                text = str(place.text)
                known = "name" if name_fault("output", text) else identifier(text)
                how = "in backquotes" if known.startswith("`") else "without quotes"
                raise tree.refuse(place, f"an output's name is written {how}: AS {known}")
            name, where = _checked(tree, place, str(place.text)), tree.source.location(place.start)
            self._warn_of_alias(place, expression)
            return Output(name, where, expression, has_alias=True)
        place = tree.first(node)
        is_own = is_path(node) and tree.last(node).text in COORDINATES
        if (not is_path(node) and scope.naming is not Naming.OWN) or (
            is_own and scope.naming is Naming.GIVEN
        ):
            return Output(unnamed(len(self.outputs.items)), tree.location(node), node)
        if not is_path(node):
            raise tree.refuse(
                place, f"this output has no name; add AS name after {tree.text(node)[:40]}"
            )
        written = str(tree.last(node).text)
        if written.lower() in COORDINATES:
            raise tree.refuse(
                place,
                f"an output cannot be called {written}, which is a record's own; write {written} "
                f"AS {written.lstrip('_')}",
            )
        name = scope.columns.get(written.lower(), written)
        return Output(_checked(tree, place, name), tree.location(node), node)

    def _warn_of_alias(self, alias: Token, expression: exp.Expr) -> None:
        """Warn where a column names the one before it: a comma may be missing."""
        tree = self.tree
        is_bare = word(tree.after(expression)) != "AS"
        name = str(alias.text)
        if is_bare and is_path(expression) and name.lower() in self.scope.columns:
            written = tree.text(expression)
            tree.warnings.append(
                tree.problem(
                    alias,
                    f"{name} names {written} here, and is also a column of "
                    f"{self.scope.relation.name}; write a comma between them to select both, or "
                    f"{written} AS {name}",
                )
            )


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column | exp.Dot) and node.is_star)


def _field(target: Target, name: str) -> Scalar:
    """Return a field of the struct that a path leads to."""
    fields = (escape_braces(plain_name(each)) for each in (*target.fields, name.lower()))
    return Scalar(".".join(["{0}", *fields]), (target.column,))


def _checked(tree: Tree, place: Token, name: str) -> str:
    fault = name_fault("output", name)
    if fault is not None:
        raise tree.refuse(place, f"{fault}; write AS {_proposal(name)}")
    return name


def _proposal(name: str) -> str:
    kept = "".join(each if each.isascii() and each.isalnum() else "_" for each in name).strip("_")
    return identifier(kept[:40]) if kept and not kept[0].isdigit() else "name"
