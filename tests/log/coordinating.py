"""The file where members and consumers of an embedded log meet, for tests that look into it."""

from headrace.consume.shared_reading import shared_reading
from headrace.log import EmbeddedLog
from headrace.log.embedded.coordinator import Coordinator
from headrace.log.embedded.shared_reading import EmbeddedSharedReading


def coordinator_of(log: EmbeddedLog) -> Coordinator:
    shared = shared_reading(log)
    assert isinstance(shared, EmbeddedSharedReading)
    return shared.coordinator
