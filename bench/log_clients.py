"""How fast both logs are next to Kafka's own client, on one broker, in one run.

    python bench/log.py, or this alone: python bench/log_clients.py

Starts a broker, then prints the latency of one record and the rates of appending and scanning:
confluent-kafka's producer and consumer, `KafkaLog` as a share of them, and the embedded log on the
same machine. All wait for acknowledgement by all replicas, or for the disk. Ends in a minute.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from brokers import resolve_jars, run_broker
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.log import EmbeddedLog, KafkaLog, Log, Partition, Range, records

RECORD_BYTES = 100
BATCH_RECORDS = 10_000
PLACE = Partition("bench", 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000, help="records to append and scan")
    parser.add_argument("--singles", type=int, default=200, help="appends of one record to time")
    options = parser.parse_args()
    compare(options.records, options.singles)


def compare(count: int, singles: int) -> None:
    """Time all three, and print them as shares of the first."""
    values = [os.urandom(RECORD_BYTES) for _ in range(BATCH_RECORDS)]
    with run_broker(resolve_jars()) as broker, tempfile.TemporaryDirectory() as folder:
        reach = {"bootstrap.servers": broker.bootstrap}
        logs: dict[str, Log] = {
            "KafkaLog": KafkaLog(reach, prefix="log."),
            "embedded log": EmbeddedLog(Path(folder)),
        }
        for log in logs.values():
            log.create_topic("bench", partitions=1)
            log.create_topic("single", partitions=1)
        client = Producer({**reach, "acks": "all", "enable.idempotence": True, "linger.ms": 5})
        latencies = {"confluent-kafka": time_singles(lambda: send_one(client), singles)}
        rates = {"confluent-kafka": send_all(client, values, count)}
        for name, log in logs.items():
            one = records([values[0]])
            latencies[name] = time_singles(
                lambda log=log, one=one: log.append("single", one, partition=0), singles
            )
            rates[name] = append_all(log, records(values), count)
        show("append of one record, ms", latencies, lambda ms: f"{ms:8.2f}", smaller=True)
        show("append, records/s", rates, lambda rate: f"{rate:12,.0f}")
        scans = {"confluent-kafka": consume_all(reach, count)}
        scans |= {name: scan_all(log) for name, log in logs.items()}
        show("scan, records/s", scans, lambda rate: f"{rate:12,.0f}")
        for log in logs.values():
            log.close()


def time_singles(call: Callable[[], object], count: int) -> float:
    """Return the median milliseconds of a call."""
    seconds = []
    for _ in range(count):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds) * 1000


def send_one(client: Producer) -> None:
    client.produce("client-single", value=b"x" * RECORD_BYTES)
    client.flush()


def send_all(client: Producer, values: list[bytes], count: int) -> float:
    """Return the rate of confluent-kafka's producer."""
    started = time.perf_counter()
    for _ in range(count // len(values)):
        for value in values:
            client.produce("client", value=value, partition=0)
        client.flush()
    return count / (time.perf_counter() - started)


def append_all(log: Log, table: pa.Table, count: int) -> float:
    """Return the rate of appends of whole batches."""
    started = time.perf_counter()
    for _ in range(count // table.num_rows):
        log.append("bench", table, partition=0)
    return count / (time.perf_counter() - started)


def consume_all(reach: dict[str, str], count: int) -> float:
    """Return the rate of confluent-kafka's consumer, its messages turned into Python's bytes."""
    consumer = Consumer({**reach, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition("client", 0, 0)])
    started = time.perf_counter()
    seen = 0
    while seen < count:
        messages = consumer.consume(BATCH_RECORDS, 1.0)
        seen += len([message.value() for message in messages])
    rate = seen / (time.perf_counter() - started)
    consumer.close()
    return rate


def scan_all(log: Log) -> float:
    """Return the rate of a whole scan."""
    whole = Range(PLACE, *log.extents("bench")[PLACE])
    started = time.perf_counter()
    seen = sum(batch.num_rows for batch in log.read(whole))
    return seen / (time.perf_counter() - started)


def show(
    title: str,
    found: dict[str, float],
    text: Callable[[float], str],
    *,
    smaller: bool = False,
) -> None:
    base = found["confluent-kafka"]
    print(title)
    for name, value in found.items():
        ratio = base / value if smaller else value / base
        print(f"  {name:18} {text(value)}   {ratio:6.2f} of confluent-kafka")


if __name__ == "__main__":
    main()
