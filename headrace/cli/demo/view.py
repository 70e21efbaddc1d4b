"""What the demo shows: a value taken now and then, as a live view, a line, or a summary."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headrace.cli.demo.project import TOPIC, VIEW
from headrace.cli.text.output import make_table, moment
from headrace.cli.text.overview import percentile
from headrace.observe.status import Status

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["Latencies", "Sight"]

MINUTES_QUERY = (
    f"SELECT strftime(minute AT TIME ZONE 'UTC', '%H:%M'), country, revenue, _closed FROM {VIEW} "
    f"WHERE minute > (SELECT max(minute) FROM {VIEW}) - INTERVAL 8 MINUTES "
    f"ORDER BY minute DESC, country"
)


class Latencies:
    """The milliseconds of the last turns."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=1_000)
        self.turns = 0

    def note(self, milliseconds: float) -> None:
        """Take note of one turn."""
        self._last.append(milliseconds)
        self.turns += 1

    def at(self, share: float) -> float | None:
        """Return the latency that this share of turns stayed within."""
        return percentile(list(self._last), share)


@dataclass(frozen=True)
class Sight:
    """The demo at one moment. Counters are the ledger's, over all runs in this folder."""

    seconds: float
    appended: int
    events_per_second: float
    turns: int
    turn_ms_p50: float | None
    turn_ms_p99: float | None
    status: Status
    minutes: Sequence[tuple[str, str, Decimal, bool]] = ()

    @property
    def late(self) -> int:
        """Late records of all views."""
        return sum(view.counters["late"] for view in self.status.views)

    @property
    def lag_records(self) -> int:
        """Records in the log that no turn has read."""
        return sum(stream.lag_records for stream in self.status.streams)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers."""
        stream = next(each for each in self.status.streams if each.name == TOPIC)
        return {
            "seconds": round(self.seconds, 1),
            "appended": self.appended,
            "events_per_second": round(self.events_per_second),
            "read": stream.counters["read"],
            "dead": stream.counters["dead"],
            "late": self.late,
            "lag_records": self.lag_records,
            "watermark_us": stream.watermark_us,
            "turns": self.turns,
            "turn_ms_p50": self.turn_ms_p50,
            "turn_ms_p99": self.turn_ms_p99,
        }

    def line(self) -> str:
        """Return the moment as one line."""
        found = self.to_json()
        found["watermark"] = moment(found.pop("watermark_us"))
        return " ".join(f"{name}={value}" for name, value in found.items())

    def picture(self) -> "Group":
        """Return the moment as the live view."""
        from rich.console import Group
        from rich.text import Text

        numbers = self.to_json()
        facts = {
            "events/s": numbers["events_per_second"],
            "read": numbers["read"],
            "late": numbers["late"],
            "dead": numbers["dead"],
            "lag": numbers["lag_records"],
            "watermark": moment(numbers["watermark_us"]),
            "p50 ms": numbers["turn_ms_p50"],
            "p99 ms": numbers["turn_ms_p99"],
        }
        title = Text(f"revenue per minute and country, after {self.seconds:.0f} s", style="bold")
        rigid = [name == "watermark" for name in facts]
        table = make_table("", list(facts), [list(facts.values())], rigid=rigid)
        return Group(title, _revenue_table(self.minutes), table, Text("Ctrl-C ends the demo"))


def _revenue_table(minutes: Sequence[tuple[str, str, Decimal, bool]]) -> Any:
    countries = sorted({country for _, country, _, _ in minutes})
    cells: dict[str, dict[str, Decimal]] = {}
    closed: dict[str, bool] = {}
    for minute, country, revenue, is_closed in minutes:
        cells.setdefault(minute, {})[country] = revenue
        closed[minute] = is_closed
    rows = []
    for minute, row in cells.items():
        amounts = [row.get(country, Decimal(0)) for country in countries]
        rows.append([minute, *amounts, sum(amounts), "closed" if closed[minute] else "open"])
    return make_table("", ["minute", *countries, "all", ""], rows)
