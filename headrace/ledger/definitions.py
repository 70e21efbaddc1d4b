"""Definitions as the ledger keeps them: canonical forms, never SQL to be parsed again."""

import json
from collections.abc import Sequence
from functools import lru_cache

from headrace.errors import DefinitionUnreadable
from headrace.ledger.entries import Holding, HoldingState
from headrace.model.canonical import from_canonical, to_canonical
from headrace.model.definitions import Stream, View
from headrace.model.fingerprint import stream_fingerprint, view_fingerprint

__all__ = [
    "VERSION_DIGITS",
    "check_readable",
    "hold_stream",
    "hold_view",
    "short_version",
    "stream_of",
    "view_of",
]

VERSION_DIGITS = 8


def short_version(fingerprint: str) -> str:
    """Return the part of a fingerprint that names a version."""
    return fingerprint[:VERSION_DIGITS]


def hold_stream(stream: Stream, unit: str, *, state: HoldingState = HoldingState.LIVE) -> Holding:
    """Return the holding of a stream that a unit maintains."""
    return _hold("stream", stream, stream_fingerprint(stream), unit, [], state)


def hold_view(
    view: View, streams: Sequence[Stream], unit: str, *, state: HoldingState = HoldingState.LIVE
) -> Holding:
    """Return the holding of a view over its streams that a unit maintains."""
    return _hold("view", view, view_fingerprint(view, *streams), unit, streams, state)


def check_readable(holding: Holding) -> None:
    """Read all that a holding keeps. DefinitionUnreadable."""
    for form in holding.forms:
        _read(holding, form)


def stream_of(holding: Holding, name: str) -> Stream:
    """Return a stream that a holding reads, as it was defined then. DefinitionUnreadable."""
    forms = holding.forms if holding.kind == "stream" else holding.forms[1:]
    streams = (_read(holding, form) for form in forms)
    found = [each for each in streams if isinstance(each, Stream) and each.name == name]
    if not found:
        raise _unreadable(holding, f"it keeps no stream {name}")
    return found[0]


def view_of(holding: Holding) -> View:
    """Return the view of a holding. DefinitionUnreadable."""
    found = _read(holding, holding.forms[0])
    if not isinstance(found, View):
        raise _unreadable(holding, "it keeps no view")
    return found


def _hold(
    kind: str,
    definition: Stream | View,
    fingerprint: str,
    unit: str,
    inputs: Sequence[Stream],
    state: HoldingState,
) -> Holding:
    forms = [json.dumps(to_canonical(each), sort_keys=True) for each in (definition, *inputs)]
    return Holding(
        kind,
        definition.name,
        short_version(fingerprint),
        unit,
        tuple(each.name for each in inputs) or (definition.name,),
        fingerprint,
        tuple(forms),
        definition.sql,
        state,
    )


def _read(holding: Holding, form: str) -> Stream | View:
    try:
        return _definition(form)
    except json.JSONDecodeError as error:
        raise _unreadable(holding, f"it is no JSON: {error}") from error
    except DefinitionUnreadable as error:
        raise _unreadable(holding, str(error)) from error


@lru_cache(maxsize=1024)  # an audit asks for each a dozen times
def _definition(form: str) -> Stream | View:
    return from_canonical(json.loads(form))


def _unreadable(holding: Holding, reason: str) -> DefinitionUnreadable:
    return DefinitionUnreadable(f"{holding.kind} {holding.name}@{holding.version}: {reason}")
