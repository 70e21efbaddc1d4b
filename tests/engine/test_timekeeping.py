"""The topic of markers has one partition and keeps everything, or no engine begins.

Method: the log refuses to make another one; one that was made elsewhere, as on Kafka, is put in its
place by hand.
"""

from pathlib import Path

import pytest

from headrace.engine.time.timekeeping import Timekeeper
from headrace.errors import InvalidTopic
from headrace.log import EmbeddedLog, Topic, TopicSettings


@pytest.mark.parametrize(
    ("partitions", "settings", "what"),
    [
        (2, TopicSettings(), "it has 2 partitions"),
        (1, TopicSettings(retention_ms=604_800_000), "retention"),
        (1, TopicSettings(retention_bytes=1 << 30), "retention"),
        (1, TopicSettings(compact=True), "compacted"),
    ],
    ids=["partitions", "age", "size", "compacted"],
)
def test_a_topic_of_markers_that_could_lose_some_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    partitions: int,
    settings: TopicSettings,
    what: str,
) -> None:
    log = EmbeddedLog(tmp_path, sync=False)
    refused = rf"^headrace\.time: .*{what}.*cleanup\.policy=delete"
    with pytest.raises(InvalidTopic, match=refused):
        log.create_topic("headrace.time", partitions=partitions, settings=settings)
    made = log.create_topic("headrace.time", partitions=1)
    found = Topic("headrace.time", partitions, settings)
    monkeypatch.setattr(log, "topic", lambda _: found)
    with pytest.raises(InvalidTopic, match=refused):
        Timekeeper(log).begin(1)
    monkeypatch.setattr(log, "topic", lambda _: made)
    Timekeeper(log).begin(1)
