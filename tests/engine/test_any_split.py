"""Promise 1, same log, same answer: cuts, gears, interleavings and crashes never show.

Method: random logs (late, dead, null, failing records among them) are appended and turned in
random pieces, in both gears, with crashes at random points; afterwards all tables, sets and
counters equal the reference's, which knows no turns. A mutation shows that the test can fail.
"""

import os
from collections.abc import Mapping
from datetime import datetime

import numpy as np
import pytest
from agreement import assert_agrees_with_the_reference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.engine import stamping
from headrace.engine.settings import Settings
from headrace.testing import harness
from headrace.testing.harness import Value
from headrace.testing.strategies import Append, Script, Turn, play, scripts
from headrace.time.clocks import Stamped

pytestmark = pytest.mark.spark

CASES = int(os.environ.get("HEADRACE_CASES", "200"))
STREAM = """
CREATE STREAM events (
  id STRING NOT NULL, k STRING, x BIGINT, amount DECIMAL(10,2), f DOUBLE, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'events', format = 'json');
"""
VIEWS = {
    "windowed": """
CREATE MATERIALIZED VIEW windowed WITH (allowed_lateness = '10 seconds') AS
SELECT window.start AS start, k, count(*) AS n, count(x) AS xs, sum(x) AS total, min(x) AS low,
  sum(amount) AS amount, avg(amount) AS mean, max(id) AS last
FROM events WHERE x IS NULL OR x <> 3 GROUP BY window(ts, '10 seconds'), k;
""",
    "totals": """
CREATE MATERIALIZED VIEW totals AS
SELECT upper(k) AS k, count(*) AS n, sum(f) AS f, avg(x) AS x, 100 / sum(x * x + 1) AS share
FROM events GROUP BY upper(k) HAVING count(*) > 1;
""",
    "ratios": """
CREATE MATERIALIZED VIEW ratios AS SELECT id, ts, 100 / x AS share FROM events WHERE x < 50;
""",
}
ANY_SPLIT = settings(
    deadline=None,
    max_examples=CASES,
    derandomize="HEADRACE_CASES" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def values(event_time: datetime) -> st.SearchStrategy[Value]:
    """Draw records that are mostly readable; some are broken, some break an expression."""
    ids = st.integers(0, 999).map(str)
    good = st.fixed_dictionaries(
        {"id": ids, "ts": st.just(event_time.isoformat())},
        optional={
            "k": st.sampled_from(["a", "b", "", "é", None]),
            "x": st.sampled_from([0, 1, 2, 3, -7, 49, 50, 2**62, -(2**62), "12"]),
            "amount": st.sampled_from(["1.10", 2.5, -3, None]),
            "f": st.floats(-1e6, 1e6),
        },
    )
    broken: list[Value] = ["{", b"\xff", None, '{"id": 1}', '{"id": "1", "ts": "soon"}', "[]"]
    return st.one_of(good, good, good, good, st.sampled_from(broken))


def check(script: Script, views: tuple[str, ...], split_folds: int = 1) -> None:
    definitions = STREAM + "".join(VIEWS[name] for name in views)
    chosen = Settings(split_folds=split_folds)
    with harness(definitions, partitions=2, settings=chosen) as h:
        play(h, "events", script)
        assert_agrees_with_the_reference(h)


@ANY_SPLIT
@given(
    script=scripts(values),
    views=st.sampled_from([*((name,) for name in VIEWS), tuple(VIEWS)]),
    split_folds=st.integers(1, 2),
)
def test_the_cut_into_turns_never_shows(
    script: Script, views: tuple[str, ...], split_folds: int
) -> None:
    check(script, views, split_folds)


def test_a_clock_per_turn_instead_of_per_record_would_be_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stamp_per_turn(
        event_times: np.ndarray, arrivals: np.ndarray, readable: np.ndarray, clock_us: int
    ) -> Stamped:
        honest = stamping_stamp(event_times, arrivals, readable, clock_us)
        return Stamped(np.full_like(honest.clocks_us, clock_us), honest.end_clock_us)

    stamping_stamp = stamping.stamp
    monkeypatch.setattr(stamping, "stamp", stamp_per_turn)

    def at(second: int) -> Mapping[str, object]:
        return {"id": "1", "ts": f"2026-01-01T12:{second // 60:02d}:{second % 60:02d}Z"}

    def arrive(second: int) -> datetime:
        return datetime.fromisoformat(str(at(second)["ts"]))

    # The second record closes the first one's window; the third comes too late for it.
    log = [Append(0, at(second), arrive(second + 1)) for second in (1, 100, 2)]
    with pytest.raises(AssertionError):
        check([*log, Turn(None, "short")], ("windowed",))
    # Cut between the records, even the wrong clock is right: only cuts that differ show it.
    check([step for record in log for step in (record, Turn(None, "short"))], ("windowed",))
