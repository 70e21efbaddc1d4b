"""Which columns of its stream a view reads, so that the others need not travel."""

from headrace.model.definitions import Stream, View
from headrace.plan.shape import shape_of

__all__ = ["columns_read"]


def columns_read(view: View, stream: Stream) -> frozenset[str]:
    """Return every column that an expression of a view reads, and the event time."""
    return shape_of(view).columns | ({stream.event_time} if stream.event_time else frozenset())
