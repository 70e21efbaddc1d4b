"""Which columns of its stream a branch of a view reads, so that the others need not travel."""

from headrace.model.definitions import Stream
from headrace.plan.shape import Shape

__all__ = ["columns_read"]


def columns_read(shape: Shape, stream: Stream) -> frozenset[str]:
    """Return every column that an expression of a shape reads, and the event time."""
    return shape.columns | ({stream.event_time} if stream.event_time else frozenset())
