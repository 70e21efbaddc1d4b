"""How groups and queues hang on their log: they end with it, and need one that keeps them.

Method: an embedded log; what nobody refers to any more is collected before the log is closed.
"""

import gc
from pathlib import Path
from typing import cast

import pytest

from headrace.consume import consume_queue, find_group, join_group, list_groups
from headrace.errors import UsageError
from headrace.log import EmbeddedLog, Log, records


def test_closing_the_log_closes_members_and_consumers(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("t", partitions=1)
    log.append("t", records(["a"]), partition=0)
    member, consumer = join_group(log, "g", ["t"]), consume_queue(log, "q", "t")
    (held,) = consumer.poll()
    log.close()
    with pytest.raises(UsageError, match="it is closed; join the group anew"):
        member.poll()
    with pytest.raises(UsageError, match="it is closed; consume the queue anew"):
        consumer.acknowledge([held])
    again = EmbeddedLog(tmp_path / "log", sync=False)
    assert list_groups(again) == []
    assert [each.deliveries for each in consume_queue(again, "q", "t").poll()] == [2]
    again.close()


def test_a_member_that_nobody_refers_to_ends_with_the_log(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("t", partitions=1)
    join_group(log, "g", ["t"])
    gc.collect()
    other = EmbeddedLog(tmp_path / "log", sync=False)
    assert len(find_group(other, "g").members) == 1
    log.close()
    assert list_groups(other) == []
    other.close()


def test_a_closed_log_is_not_joined_and_gets_no_file(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("t", partitions=1)
    log.close()
    for call in (
        lambda: join_group(log, "g", ["t"]),
        lambda: consume_queue(log, "q", "t"),
        lambda: list_groups(log),
    ):
        with pytest.raises(UsageError, match="this log is closed; open it anew"):
            call()
    assert list((tmp_path / "log").glob("~groups*")) == []


def test_a_log_that_keeps_no_groups_is_refused() -> None:
    class OtherLog:
        pass

    with pytest.raises(UsageError, match="by an EmbeddedLog or a KafkaLog, not by a OtherLog"):
        list_groups(cast(Log, OtherLog()))
