"""Generators: `explode` and its kin, which make several rows of one.

In the select list, `SELECT explode(tags) AS tag`, one per SELECT, after WHERE. In FROM, any number,
each over what stands before it: `LATERAL VIEW [OUTER] explode(tags) t AS tag`, `, LATERAL
explode(tags) AS t(tag)`, `[CROSS | LEFT] JOIN UNNEST(tags) AS t(tag)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.errors import Problem
from headrace.model.names import name_fault
from headrace.model.nodes import Generate, Node
from headrace.model.scalars import Scalar
from headrace.schema.types import DataType, parse_type
from headrace.sql.query.expressions.binding import Expressions, check_functions
from headrace.sql.query.expressions.scopes import Beside
from headrace.sql.query.reading.syntax import span_of
from headrace.sql.query.reading.trees import Tree, aggregates_of, is_lateral, strip_parentheses
from headrace.sql.text import Refused, word, words

__all__ = [
    "Generator",
    "bind_laterals",
    "find_generator",
    "lateral_names",
    "laterals_of",
    "read_generator",
]

#: The functions by name: which of the node's they are, and whether they keep rows without elements.
_FUNCTIONS = {
    "explode": ("explode", False),
    "explode_outer": ("explode", True),
    "inline": ("inline", False),
    "inline_outer": ("inline", True),
    "posexplode": ("posexplode", False),
    "posexplode_outer": ("posexplode", True),
    "unnest": ("explode", False),
}
#: Functions whose value is a map, whatever their arguments are.
_MAPS = words(
    "map map_concat map_filter map_from_arrays map_from_entries map_zip_with str_to_map "
    "transform_keys transform_values"
)


@dataclass(frozen=True)
class Generator:
    """A generator over the columns of a scope: the names of its columns, and their types."""

    function: str
    argument: Scalar
    outer: bool
    names: tuple[str, ...]
    types: tuple[DataType | None, ...]  # None: it is not known

    def over(self, node: Node, columns: Sequence[Beside]) -> Generate:
        """Return the node over its input."""
        made = tuple(each.column for each in columns)
        return Generate(node, self.function, self.argument, made, self.outer)


def find_generator(tree: Tree, node: exp.Expr) -> exp.Expr | None:
    """Return the call if an output is that of a generator."""
    inner = strip_parentheses(node.this if isinstance(node, exp.Alias | exp.Aliases) else node)
    return inner if isinstance(inner, exp.Anonymous) and _name(tree, inner) in _FUNCTIONS else None


def _name(tree: Tree, call: exp.Expr) -> str:
    return tree.call_name(call) or ""


def laterals_of(select: exp.Select) -> list[exp.Expr]:
    """Return the generators of FROM, in their order."""
    joins = [join for join in select.args.get("joins") or [] if is_lateral(join)]
    return sorted([*joins, *(select.args.get("laterals") or [])], key=span_of)


def lateral_names(select: exp.Select) -> set[str]:
    """Return the names that the columns of generators in FROM were given, in lower case."""
    nodes = [each.this if isinstance(each, exp.Join) else each for each in laterals_of(select)]
    aliases = [alias for node in nodes if (alias := node.args.get("alias")) is not None]
    return {column.name.lower() for alias in aliases for column in alias.columns}


def bind_laterals(expressions: Expressions, select: exp.Select, problems: list[Problem]) -> bool:
    """Put the generators of FROM over the scope's relation; false: one of them has a problem."""
    for node in laterals_of(select):
        try:
            _bind_lateral(expressions, node)
        except Refused as refused:
            problems += refused.problems
            return False
    return True


def _bind_lateral(expressions: Expressions, node: exp.Expr) -> None:
    tree, scope = expressions.tree, expressions.scope
    outer = False
    lateral = node
    if isinstance(node, exp.Join):
        lateral = node.this
        outer = _read_join(tree, node)
    if lateral.args.get("ordinality") or lateral.args.get("offset"):
        tokens = tree.tokens_of(node)
        at = next((each for each in tokens if word(each) == "WITH"), tokens[0])
        raise tree.refuse(
            at,
            "WITH ORDINALITY is not supported; write LATERAL VIEW posexplode(x) t AS pos, value, "
            "which counts from 0",
        )
    outer = outer or bool(lateral.args.get("outer"))
    call = lateral if isinstance(lateral, exp.Unnest) else strip_parentheses(lateral.this)
    name = "unnest" if isinstance(lateral, exp.Unnest) else _name(tree, call)
    if name not in _FUNCTIONS:
        if name == "table":
            raise tree.refuse(
                call, "LATERAL TABLE(f(x)) is written LATERAL VIEW explode(f(x)) t AS c here"
            )
        check_functions(tree, scope, call)
        raise tree.refuse(
            call,
            "only explode, posexplode and inline, with or without _outer, make rows here; write "
            "LATERAL VIEW explode(x) t AS c",
        )
    alias = lateral.args.get("alias")
    qualifier = ""
    if alias is not None and alias.this is not None:
        token = tree.first(alias.this)
        qualifier = str(token.text)
        if qualifier.lower() in scope.qualifiers:
            raise tree.refuse(token, f"alias {qualifier} stands for two relations; choose another")
        if name_fault("alias", qualifier) or word(token) == "WINDOW":
            raise tree.refuse(token, f"alias {qualifier} is reserved; choose another")
    names = [] if alias is None else alias.columns
    if isinstance(lateral, exp.Unnest) and alias is not None and not names and qualifier:
        # As in PostgreSQL, where a single column has the alias as its name.
        names = [alias.this] if _is_plain(expressions, call) else []
    generator = read_generator(expressions, call, name, names, outer=outer)
    columns = [
        scope.make(each, qualifier, type)
        for each, type in zip(generator.names, generator.types, strict=True)
    ]
    scope.relation = replace(scope.relation, node=generator.over(scope.relation.node, columns))
    scope.made += columns


