"""Draw a project: which definitions read which, as a graph, in Mermaid and in DOT.

Promises:
- The same definitions give the same text, in the order of the definitions, topics where they are
  first met.
- Ids are made of ASCII letters, digits and underscores, and no two nodes share one; every name
  stands in a label, with quotes and markup escaped.
"""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.model.definitions import NamedQuery, Project, Sink, Stream, View
from headrace.model.graph import streams_of
from headrace.plan.stages import Publish

__all__ = ["Edge", "Graph", "Node", "draw", "to_dot", "to_mermaid"]

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
#: How each kind is drawn: Mermaid's brackets, and DOT's shape.
_SHAPES = {
    "topic": ("[(", ")]", "cylinder"),
    "stream": ("([", "])", "ellipse"),
    "derived stream": ("[/", "/]", "parallelogram"),
    "table": ("[(", ")]", "box3d"),
    "view": ("[", "]", "box"),
    "materialized view": ("[[", "]]", "box3d"),
    "sink": ("{{", "}}", "hexagon"),
}


@dataclass(frozen=True)
class Node:
    """A definition or a topic; `kind` is one of the keys of `_SHAPES`."""

    id: str
    kind: str
    name: str


@dataclass(frozen=True)
class Edge:
    """Records or rows go from one node to another, by their ids.

    `label` says which records a side topic takes: dead, late or duplicate.
    """

    source: str
    target: str
    label: str = ""


@dataclass
class Graph:
    """Nodes and edges, each once, in the order in which they were added."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[Edge, None] = field(default_factory=dict)

    def add(self, kind: str, name: str) -> str:
        """Add a node unless it is there; return its id. Only topics may share their names."""
        found = _id("topic" if kind == "topic" else "definition", name)
        self.nodes.setdefault(found, Node(found, kind, name))
        return found

    def connect(self, source: str, target: str, label: str = "") -> None:
        """Add an edge unless it is there."""
        self.edges[Edge(source, target, label)] = None

    def to_json(self) -> dict[str, Any]:
        """Return nodes and edges as JSON takes them."""
        return {
            "nodes": [asdict(node) for node in self.nodes.values()],
            "edges": [asdict(edge) for edge in self.edges],
        }


def draw(project: Project, *, sides: bool = False) -> Graph:
    """Return the graph of a project, with `sides` also the topics that records are put aside in."""
    graph = Graph()
    for stream in project.streams:
        graph.connect(graph.add("topic", stream.topic), graph.add(stream.kind, stream.name))
    for query in project.queries:
        graph.add("derived stream" if query.kind == "stream" else "view", query.name)
    for view in project.views:  # a stream that is written to a topic is there already
        if view.kind == "table":
            continue
        found = graph.add("materialized view", view.name)
        if view.topic is not None:
            graph.connect(found, graph.add("topic", view.topic))
    views = [view for view in project.views if view.kind != "table"]
    reading: list[NamedQuery | View] = [*project.queries, *views]
    for each in reading:
        for name in _reads(each):
            graph.connect(_id("definition", name), _id("definition", each.name))
    for sink in project.sinks:
        _draw_sink(graph, sink)
    if sides:
        _draw_sides(graph, project)
    return graph


def _reads(definition: NamedQuery | View) -> tuple[str, ...]:
    # Other front doors than SQL name no definitions: there the query says which streams it reads.
    return definition.reads or streams_of(definition.query)


def _draw_sink(graph: Graph, sink: Sink) -> None:
    found = graph.add("sink", sink.name)
    graph.connect(_id("definition", sink.view), found)
    graph.connect(found, graph.add("topic", sink.topic))


def _draw_sides(graph: Graph, project: Project) -> None:
    views = [view for view in project.views if view.kind != "table"]
    definitions: list[Stream | View] = [*project.streams, *views]
    for definition in definitions:
        put = Publish.of(definition)
        owner = _id("definition", definition.name)
        for label, topic in (("dead", put.dead), ("late", put.late), ("duplicate", put.duplicate)):
            if topic is not None:
                graph.connect(owner, graph.add("topic", topic), label)


def _id(prefix: str, name: str) -> str:
    """Return an id for a name; names that differ have ids that differ."""
    if _PLAIN.fullmatch(name):
        return f"{prefix}_{name}"
    return f"{prefix}__{_escape(name, '[^A-Za-z0-9]', lambda code: f'_{code:x}_')}"


def _escape(text: str, unfit: str, how: Callable[[int], str]) -> str:
    return re.sub(unfit, lambda found: how(ord(found[0])), text)


def to_mermaid(graph: Graph) -> str:
    """Return a graph as a Mermaid flowchart."""
    lines = ["flowchart LR"]
    for node in graph.nodes.values():
        opening, closing, _ = _SHAPES[node.kind]
        lines.append(f'  {node.id}{opening}"{_mermaid_text(_label(node))}"{closing}')
    for edge in graph.edges:
        label = f'|"{_mermaid_text(edge.label)}"|' if edge.label else ""
        lines.append(f"  {edge.source} -->{label} {edge.target}")
    return "\n".join(lines)


def _label(node: Node) -> str:
    return f"{node.kind} {node.name}"


def _mermaid_text(text: str) -> str:
    # Within quotes Mermaid still reads markup, entities and line breaks.
    return _escape(text, r"[^\w .,:;/-]", lambda code: f"#{code};")


def to_dot(graph: Graph) -> str:
    """Return a graph in DOT, the language of Graphviz."""
    lines = ["digraph headrace {", "  rankdir=LR;"]
    for node in graph.nodes.values():
        shape = _SHAPES[node.kind][2]
        lines.append(f"  {node.id} [label={_dot_text(_label(node))}, shape={shape}];")
    for edge in graph.edges:
        label = f" [label={_dot_text(edge.label)}]" if edge.label else ""
        lines.append(f"  {edge.source} -> {edge.target}{label};")
    return "\n".join([*lines, "}"])


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
