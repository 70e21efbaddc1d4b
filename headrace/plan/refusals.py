"""What the planner refuses: a view, at the place of its definition."""

from headrace.errors import DefinitionError, Problem
from headrace.model.definitions import View

__all__ = ["refuse"]


def refuse(view: View, message: str) -> DefinitionError:
    """Return the refusal of a view."""
    return DefinitionError([Problem(view.location, f"{view.kind} {view.name}: {message}")])
