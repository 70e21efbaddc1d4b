"""How late the last records of a stream came, measured at most every few seconds.

Every page of the dashboard that shows a stream asks again and again; a sample is some 20,000
records, read from the log and decoded.
"""

import threading
import time
from typing import Any

from headrace.errors import UsageError
from headrace.log.base import Log
from headrace.model.definitions import Project, Stream
from headrace.observe.lateness import measure_lateness, ranges_of

__all__ = ["LatenessSamples"]

SAMPLED_RECORDS = 20_000
KEPT_SECONDS = 5.0

Json = dict[str, Any]


class LatenessSamples:
    """Samples by stream, each kept for a few seconds. One is taken at a time."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._kept: dict[Stream, tuple[float, Json]] = {}
        self._mutex = threading.Lock()

    def of(self, stream: Stream, project: Project) -> Json:
        """Return a sample of a stream. UsageError: its records are never late, or Spark is needed.

        `histogram` counts records by how late they came; `views` what they lost of the sample.
        """
        _check(stream)
        with self._mutex:
            now = time.monotonic()
            # Of streams that were edited the old ones go.
            self._kept = {
                each: found
                for each, found in self._kept.items()
                if each in project.streams and now < found[0] + KEPT_SECONDS
            }
            if stream not in self._kept:
                self._kept[stream] = (now, self._take(stream, project))
            return self._kept[stream][1]

    def _take(self, stream: Stream, project: Project) -> Json:
        found = measure_lateness(self._log, stream, project.views, last_records=SAMPLED_RECORDS)
        before_us, histogram = 0, []
        for bucket in ranges_of(found) if found.records else ():
            histogram.append(
                {"from_us": before_us, "to_us": bucket.to_us, "records": bucket.records}
            )
            before_us = bucket.to_us
        return {
            "stream": stream.name,
            "delay_us": found.delay_us,
            "sampled_records": found.records,
            "histogram": histogram,
            "views": [
                {"view": each.view, "late": each.late, "pairs": each.pairs} for each in found.views
            ],
        }


def _check(stream: Stream) -> None:
    if stream.event_time is None:
        raise UsageError(f"{stream.name} has no event time, so no record of it is late")
    if stream.eager:
        raise UsageError(
            f"Spark computes the event time of {stream.name}: ask `headrace lateness {stream.name}`"
        )
