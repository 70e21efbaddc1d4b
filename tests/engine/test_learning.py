"""What is learnt of a delay: of the event time that the stream goes by, and of no other.

Method: lateness as turns report it, told by hand.
"""

from dataclasses import replace

from headrace.engine.time.learning import Learning
from headrace.model.definitions import Adaptive, Stream
from headrace.time.lateness import as_counts

MAX_US = 60_000_000
STREAM = Stream(
    "clicks", (), "clicks", event_time="a", delay_us=MAX_US, adaptive=Adaptive("0.9", MAX_US)
)


def test_a_stream_that_goes_by_another_event_time_learns_anew() -> None:
    learning = Learning(lambda: 0)
    learning.note(STREAM, as_counts({0: 1_000}))
    edited = replace(STREAM, event_time="b")
    assert learning.due(edited, MAX_US) is None
    assert learning.due(STREAM, MAX_US) == 0
