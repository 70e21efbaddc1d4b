"""What the planner refuses: a view, at the place of an expression or of its definition."""

from headrace.errors import DefinitionError, Location, Problem
from headrace.model.definitions import View

__all__ = ["refuse"]


def refuse(view: View, message: str, place: Location | None = None) -> DefinitionError:
    """Return the refusal of a view; `place` is that of the expression at fault, where known."""
    known = place if place is not None and place.file else view.location
    return DefinitionError([Problem(known, f"view {view.name}: {message}")])
