"""Which columns of its stream a view reads, so that the others need not travel."""

import re

from headrace.model.definitions import Stream, View

__all__ = ["columns_read"]

_NAME = re.compile(r"`((?:[^`]|``)+)`|([A-Za-z_][A-Za-z0-9_]*)")


def columns_read(view: View, stream: Stream) -> frozenset[str]:
    """Return every column that a view's expressions may name, and the event time.

    A word in a string counts too: one column too many costs a little, one too few would be wrong.
    """
    query = view.query
    texts = [query.where or ""]
    texts += [key.expression for key in query.keys]
    for call in query.calls:
        texts += [call.argument or "", call.by or "", call.condition or ""]
    texts += [output.expression for output in query.outputs]
    words = {
        (quoted.replace("``", "`") or word).lower()
        for text in texts
        for quoted, word in _NAME.findall(text)
    }
    names = {column.name for column in stream.columns if column.name.lower() in words}
    return frozenset(names | ({stream.event_time} if stream.event_time else set()))
