"""The file where members and consumers of an embedded log meet, for tests that look into it."""

from headrace.consume.embedded.coordinator import Coordinator
from headrace.consume.embedded.shared_reading import EmbeddedSharedReading
from headrace.consume.shared_reading import shared_reading
from headrace.log import EmbeddedLog


def coordinator_of(log: EmbeddedLog) -> Coordinator:
    shared = shared_reading(log)
    assert isinstance(shared, EmbeddedSharedReading)
    return shared.coordinator
