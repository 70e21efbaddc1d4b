"""Refuse query parameters that a route does not know: a slip would be answered, with other rows."""

from collections.abc import Collection

from fastapi.requests import HTTPConnection

from headrace.errors import UsageError
from headrace.model.names import closest

__all__ = ["refuse_unknown", "unknown"]

_SHOWN = 5


def refuse_unknown(connection: HTTPConnection, known: Collection[str]) -> None:
    """Refuse parameters that are not known. UsageError."""
    if found := set(connection.query_params) - set(known):
        raise unknown(found, known)


def unknown(names: Collection[str], known: Collection[str]) -> UsageError:
    """Return the error for names that are not known, with what was probably meant."""
    told = [name[:50] + closest(name[:50], known) for name in sorted(names)[:_SHOWN]]
    return UsageError(f"unknown parameters: {', '.join(told)}; see /v1/openapi.json")
