"""Definitions and what holds for them: the model that SQL and Python build."""

from headrace.model.definitions import Call, Key, Output, Project, Query, Stream, View, Window
from headrace.model.fingerprint import stream_fingerprint, view_fingerprint
from headrace.model.validate import validate_project, validate_stream, validate_view

__all__ = [
    "Call",
    "Key",
    "Output",
    "Project",
    "Query",
    "Stream",
    "View",
    "Window",
    "stream_fingerprint",
    "validate_project",
    "validate_stream",
    "validate_view",
    "view_fingerprint",
]
