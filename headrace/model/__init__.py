"""Definitions and what holds for them: the model that SQL and Python build."""

from headrace.model.definitions import (
    Adaptive,
    NamedQuery,
    Project,
    Sink,
    Stream,
    View,
)
from headrace.model.fingerprint import stream_fingerprint, view_fingerprint
from headrace.model.validate import (
    validate_project,
    validate_sink,
    validate_stream,
    validate_view,
)

__all__ = [
    "Adaptive",
    "NamedQuery",
    "Project",
    "Sink",
    "Stream",
    "View",
    "stream_fingerprint",
    "validate_project",
    "validate_sink",
    "validate_stream",
    "validate_view",
    "view_fingerprint",
]
