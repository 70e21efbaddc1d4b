"""What every log must do: subclass `LogContract`, say how to make the log, run pytest.

    class TestMyLog(LogContract):
        cannot = {"dense_offsets": "a compacted topic has gaps"}

        def make_log(self, path: Path) -> Log:
            return MyLog(path)

        def opener(self, path: Path, name: str = "") -> Callable[[], Log]:
            return partial(MyLog, path)

What an implementation cannot do it declares in `cannot`, under one of CAPABILITIES and with the
reason; the tests of it then show as skipped. An unknown name there is an error. How long sessions,
locks and patience are, it says in the attributes of `LogSuite`. What keeps its groups and queues is
registered with `headrace.consume.shared_reading.shared_reading`.
"""

# ruff: noqa: D102 (the name of a test is its sentence)

import pickle
import random
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import (
    PositionLost,
    ProducerFenced,
    RecordTooLarge,
    TopicNotFound,
    UsageError,
)
from headrace.log.base import (
    MAX_RECORD_BYTES,
    RECORDS,
    Append,
    Appended,
    Extent,
    Log,
    Partition,
    Producer,
    Range,
)
from headrace.log.records import DEALT_RECORDS, records
from headrace.testing.log.commits import CommitTests
from headrace.testing.log.deaths import DeathTests
from headrace.testing.log.lifetime import LifetimeTests
from headrace.testing.log.producers import ProducerTests
from headrace.testing.log.queues import QueueTests
from headrace.testing.log.sending import SendingTests
from headrace.testing.log.suite import CAPABILITIES, rows, values
from headrace.testing.log.topics import TopicTests
from headrace.testing.log.watching import WatchTests

__all__ = ["CAPABILITIES", "LogContract"]

# Kafka's own answers: `toPositive(murmur2(key)) % 4`, worked out from the hashes of its UtilsTest.
KAFKA_PARTITIONS = {b"21": 0, b"foobar": 2, b"abc": 3, b"a-little-bit-longer-string": 3}

READ_SPLITS = """
import pickle, sys
splits = pickle.load(sys.stdin.buffer)
pickle.dump([list(split.read()) for split in splits], sys.stdout.buffer)
"""


