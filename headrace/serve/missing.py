"""Say why a query finds no table of a name: what has that name, and what to ask instead."""

from headrace.ledger.definitions import stream_of, view_of
from headrace.ledger.entries import Holding, HoldingState
from headrace.model.graph import aggregate_of
from headrace.model.names import closest
from headrace.plan.tables import ERRORS
from headrace.store.base import Snapshot

__all__ = ["explain_missing"]


def explain_missing(table: str, snapshot: Snapshot) -> str:
    """Return the cause and the cure, for a name that is no table of the store."""
    name = table.rpartition(".")[2].strip('"').lower()
    holdings = snapshot.holdings()
    owner, _, kind = table.strip('"').lower().partition(".")
    for held in holdings:
        if held.name.lower() == owner and kind == ERRORS and _has_table(held):
            if aggregate_of(view_of(held).query) is None:
                return (
                    f"the view {held.name} has no errors: its rows are records, and one on which "
                    f"an expression fails is in the topic {held.name}.dead"
                )
            return f'write the name in double quotes: FROM "{held.name}.{ERRORS}"'
        if held.name.lower() == name and not _is_of_table(held):
            return _explain(held, holdings)
    for sink in (state.sink for state in snapshot.sinks()):
        if sink.name.lower() == name:
            return (
                f"{sink.name} is a sink: it writes the changes of the view {sink.view} to the "
                f"topic {sink.topic}. Ask the view: FROM {sink.view}"
            )
    tables = sorted(each.name for each in holdings if _has_table(each))
    return (
        f"there is no table {table}{closest(name, tables)}; there are: "
        f"{', '.join(dict.fromkeys(tables)) or 'none yet'}"
    )


def _has_table(held: Holding) -> bool:
    return held.kind == "view" and view_of(held).topic is None


def _is_of_table(held: Holding) -> bool:
    """Whether it is the stream of a table's changes, whose view bears the name too."""
    return held.kind == "stream" and bool(stream_of(held, held.name).primary_key)


def _explain(held: Holding, holdings: list[Holding]) -> str:
    if held.kind == "stream":
        topic = stream_of(held, held.name).topic
        return _explain_stream(held.name, topic, "read from", holdings)
    topic = view_of(held).topic or ""
    if topic:
        return _explain_stream(held.name, topic, "written to", holdings)
    if held.state is HoldingState.FAILED:
        return (
            f"the view {held.name} has no table: it failed before it was built: {held.reason} "
            f"Correct the cause and restart the engine: `headrace run`."
        )
    if held.state is HoldingState.PAUSED:
        return (
            f"the view {held.name} has no table yet: it was paused before it was built. "
            f"`headrace resume {held.name}` lets it go on."
        )
    return (
        f"the view {held.name} has no table yet: it is being built from the log. "
        f"`headrace status {held.name}` shows how far it is."
    )


def _explain_stream(name: str, topic: str, way: str, holdings: list[Holding]) -> str:
    readers = dict.fromkeys(
        each.name for each in holdings if name in each.inputs and _has_table(each)
    )
    ask = f"Ask a view that reads it: {', '.join(readers)}." if readers else "No view reads it."
    return (
        f"{name} is a stream: its records are {way} the topic {topic}, and are no table. {ask} "
        f"`headrace tail {topic}` shows the records."
    )
