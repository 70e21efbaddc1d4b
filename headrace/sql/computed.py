"""`name TYPE AS expression`: a column of a stream that is computed from its others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp

from headrace.errors import Problem
from headrace.model.definitions import Computed
from headrace.model.nodes import COORDINATES, WATERMARK, Scan
from headrace.model.scalars import Scalar
from headrace.schema.types import Column, DataType
from headrace.sql.query.expressions.binding import Expressions, check_functions, refuse_null
from headrace.sql.query.expressions.scopes import Beside, Relation, RelationColumn, Scope
from headrace.sql.query.reading.clauses import unread
from headrace.sql.query.reading.parser import parse_query
from headrace.sql.query.reading.trees import Tree, aggregates_of, is_broken
from headrace.sql.text import Refused, Source

__all__ = ["Written", "bind_computed"]


@dataclass(frozen=True)
class Written:
    """A computed column as it stands in the text: `tokens` begin with AS."""

    name: Token
    type: DataType | None
    tokens: tuple[Token, ...]
    at: int  # how many columns are declared before it


def bind_computed(
    source: Source,
    stream: str,
    columns: Sequence[Column],
    written: Sequence[Written],
    problems: list[Problem],
) -> list[Computed]:
    """Return the computed columns of a stream; what is wrong with single ones is added."""
    known = [RelationColumn(column.name, column.type) for column in columns]
    own = tuple(RelationColumn(name, type) for name, type in COORDINATES.items())
    bound: dict[str, Scalar] = {}
    found: list[Computed] = []
    relation = Relation(stream, stream, Scan(stream), tuple(known), event_time=WATERMARK, own=own)
    scope = Scope(relation)
    behind = Counter(str(each.name.text).lower() for each in written)
    for each in written:
        name = str(each.name.text)
        try:
            scalar = _bind(source, scope, each, behind)
        except Refused as refused:
            problems += refused.problems
            scalar = Scalar("null")  # it is there, and no further problem
        scalar = scalar.substitute(bound)
        if each.type is not None:
            scalar = Scalar(f"cast({scalar.text} as {each.type.sql.lower()})", scalar.refs)
        bound[name] = scalar
        place = source.location(each.name.start)
        found.append(Computed(name, scalar, each.type, each.at, place))
        behind[name.lower()] -= 1
        scope.made.append(Beside(name, name, stream, each.type))
    return found


def _bind(source: Source, scope: Scope, written: Written, behind: Mapping[str, int]) -> Scalar:
    """Return the expression of one computed column over the columns before it. Refused.

    `behind` counts the computed columns that are still to come, by name in lower case.
    """
    name, problems = written.name.text, list[Problem]()
    first = written.tokens[0]
    how = f"write {name} TYPE AS <an expression over the other columns>"
    if len(written.tokens) == 1:
        raise source.refuse(first, f"column {name}: an expression follows AS; {how}")
    # An expression is read as that of a SELECT, whose word stands where AS does.
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.end)
    tree = parse_query(source, (select, *written.tokens[1:]), problems)
    left = unread(tree)
    problems += [] if left is None or problems else [left]
    if problems:
        raise Refused(*problems)
    node = _only_expression(tree, name, how)
    check_functions(tree, scope, node, stays_text=False)
    if any(aggregates_of(node)) or node.find(exp.Window) is not None:
        raise tree.refuse(
            node,
            f"column {name}: an aggregate is over many records, and a column is of one; write the "
            "aggregate in a view",
        )
    refuse_null(tree, node)
    for column in node.find_all(exp.Column):
        if not column.table and behind.get(column.name.lower()):
            raise tree.refuse(
                column,
                f"column {name}: {column.name} is computed too, and does not stand before it; "
                "computed columns use declared ones, and computed ones that stand before them",
            )
    scalar = Expressions(tree, scope).bind(node)
    if WATERMARK in scalar.refs:
        raise tree.refuse(
            node, f"column {name}: watermark() is known after the columns are; use it in a view"
        )
    return scalar


def _only_expression(tree: Tree, name: str, how: str) -> exp.Expr:
    root = tree.root
    others = [value for key, value in root.args.items() if key != "expressions" and value]
    if not isinstance(root, exp.Select) or others or len(root.expressions) != 1:
        raise tree.refuse(
            tree.tokens[1], f"column {name}: one expression is expected here, and no query; {how}"
        )
    node: exp.Expr = root.expressions[0]
    assert not is_broken([node])
    return node
