"""How fast the logs are, against what this machine allows and next to Kafka's own client.

    python bench/log.py

Prints appends of 1,000 records of 100 bytes as a share of raw writes that sync the same bytes
(goal: 0.5 or more), and the rate of a scan (goal: 5 million records/s or more); then both logs next
to Kafka's own client (log_clients.py). Ends in a minute or two.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from log_clients import compare

from headrace.log import EmbeddedLog, Partition, Range, records

BATCH_RECORDS = 1_000
RECORD_BYTES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="where to write (default: the temporary folder)")
    parser.add_argument("--batches", type=int, default=500, help="appends to time")
    parser.add_argument("--scan-records", type=int, default=2_000_000, help="records to scan")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench_append(Path(folder), options.batches)
        bench_scan(Path(folder), options.scan_records)
    compare(count=500_000, singles=200)


def bench_append(folder: Path, batches: int) -> None:
    """Time raw writes and appends in turn, so that a slow moment of the disk meets both."""
    table = records([os.urandom(RECORD_BYTES) for _ in range(BATCH_RECORDS)])
    raw_bytes = os.urandom(BATCH_RECORDS * RECORD_BYTES)
    log = EmbeddedLog(folder / "synced")
    log.create_topic("bench", partitions=1)
    raw_seconds: list[float] = []
    append_seconds: list[float] = []
    with open(folder / "raw", "wb", buffering=0) as raw:
        for _ in range(batches):
            started = time.perf_counter()
            raw.write(raw_bytes)
            os.fsync(raw.fileno())
            middle = time.perf_counter()
            log.append("bench", table, partition=0)
            append_seconds.append(time.perf_counter() - middle)
            raw_seconds.append(middle - started)
    raw_total, append_total = sum(raw_seconds), sum(append_seconds)
    raw_median, append_median = statistics.median(raw_seconds), statistics.median(append_seconds)
    rate = batches * BATCH_RECORDS / append_total
    megabytes = batches * len(raw_bytes) / 1e6
    print(
        f"raw write and sync:   {megabytes / raw_total:8.1f} MB/s, median {raw_median * 1e3:.2f} ms"
    )
    print(
        f"append:               {megabytes / append_total:8.1f} MB/s, "
        f"median {append_median * 1e3:.2f} ms, {rate:,.0f} records/s"
    )
    print(
        f"append / raw:         {raw_total / append_total:8.2f} in all, "
        f"{raw_median / append_median:.2f} by medians (goal: 0.5 or more)"
    )
    log.close()


def bench_scan(folder: Path, count: int) -> None:
    """Time appends without sync, then whole scans with checksums, of records with keys."""
    log = EmbeddedLog(folder / "unsynced", sync=False)
    log.create_topic("bench", partitions=1)
    values = [os.urandom(RECORD_BYTES) for _ in range(BATCH_RECORDS)]
    table = records(values, keys=[b"key-%d" % number for number in range(BATCH_RECORDS)])
    started = time.perf_counter()
    for _ in range(count // BATCH_RECORDS):
        log.append("bench", table, partition=0)
    rate = count / (time.perf_counter() - started)
    print(f"append, no sync:      {rate:12,.0f} records/s")
    everything = Range(Partition("bench", 0), 0, count // BATCH_RECORDS * BATCH_RECORDS)
    rates = []
    for _ in range(3):
        started = time.perf_counter()
        seen = sum(batch.num_rows for batch in log.read(everything))
        rates.append(seen / (time.perf_counter() - started))
    rate = statistics.median(rates)
    print(f"scan:                 {rate:12,.0f} records/s, {rate / 5e6:.2f} of the goal")
    log.close()


if __name__ == "__main__":
    main()
