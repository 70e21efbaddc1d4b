"""`headrace append` on Kafka: a broker that goes away in the middle, and `--resume` behind it.

Method: a real process appends what a pipe brings; the broker is stopped between two pieces of it.
"""

import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from broker import Broker

from headrace.log import KafkaLog
from headrace.testing.log.suite import values

from .conftest import MakeKafkaLog

SQL = """
CREATE STREAM t (n BIGINT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 1 SECOND)
WITH (key = 'n');
CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t;
"""
LINES = [f'{{"n": {n}}}\n' for n in range(900)]
APPEND = [sys.executable, "-m", "headrace.cli.main", "append", "t", "-"]
# The one whose broker goes away gives up sooner: an append has 15 seconds, twice over.
IMPATIENT = """
from headrace.log.kafka import client
client.TRANSACTION_TIMEOUT_S = 8
from headrace.cli.main import main
main()
"""


def stored(log: KafkaLog) -> list[bytes | None]:
    return [value for place in log.extents("t") for value in values(log, place)]


def test_an_append_outlives_its_broker(
    broker: Broker, make_kafka_log: MakeKafkaLog, prefix: str, tmp_path: Path
) -> None:
    (tmp_path / "headrace.toml").write_text(
        f'[log]\nkind = "kafka"\nprefix = "{prefix}"\n'
        f'[log.client]\n"bootstrap.servers" = "{broker.bootstrap}"\n'
    )
    (tmp_path / "t.sql").write_text(SQL)
    log = make_kafka_log(timeout_s=30)
    log.create_topic("t", partitions=4)
    process = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, "append", "t", "-"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write("".join(LINES[:400]))
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while len(stored(log)) < 400:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    broker.stop()
    try:
        _, err = process.communicate("".join(LINES[400:]), timeout=120)
    finally:
        broker.start()
    assert process.returncode == 3
    known = (
        r"Lines 1 to 400 of stdin are stored; whether lines 401 to \d+ are stored, the log cannot"
    )
    assert re.search(known, err), err
    assert "Pipe the same input into `headrace append t - --resume`: it finds out" in err

    done = subprocess.run(
        [*APPEND, "--resume", "--json"],
        cwd=tmp_path,
        input="".join(LINES),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert Counter(stored(log)) == Counter(line.strip().encode() for line in LINES)
    sizes = [len(values(log, place)) for place in log.extents("t")]
    assert min(sizes) > 150  # by key
