"""What holds for every definition, whichever front door it came through.

Promises:
- Every problem is returned, not only the first; none means that the definition may be acted on.
- A problem stands where `locations` says its subject stands, else where the definition begins.
Not checked here: whether the expressions are sound, which only their own language can say.
"""

from headrace.model.validate.projects import taken_fault, validate_project
from headrace.model.validate.sinks import validate_sink
from headrace.model.validate.streams import validate_stream
from headrace.model.validate.views import validate_view
from headrace.model.validate.writing import validate_writing

__all__ = [
    "taken_fault",
    "validate_project",
    "validate_sink",
    "validate_stream",
    "validate_view",
    "validate_writing",
]