def _microseconds(time: datetime) -> int:
    return (time - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


class LogContract(
    TopicTests,
    LifetimeTests,
    ProducerTests,
    DeathTests,
    CommitTests,
    SendingTests,
    QueueTests,
    WatchTests,
):
    """The whole suite."""

    # Appending and reading.

    def test_records_keep_the_order_of_their_appends(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        for start in range(0, 50, 10):
            log.append("t", records([str(n) for n in range(start, start + 10)]), partition=0)
        assert values(log, Partition("t", 0)) == [str(n).encode() for n in range(50)]

    def test_offsets_are_dense(self, log: Log) -> None:
        self.need("dense_offsets")
        place = Partition("t", 1)
        log.create_topic("t", partitions=2)
        first = log.append("t", records(["a", "b"]), partition=1)
        (second,) = log.append_all([Append("t", records(["c"]), 1)])
        assert first == Appended([Range(place, 0, 2)])
        assert second == Appended([Range(place, 2, 3)])
        assert [row["offset"] for row in rows(log, place)] == [0, 1, 2]
        assert log.extents("t") == {Partition("t", 0): Extent(0, 0), place: Extent(0, 3)}

    def test_processes_that_append_once_fill_all_partitions(self, log: Log, path: Path) -> None:
        log.create_topic("t", partitions=4)
        for _ in range(8):
            other = self.make_log(path)
            other.append("t", records(["x"] * 500))
            other.close()
        assert [len(rows(log, place)) for place in log.extents("t")] == [1_000] * 4

    def test_many_records_without_a_key_are_dealt_out(self, log: Log) -> None:
        log.create_topic("t", partitions=3)
        texts = [str(n) for n in range(DEALT_RECORDS)]
        log.append("t", records([*texts, "k"], keys=[None] * len(texts) + ["k"]))
        (by_key,) = self.kafka_picks([b"k"], 3)
        for number in range(3):
            expected = [text.encode() for text in texts[number::3]] + [b"k"] * (number == by_key)
            assert values(log, Partition("t", number)) == expected

    def test_offsets_grow_and_arrival_never_goes_back(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        for _ in range(20):
            log.append("t", records(["x", "y"]), partition=0)
        seen = rows(log, Partition("t", 0))
        offsets, arrivals = [r["offset"] for r in seen], [r["arrival"] for r in seen]
        assert offsets == sorted(set(offsets))
        assert arrivals == sorted(arrivals)

    def test_keys_values_and_headers_come_back_as_they_went_in(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        table = records(
            [b"\x00\xff", None, b"", "ü"],
            keys=[None, b"", b"\x00", "k"],
            headers=[None, None, [("n", b"1"), ("n", None)], {"ü": "ä"}],
        )
        log.append("t", table, partition=0)
        (first, last) = log.extents("t")[Partition("t", 0)]
        batches = list(log.read(Range(Partition("t", 0), first, last)))
        assert all(batch.schema.equals(RECORDS) for batch in batches)
        read = pa.Table.from_batches(batches)
        assert read.select(["key", "value", "headers"]).to_pylist() == table.to_pylist()

    def test_null_headers_are_not_empty_headers(self, log: Log) -> None:
        self.need("null_headers")
        log.create_topic("t", partitions=1)
        log.append("t", records(["a", "b"], headers=[None, {}]), partition=0)
        assert [row["headers"] for row in rows(log, Partition("t", 0))] == [None, []]

    def test_an_append_of_nothing_does_nothing(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        assert log.append("t", records([])) == Appended([])
        assert log.append("t", records([]), partition=0) == Appended([])
        assert rows(log, Partition("t", 0)) == []

    def test_a_table_with_other_columns_is_refused(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        with pytest.raises(UsageError, match="key, value and headers"):
            log.append("t", pa.table({"value": [b"x"]}), partition=0)

    def test_a_partition_that_is_not_there_is_refused(self, log: Log) -> None:
        log.create_topic("t", partitions=2)
        for number in (-1, 2):
            with pytest.raises(UsageError, match="2"):
                log.append("t", records(["x"]), partition=number)

    def test_what_was_appended_is_visible_to_every_reader(self, log: Log, path: Path) -> None:
        log.create_topic("t", partitions=1)
        other = self.make_log(path)
        for count in range(1, 4):
            log.append("t", records([str(count)]), partition=0)
            assert len(values(other, Partition("t", 0))) == count
        other.close()

    def test_a_log_opened_anew_replays_the_same_records(self, log: Log, path: Path) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["a", "b"], keys=["k", None]), partition=0)
        before = rows(log, Partition("t", 0))
        log.close()
        again = self.make_log(path)
        assert rows(again, Partition("t", 0)) == before
        again.append("t", records(["c"]), partition=0)
        assert values(again, Partition("t", 0)) == [b"a", b"b", b"c"]
        again.close()

    def test_two_readers_at_once_do_not_disturb_each_other(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        for n in range(10):
            log.append("t", records([f"{n}-{i}" for i in range(600)]), partition=0)
        extent = log.extents("t")[Partition("t", 0)]
        whole = Range(Partition("t", 0), *extent)
        one = log.read(whole, max_batch_records=700)
        two = log.read(whole, max_batch_records=500)
        ahead = [next(one), next(one)]
        behind = pa.Table.from_batches(two)
        log.append("t", records(["later"]), partition=0)
        assert pa.Table.from_batches([*ahead, *one]) == behind
        assert behind.num_rows == 6000

    def test_several_ranges_are_read_together(self, log: Log) -> None:
        for topic, partitions in (("t", 3), ("u", 1)):
            log.create_topic(topic, partitions=partitions)
        for number in range(3):
            log.append("t", records([f"{number}-{n}" for n in range(500)]), partition=number)
        log.append_all([Append("t", records(["last"]), 0), Append("u", records(["u"]), 0)])
        extents = log.extents("t", "u")
        wanted = [Range(place, *extent) for place, extent in extents.items()]
        # An empty one, a part that others go on after, and another part of the same partition.
        wanted += [
            Range(Partition("t", 1), 7, 7),
            Range(Partition("t", 1), 10, 20),
            Range(Partition("t", 1), 15, 30),
        ]
        for _ in range(2):
            found = log.read_many(wanted)
            assert len(found) == len(wanted)
            for whole, batches in zip(wanted, found, strict=True):
                each = [batch for batch in log.read(whole) if batch.num_rows]
                assert all(batch.schema.equals(RECORDS) for batch in batches)
                assert pa.Table.from_batches(batches, RECORDS) == pa.Table.from_batches(
                    each, RECORDS
                )
            log.append("t", records(["later"]), partition=2)
        assert log.read_many([]) == []
        beyond = Range(Partition("u", 0), 0, extents[Partition("u", 0)].end_offset + 5)
        with pytest.raises(PositionLost, match="u/0"):
            log.read_many([wanted[0], beyond])

    def test_a_range_is_cut_out_exactly(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        place = Partition("t", 0)
        for n in range(2):
            batch = records([str(3 * n + i) for i in range(3)])
            log.append("t", batch, partition=0)
            log.append_all([Append("t", batch, 0)])
        first, end = log.extents("t")[place]
        offsets = [row["offset"] for row in rows(log, place)]
        assert len(offsets) == 12
        for start in range(first, end + 1):
            for stop in range(start, end + 1):
                read = [row["offset"] for row in rows(log, place, start, stop)]
                assert read == [offset for offset in offsets if start <= offset < stop]

    def test_appends_together_are_all_there(self, log: Log, path: Path) -> None:
        log.create_topic("a", partitions=3)
        log.create_topic("b", partitions=1)
        log.append("b", records(["before"]), partition=0)
        keys = [str(n) for n in range(50)]
        found = log.append_all(
            [
                Append("a", records(keys, keys=keys)),
                Append("b", records(["one", "two"]), 0, Producer("p", 1, 7)),
            ]
        )
        assert [each.duplicate for each in found] == [False, False]
        assert {written.partition for written in found[0].ranges} == set(log.extents("a"))
        for each in (log, self.make_log(path)):
            stored = [values(each, place) for place in sorted(each.extents("a"))]
            assert sorted(value for part in stored for value in part if value) == sorted(
                key.encode() for key in keys
            )
            assert values(each, Partition("b", 0)) == [b"before", b"one", b"two"]
            for place, start, end in (*found[0].ranges, *found[1].ranges):
                assert len(rows(each, place, start, end)) > 0
            assert each.last_sequence(Partition("b", 0), "p") == 7
        assert log.append_all([]) == []

    def test_of_appends_together_nothing_is_there_if_one_is_refused(self, log: Log) -> None:
        log.create_topic("a", partitions=2)
        log.append("a", records(["x"]), partition=1, producer=Producer("p", 2, 5))
        good = Append("a", records(["good"]), 0)
        large = records([b"x" * (MAX_RECORD_BYTES + 1)])
        for other, error in [
            (Append("a", large, 1), RecordTooLarge),
            (Append("missing", records(["x"]), 0), TopicNotFound),
            (Append("a", records(["x"]), 9), UsageError),
            (Append("a", records(["x"]), 0), UsageError),  # the same partition twice
            (Append("a", records(["x"]), 1, Producer("p", 1, 9)), ProducerFenced),
            (Append("a", records(["x"]), 1, Producer("p", 2, 5)), UsageError),  # stored before
        ]:
            with pytest.raises(error):
                log.append_all([good, other])
            assert values(log, Partition("a", 0)) == []
            assert values(log, Partition("a", 1)) == [b"x"]
        log.append_all([good, Append("a", records(["y"]), 1, Producer("p", 2, 6))])
        assert values(log, Partition("a", 0)) == [b"good"]
        assert values(log, Partition("a", 1)) == [b"x", b"y"]

    def test_the_first_offset_at_a_time_is_found(self, log: Log) -> None:
        log.create_topic("t", partitions=2)
        place, empty = Partition("t", 0), Partition("t", 1)
        for n in range(12):
            log.append("t", records([f"{n}-{i}" for i in range(3)]), partition=0)
            time.sleep(0.002)  # a log may count milliseconds only
        found = [(row["offset"], _microseconds(row["arrival"])) for row in rows(log, place)]
        assert len({arrival for _, arrival in found}) == 12
        for _, arrival in found:
            first = min(offset for offset, other in found if other >= arrival)
            assert log.offset_at(place, arrival) == first
        end = log.extents("t")[place].end_offset
        assert log.offset_at(place, 0) == found[0][0]
        assert log.offset_at(place, found[-1][1] + 60_000_000) == end
        assert log.offset_at(empty, 0) == log.extents("t")[empty].end_offset == 0

    def test_no_batch_is_larger_than_asked(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records([str(n) for n in range(1000)]), partition=0)
        extent = log.extents("t")[Partition("t", 0)]
        batches = list(log.read(Range(Partition("t", 0), *extent), max_batch_records=300))
        assert max(batch.num_rows for batch in batches) <= 300
        assert sum(batch.num_rows for batch in batches) == 1000

    def test_a_range_that_is_not_there_is_position_lost(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        log.append("t", records(["a", "b"]), partition=0)
        place = Partition("t", 0)
        first, end = log.extents("t")[place]
        for start, stop in ((end + 1, end + 2), (first, end + 1), (first - 1, end)):
            with pytest.raises(PositionLost, match="t/0@"):
                list(log.read(Range(place, start, stop)))
        assert list(log.read(Range(place, end, end))) == []

    def test_measure_grows_with_the_range(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        place = Partition("t", 0)
        for _ in range(5):
            log.append("t", records([b"x" * 1000]), partition=0)
        first, end = log.extents("t")[place]
        whole = log.measure(Range(place, first, end))
        assert whole >= 5000
        assert log.measure(Range(place, first, first)) == 0
        assert 1000 <= log.measure(Range(place, first, first + 1)) < whole

    def test_a_record_too_large_leaves_nothing(self, log: Log) -> None:
        log.create_topic("t", partitions=2)
        large = b"x" * (MAX_RECORD_BYTES - 3)
        with pytest.raises(RecordTooLarge, match=f"record 2 .* {MAX_RECORD_BYTES + 1} bytes"):
            log.append(
                "t",
                records(
                    ["a", "b", large, "c"],
                    keys=["1", "2", "k", "4"],
                    headers=[None, None, [("n", b"ab")], None],
                ),
            )
        assert [extent.end_offset for extent in log.extents("t").values()] == [0, 0]
        log.append("t", records([large], keys=["k"], headers=[[("n", b"a")]]), partition=0)
        assert len(values(log, Partition("t", 0))) == 1

    # Partitions.

    def test_a_key_goes_where_kafka_sends_it(self, log: Log) -> None:
        log.create_topic("t", partitions=4)
        keys = list(KAFKA_PARTITIONS) * 3
        log.append("t", records([str(n) for n in range(len(keys))], keys=keys))
        for number in range(4):
            expected = [
                (key, str(n).encode())
                for n, key in enumerate(keys)
                if KAFKA_PARTITIONS[key] == number
            ]
            read = [(row["key"], row["value"]) for row in rows(log, Partition("t", number))]
            assert read == expected

    def test_ten_thousand_random_keys_go_where_kafka_sends_them(self, log: Log) -> None:
        log.create_topic("t", partitions=7)
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        keys = [n.to_bytes(2, "big") + chance.randbytes(n % 40) for n in range(10_000)]
        log.append("t", records(keys, keys=keys))
        picked = dict(zip(keys, self.kafka_picks(keys, 7), strict=True))
        for number in range(7):
            expected = [key for key in keys if picked[key] == number]
            assert values(log, Partition("t", number)) == expected, f"seed {seed}"

    def test_records_without_keys_take_the_partitions_in_turn(self, log: Log) -> None:
        log.create_topic("t", partitions=3)
        used = []
        for n in range(6):
            (one,) = log.append("t", records([f"{n}a", f"{n}b"])).ranges
            assert one.span == 2
            used.append(one.partition.number)
        assert sorted(used[:3]) == [0, 1, 2]
        assert used[3:] == used[:3]

    def test_with_and_without_keys_in_one_append(self, log: Log) -> None:
        log.create_topic("t", partitions=4)
        done = log.append("t", records(["a", "b", "c", "d"], keys=["21", None, "21", None]))
        assert sum(one.span for one in done.ranges) == 4
        with_key = values(log, Partition("t", KAFKA_PARTITIONS[b"21"]))
        assert [value for value in with_key if value in (b"a", b"c")] == [b"a", b"c"]

    # Producers.

    def test_a_batch_of_a_producer_is_stored_once(self, log: Log, path: Path) -> None:
        self.need("producers")
        log.create_topic("t", partitions=2)
        batch, producer = records(["a", "b"]), Producer("p", 1, 5)
        assert not log.append("t", batch, partition=0, producer=producer).duplicate
        again = self.make_log(path)
        for retry in (producer, Producer("p", 1, 4), Producer("p", 2, 5)):
            assert again.append("t", batch, partition=0, producer=retry) == Appended([], True)
        assert values(again, Partition("t", 0)) == [b"a", b"b"]
        # Another partition, another producer or a later sequence is another batch.
        assert not again.append("t", batch, partition=1, producer=producer).duplicate
        assert not again.append("t", batch, partition=0, producer=Producer("q", 1, 5)).duplicate
        assert not again.append("t", batch, partition=0, producer=Producer("p", 1, 6)).duplicate
        assert len(values(again, Partition("t", 0))) == 6
        again.close()

    def test_an_older_epoch_is_fenced(self, log: Log) -> None:
        self.need("producers")
        log.create_topic("t", partitions=1)
        log.append("t", records(["a"]), partition=0, producer=Producer("p", 2, 1))
        for sequence in (1, 9):
            zombie = Producer("p", 1, sequence)
            with pytest.raises(ProducerFenced, match="'p' of epoch 1"):
                log.append("t", records(["b"]), partition=0, producer=zombie)
        assert values(log, Partition("t", 0)) == [b"a"]

    def test_the_last_sequence_of_a_producer_is_known(self, log: Log, path: Path) -> None:
        self.need("producers")
        log.create_topic("t", partitions=2)
        assert log.last_sequence(Partition("t", 0), "p") is None
        for sequence in (3, 8, 5):
            log.append("t", records(["a"]), partition=0, producer=Producer("p", 1, sequence))
        log.append("t", records(["a"]), partition=0)
        again = self.make_log(path)
        for each in (log, again):
            assert each.last_sequence(Partition("t", 0), "p") == 8
            assert each.last_sequence(Partition("t", 0), "q") is None
            assert each.last_sequence(Partition("t", 1), "p") is None
        again.close()

    def test_a_producer_must_name_the_partition(self, log: Log) -> None:
        self.need("producers")
        log.create_topic("t", partitions=1)
        with pytest.raises(UsageError, match="partition"):
            log.append("t", records(["a"]), producer=Producer("p", 1, 1))

    def test_an_empty_batch_of_a_producer_takes_no_sequence(self, log: Log) -> None:
        self.need("producers")
        log.create_topic("t", partitions=1)
        producer = Producer("p", 1, 1)
        assert log.append("t", records([]), partition=0, producer=producer) == Appended([])
        assert not log.append("t", records(["a"]), partition=0, producer=producer).duplicate

    # Several at once.

    def test_threads_append_at_once_and_nothing_is_lost_or_mixed(
        self, log: Log, path: Path
    ) -> None:
        log.create_topic("t", partitions=1)
        logs = [log, log, self.make_log(path), self.make_log(path)]

        def append_all(thread: int) -> None:
            for n in range(15):
                batch = records([f"{thread}-{n}-{i}" for i in range(3)])
                logs[thread].append("t", batch, partition=0)

        threads = [threading.Thread(target=append_all, args=(n,)) for n in range(len(logs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seen = [str(value, "ascii").split("-") for value in values(log, Partition("t", 0)) if value]
        assert len(seen) == len(logs) * 15 * 3
        for number in range(len(logs)):
            mine = [(int(n), int(i)) for thread, n, i in seen if int(thread) == number]
            assert mine == [(n, i) for n in range(15) for i in range(3)]
        assert all(seen[k][:2] == seen[k + 1][:2] for k in range(0, len(seen), 3))
        for other in logs[2:]:
            other.close()

    def test_a_split_is_read_in_another_process(self, log: Log) -> None:
        self.need("splits")
        log.create_topic("t", partitions=1)
        for n in range(10):
            log.append("t", records([f"{n}-{i}" for i in range(7)], keys=["k"] * 7), partition=0)
        whole = Range(Partition("t", 0), *log.extents("t")[Partition("t", 0)])
        inner = Range(whole.partition, whole.start + 3, whole.end - 2)
        splits = log.splits(inner, max_records=25)
        assert [split.range.start for split in splits[1:]] == [s.range.end for s in splits[:-1]]
        assert (splits[0].range.start, splits[-1].range.end) == (inner.start, inner.end)
        assert len(splits) > 1
        done = subprocess.run(
            [sys.executable, "-c", READ_SPLITS],
            input=pickle.dumps(splits),
            capture_output=True,
            check=True,
        )
        read = [pa.Table.from_batches(batches) for batches in pickle.loads(done.stdout)]  # noqa: S301 (our own)
        assert [table.num_rows for table in read] == [split.range.span for split in splits]
        own = pa.concat_tables(read).select(RECORDS.names)
        assert own.to_pylist() == rows(log, inner.partition, *inner[1:])
