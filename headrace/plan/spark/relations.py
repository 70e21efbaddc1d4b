"""Linear nodes as one query of Spark: asked for the types of its columns, never run.

A leaf is a relation with the stream's columns and the record's own, under the names that nodes know
them by.
"""

from collections.abc import Mapping

from headrace.model import nodes
from headrace.model.definitions import Stream
from headrace.model.nodes import COORDINATES, WATERMARK, WINDOW_COLUMNS
from headrace.model.scalars import Scalar
from headrace.plan.spark.names import quoted
from headrace.schema.types import DataType, parse_type

__all__ = ["leaf_columns", "relation_query", "scalar_text"]

_TIMESTAMP = parse_type("TIMESTAMP")


def leaf_columns(stream: Stream) -> dict[str, DataType]:
    """Return the columns of a stream's records, with their types."""
    columns = {column.name: column.type for column in stream.scanned}
    return columns | dict(COORDINATES) | {WATERMARK: _TIMESTAMP}


def relation_query(node: nodes.Node, leaves: Mapping[str, str]) -> str:
    """Return the query that gives the rows of linear nodes; `leaves` names the streams' relations.

    Windows have no edges in it: only their types are of use.
    """
    match node:
        case nodes.Scan() | nodes.Changelog():
            return f"SELECT * FROM {leaves[node.stream]}"
        case nodes.Deduplicate():
            return relation_query(node.input, leaves)
        case nodes.Project():
            columns = [
                f"{scalar_text(each.scalar)} AS {quoted(each.name)}" for each in node.columns
            ]
            return f"SELECT {', '.join(columns)} FROM ({relation_query(node.input, leaves)})"
        case nodes.Filter():
            below = relation_query(node.input, leaves)
            # Without an alias Spark takes `WHERE (paid)` for one, with a list of columns.
            return f"SELECT * FROM ({below}) AS below WHERE {scalar_text(node.condition)}"
        case nodes.Generate():
            function = f"{node.function}_outer" if node.outer else node.function
            columns = [quoted(name) for name in node.columns]
            generator = f"{function}({scalar_text(node.argument)}) AS ({', '.join(columns)})"
            return f"SELECT *, {generator} FROM ({relation_query(node.input, leaves)})"
        case nodes.AssignWindows():
            edges = [f"CAST(NULL AS TIMESTAMP) AS {quoted(name)}" for name in WINDOW_COLUMNS]
            return f"SELECT *, {', '.join(edges)} FROM ({relation_query(node.input, leaves)})"
        case nodes.Union():
            return " UNION ALL ".join(f"({relation_query(each, leaves)})" for each in node.inputs)
        case nodes.Aggregate():
            raise AssertionError("no linear node")


def scalar_text(scalar: Scalar) -> str:
    """Return an expression over the columns of such a query, in parentheses."""
    return f"({scalar.render(quoted)})"