def _is_plain(expressions: Expressions, call: exp.Expr) -> bool:
    """Whether the elements that a call makes are single values."""
    type = expressions.type_of(call.expressions[0]) if call.expressions else None
    return type is None or (type.kind == "ARRAY" and not _is_of_structs(type))


def _read_join(tree: Tree, join: exp.Join) -> bool:
    """Return whether a join keeps rows without elements. Refused: it does more than that."""
    kind = f"{join.side} {join.kind}".upper().split()
    if join.args.get("method") or not set(kind) <= {"CROSS", "INNER", "LEFT", "OUTER"}:
        raise tree.refuse(
            join, "elements are joined with CROSS JOIN or LEFT JOIN; write one of these"
        )
    on = join.args.get("on")
    is_true = isinstance(on, exp.Boolean) and bool(on.this)
    if (on is not None and not is_true) or join.args.get("using"):
        raise tree.refuse(
            on or join, "elements belong to their own row: write ON TRUE, and conditions in WHERE"
        )
    return "LEFT" in kind


def read_generator(
    expressions: Expressions,
    call: exp.Expr,
    name: str,
    names: Sequence[exp.Expr],
    *,
    outer: bool = False,
) -> Generator:
    """Return the generator that a call is; `names` are those that its columns were given.

    Refused: it has another number of columns, or its argument cannot be taken apart.
    """
    tree = expressions.tree
    function, keeps = _FUNCTIONS[name]
    if len(call.expressions) != 1:
        raise tree.refuse(call, f"{name}() takes one array or map, such as {name}(items)")
    [argument] = call.expressions
    check_functions(tree, expressions.scope, argument)
    if any(aggregates_of(argument)):
        raise tree.refuse(
            argument, f"{name}() is over single records; take the aggregate apart when you read"
        )
    scalar = expressions.bind(argument)
    type = expressions.type_of(argument)
    is_map = (tree.call_name(strip_parentheses(argument)) or "") in _MAPS
    if name == "unnest" and _is_of_structs(type) and len(names) != 1:
        function = "inline"  # as in Flink, where the fields of rows are columns
    defaults = _columns(function, type, is_map=is_map)
    if defaults is None and type is not None:
        wanted = "an ARRAY of STRUCT" if function == "inline" else "an ARRAY or a MAP"
        raise tree.refuse(
            argument, f"{name}() takes {wanted}, and {tree.text(argument)} is {type.sql}"
        )
    written = [str(tree.first(each).text) for each in names]
    for each, given in zip(names, written, strict=True):
        fault = name_fault("column", given)
        if fault is not None:
            raise tree.refuse(each, fault)
        if [other.lower() for other in written].count(given.lower()) > 1:
            raise tree.refuse(each, f"{given} names two columns of {name}(); rename one")
    _check_width(tree, call, name, function, defaults, written)
    if defaults is None:
        return Generator(function, scalar, outer or keeps, tuple(written), (None,) * len(written))
    shown = tuple(written) or tuple(default for default, _ in defaults)
    return Generator(function, scalar, outer or keeps, shown, tuple(type for _, type in defaults))


def _is_of_structs(type: DataType | None) -> bool:
    return type is not None and type.kind == "ARRAY" and type.parts[0].kind == "STRUCT"


def _columns(
    function: str, type: DataType | None, *, is_map: bool
) -> list[tuple[str, DataType | None]] | None:
    """Return the columns as Spark calls them, with their types; None: they are not known."""
    if function == "inline":
        if type is None or not _is_of_structs(type):
            return None
        return [*zip(type.parts[0].names, type.parts[0].parts, strict=True)]
    position: list[tuple[str, DataType | None]] = (
        [("pos", parse_type("INT"))] if function == "posexplode" else []
    )
    if type is not None and type.kind == "ARRAY":
        return [*position, ("col", type.parts[0])]
    if type is not None and type.kind == "MAP":
        return [*position, ("key", type.parts[0]), ("value", type.parts[1])]
    if type is None and is_map:
        return [*position, ("key", None), ("value", None)]
    return None


def _check_width(
    tree: Tree,
    call: exp.Expr,
    name: str,
    function: str,
    defaults: Sequence[tuple[str, DataType | None]] | None,
    names: Sequence[str],
) -> None:
    if defaults is None:
        # Of an array, since no name says that it is a map: Spark judges that later.
        least = {"explode": 1, "posexplode": 2, "inline": 1}[function]
        most = {"explode": 2, "posexplode": 3, "inline": 1_000}[function]
        if least <= len(names) <= most:
            return
        example = {"explode": "c", "posexplode": "pos, c", "inline": "a, b"}[function]
    else:
        if len(names) in (0, len(defaults)):
            return
        example = ", ".join(default for default, _ in defaults)
    given = f"{len(names)} name{'' if len(names) == 1 else 's'}" if names else "no names"
    width = 1 if defaults is None and function == "explode" else len(defaults or "xx")
    makes = "one column" if width == 1 else f"{width} columns" if defaults else "several columns"
    alias = example if width == 1 else f"({example})"
    raise tree.refuse(
        call,
        f"{name}() makes {makes}, and has {given}; write {name}(...) AS {alias}, or LATERAL VIEW "
        f"{name}(...) t AS {example}",
    )
