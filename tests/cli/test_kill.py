"""`kill -9` of `headrace run` at random moments while records are appended: nothing shows.

Method: a project runs as a real process while another process appends payments, some late, some
broken, some failing; the engine is killed twice, once in its start and once in or between its
turns; many more times in `make soak`. Every step of a turn is a crash of its own in test_faults.py.
Afterwards `headrace run --once` reads the rest and `headrace audit` recomputes everything, both in
this process.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shop import SHOP
from soaking import seeded, times

from cli.commands import HEADRACE, START_SECONDS, Run
from headrace.log import EmbeddedLog, Range

pytestmark = [pytest.mark.spark, pytest.mark.timeout(500)]

KILLS = times(2)
APPENDER = """
import itertools, sys, time
from shop import payments
from headrace.log import EmbeddedLog, records
from headrace.testing.harness import to_json
log = EmbeddedLog(sys.argv[1])
for number in itertools.count(0, 7):
    values = [v if v is None else to_json(v) for v in payments(number, 7)]
    log.append("payments", records(values), partition=number % 4)
    time.sleep(0.05)
"""


def side_places(log: EmbeddedLog, topic: str) -> list[tuple[bytes, bytes, bytes]]:
    found = []
    for partition, extent in log.extents(topic).items():
        for batch in log.read(Range(partition, *extent)):
            for headers in batch["headers"].to_pylist():
                named = {header["name"]: header["value"] for header in headers}
                found.append(
                    (
                        named["headrace.topic"],
                        named["headrace.partition"],
                        named["headrace.offset"],
                    )
                )
    return found


@pytest.mark.soak
def test_kill_dash_nine_at_random_moments_loses_and_repeats_nothing(
    tmp_path: Path, headrace: Run
) -> None:
    (tmp_path / "headrace.toml").write_text('[project]\nname = "killed"\n')
    (tmp_path / "shop.sql").write_text(SHOP)
    log = EmbeddedLog(tmp_path / ".headrace" / "log")
    log.create_topic("payments", partitions=4)
    moments = seeded(7)
    folder = str(Path(__file__).parent.parent / "engine")
    appender = subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(tmp_path / ".headrace" / "log")],
        env={"PYTHONPATH": folder},
    )
    running = tmp_path / ".headrace" / "engine.json"
    try:
        for kill in range(KILLS):
            running.unlink(missing_ok=True)
            command = [HEADRACE, "run", "--project", str(tmp_path)]
            engine = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            in_its_turns = kill % 2 == 1  # else wherever it is in its start
            if in_its_turns:
                deadline = time.monotonic() + START_SECONDS
                while not running.exists():
                    assert time.monotonic() < deadline, "the engine does not start"
                    time.sleep(0.05)
            time.sleep(moments.uniform(0.1, 2.0 if in_its_turns else 5.0))
            assert engine.poll() is None, "the engine ended by itself"
            engine.send_signal(signal.SIGKILL)
            engine.wait()
    finally:
        appender.kill()
        appender.wait()
    caught_up = headrace("run", "--once", "-p", tmp_path)
    assert caught_up.code == 0, caught_up.err[-2000:]
    audit = headrace("audit", "--json", "-p", tmp_path)
    assert audit.code == 0, audit.out[-2000:] + audit.err[-2000:]
    (status,) = headrace("status", "--json", "-p", tmp_path).rows
    ends = sum(extent.end_offset for extent in log.extents("payments").values())
    (stream,) = status["streams"]
    counters = stream["counters"]
    assert counters["read"] == ends
    assert counters["read"] == counters["accepted"] + counters["dead"] + counters["duplicate"]
    assert counters["dead"] > 0
    dead = side_places(log, "payments.dead")
    assert len(dead) == len(set(dead)) == counters["dead"]
    views = {view["name"]: view["counters"] for view in status["views"]}
    for name, view in views.items():
        assert view["seen"] == counters["accepted"], name
        assert view["seen"] == view["skipped"] + view["dead"] + view["matched"], name
        assert view["pairs"] == view["folded"] + view["late"], name
    late = side_places(log, "per_minute.late")
    assert len(late) == len(set(late)) == views["per_minute"]["late"] > 0
