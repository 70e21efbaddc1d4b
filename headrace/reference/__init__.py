"""The semantics once more in plain Python: the oracle of the tests."""

from headrace.reference.answer import Answer, Record, answer

__all__ = ["Answer", "Record", "answer"]
