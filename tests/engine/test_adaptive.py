"""An adaptive delay is learnt from what came, acts through the log, and is the same in a replay.

Method: records with a lateness that is known by hand; the late sets that follow from the delay at
each time; then a replay of the same log, which learns nothing and reads the markers.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from agreement import assert_agrees_with_the_reference
from typer.testing import CliRunner

from headrace.cli.main import app
from headrace.errors import Unreachable
from headrace.observe.lateness import measure_lateness, ranges_of
from headrace.sinks import outbox
from headrace.testing import Harness, harness

CLICKS = """
CREATE STREAM clicks (ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ADAPTIVE (0.9, MAX INTERVAL 1 MINUTE)) WITH (topic = 'clicks');
CREATE MATERIALIZED VIEW per_second AS
SELECT window.start AS second, count(*) AS n FROM clicks GROUP BY window(ts, '1 second');
"""
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def send(h: Harness, seconds: list[float], partition: int = 0) -> None:
    values = [{"ts": at(each)} for each in seconds]
    h.append("clicks", values, partition=partition, arrival=at(max(seconds)))


def delays(h: Harness) -> list[float]:
    """Return the delays that were learnt, in seconds."""
    values = [json.loads(row["value"]) for row in h.topic("headrace.time")]
    return [value["delay_us"] / 1_000_000 for value in values if value.get("why") == "learnt"]


def out_of_reach(*_: object) -> int:
    raise Unreachable("the broker is away")


def turn_all(h: Harness) -> None:
    while h.turn():
        pass


@pytest.mark.spark
def test_a_delay_shrinks_and_grows_with_what_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with harness(CLICKS, partitions=2) as h:
        # A hundred seconds; every tenth record comes two seconds behind.
        for second in range(100):
            send(h, [second, second - 2] if second % 10 == 9 else [second])
            send(h, [second], partition=1)
        h.append("clicks", ["{"], partition=1)
        with monkeypatch.context() as patch:
            patch.setattr(outbox, "publish_entry", out_of_reach)
            with pytest.raises(Unreachable):
                h.turn()  # it is committed and cannot publish: what it saw counts all the same
        h.engine.publish()
        turn_all(h)
        assert delays(h) == [0.0]  # nine of ten come in time
        send(h, [200])
        send(h, [198], partition=0)
        send(h, [200], partition=1)
        turn_all(h)
        assert [row["ts"] for row in h.late("per_second")] == [at(198)]
        # From now on all of one partition come five seconds behind: the delay grows at once.
        for second in range(200, 400):
            send(h, [second, second - 5, second - 5])
            if second % 50 == 49:
                h.wall("+2 seconds")
                turn_all(h)
        turn_all(h)
        grown = delays(h)
        assert 5 <= grown[-1] <= 5.5
        late = len(h.late("per_second"))
        send(h, [396.5])
        turn_all(h)
        assert len(h.late("per_second")) == late
        assert_agrees_with_the_reference(h)
        rows, markers = h.rows("per_second", meta=True), len(h.topic("headrace.time"))
        for begun, gear in enumerate(("short", "long"), 1):
            h.lose_store()
            h.restart()
            while h.turn(gear=gear):
                pass
            assert len(h.topic("headrace.time")) == markers + begun  # a new engine has begun
            assert sorted(map(str, h.rows("per_second", meta=True))) == sorted(map(str, rows))
            assert len(h.late("per_second")) == late
            h.audit()


@pytest.mark.spark
def test_no_delay_is_longer_than_allowed() -> None:
    with harness(CLICKS, partitions=1) as h:
        for second in range(0, 4000, 10):
            send(h, [second, second - 500, second - 500])
        turn_all(h)
        assert delays(h) == []  # it begins with the longest
        assert h.engine.units["main"].progress["clicks", 0].clock.delay_us == 60_000_000


@pytest.mark.spark
def test_lateness_is_told_from_the_log() -> None:
    with harness(CLICKS, partitions=2) as h:
        send(h, [0, 10, 20, 15, 20, 19.5, 20])
        send(h, [100], partition=1)
        h.append("clicks", ["{"], partition=1)
        told: list[tuple[int, int]] = []
        [stream] = h.project.streams
        found = measure_lateness(h.log, stream, on_progress=lambda *each: told.append(each))
        assert (found.records, found.dead, found.unguarded) == (8, 1, 0)
        assert told[-1] == (9, 9)
        assert [each.records for each in found.buckets] == [6, 1, 1]
        assert sum(each.records for each in ranges_of(found)) == 8
        assert ranges_of(found)[0].records == 6
        assert ranges_of(found)[-1].records == 1
        behind = {each.delay_us: each.behind for each in found.delays}
        assert behind[0] == 2
        assert behind[60_000_000] == 0
        longest = max(delay for delay in behind if delay < 60_000_000)
        assert 5_000_000 <= longest <= 5_500_001
        assert behind[longest] == 0


def test_the_command_shows_a_histogram_and_what_delays_do(tmp_path: Path) -> None:
    run = CliRunner().invoke
    folder = str(tmp_path / "shop")
    assert run(app, ["init", folder]).exit_code == 0
    Path(folder, "time.sql").write_text(CLICKS)
    lines = "\n".join(json.dumps({"ts": at(s).isoformat()}) for s in (0, 10, 9, 11, 12, 11.9))
    sent = run(app, ["append", "clicks", "--project", folder], input=lines)
    assert sent.exit_code == 0, sent.output
    shown = run(app, ["lateness", "clicks", "--project", folder])
    assert shown.exit_code == 0, shown.output
    assert "clicks: 6 records" in shown.stdout
    assert "in time" in shown.stdout
    assert "█" in shown.stdout
    assert "late pairs of record and window in each view, by delay" in shown.stdout
    found = json.loads(run(app, ["lateness", "clicks", "--project", folder, "--json"]).stdout)
    assert found["records"] == 6
    assert sum(bucket["records"] for bucket in found["buckets"]) == 6
    assert {each["delay_us"] for each in found["delays"]} >= {0, 60_000_000}
