"""Which columns the expressions of a node read, and whether its input has them."""

from collections.abc import Iterator, Mapping

from headrace.model.definitions import Stream
from headrace.model.graph import walk
from headrace.model.names import closest
from headrace.model.nodes import (
    WINDOW_COLUMNS,
    Aggregate,
    AssignWindows,
    Filter,
    Generate,
    Node,
    Project,
    Window,
)
from headrace.model.scalars import Scalar
from headrace.model.traits import traits_of

__all__ = ["scalars_of", "unknown_columns"]


def scalars_of(node: Node) -> tuple[Scalar, ...]:
    """Return a node's own expressions, all over its input."""
    match node:
        case Project():
            return tuple(column.scalar for column in node.columns)
        case Filter():
            return (node.condition,)
        case Generate():
            return (node.argument,)
        case AssignWindows():
            return tuple(_times(node.window))
        case Aggregate():
            found = [*_times(node.window), *node.keys]
            for call in node.calls:
                found += [*call.arguments, *([] if call.condition is None else [call.condition])]
            return tuple(found)
        case _:
            return ()


def _times(window: Window | None) -> list[Scalar]:
    return [] if window is None or window.time is None else [window.time]


def unknown_columns(node: Node, streams: Mapping[str, Stream]) -> Iterator[str]:
    """Yield what is wrong with columns that are read and not there, from the last node on."""
    for each in walk(node):
        scalars = scalars_of(each)
        if isinstance(each, Project | Filter | Generate | AssignWindows | Aggregate):
            known = traits_of(each.input, streams).columns
            window = WINDOW_COLUMNS if isinstance(each, Aggregate) and each.window else ()
            read = dict.fromkeys(name for scalar in scalars for name in scalar.refs)
            for name in read:
                if name not in (*known, *window):
                    own = [column for column in known if not column.startswith("_")]
                    yield (
                        f"{type(each).__name__} reads the column {name}, which its input does "
                        f"not have{closest(name, known)}; its columns are {', '.join(own)}"
                    )
