"""`headrace graph`: topics and definitions, and who reads whom, as Mermaid or DOT."""

from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli.folder import ProjectOption, find_folder
from headrace.cli.text.output import JsonOption, show_json, show_text
from headrace.cli.text.problems import showing_places

__all__ = ["graph"]


class GraphFormat(StrEnum):
    """The language that a graph is printed in."""

    MERMAID = "mermaid"
    DOT = "dot"


def graph(
    project: ProjectOption = None,
    format: Annotated[
        GraphFormat, typer.Option("--format", help="The language of the graph.")
    ] = GraphFormat.MERMAID,
    sides: Annotated[
        bool, typer.Option("--sides", help="Topics of dead, late and duplicate records, too.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print topics, streams, views and sinks as a graph: who reads whom."""
    folder = find_folder(project)
    from headrace.project.drawing import draw, to_dot, to_mermaid
    from headrace.project.folder import read_definitions

    with showing_places(folder):
        drawn = draw(read_definitions(folder), sides=sides)
    if json:
        show_json(drawn.to_json())
    else:
        show_text((to_dot if format is GraphFormat.DOT else to_mermaid)(drawn))
