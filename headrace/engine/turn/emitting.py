"""When sinks and readers are told of changes: the engine's side of emission (docs/design.md, Time).

Readers are told of every commit. Sinks:

- `changes`: after every turn that changes something.
- `every`: at most so often by this engine's clock; changes wait in the store meanwhile.
- `final`: after every turn too, of closed rows only.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace.errors import Problem
from headrace.ledger.following import Changed, ChangeLimits, Followers, SinkEntry, SinkState
from headrace.model.definitions import Sink, View
from headrace.project.settings import Settings

__all__ = ["NEVER_US", "Emitting"]

#: Longer than anybody waits.
NEVER_US = 1 << 62


@dataclass
class Emitting:
    """The sinks of a project, and which of them changes wait for; `wall` never goes back."""

    sinks: Sequence[Sink]
    views: Mapping[str, View]
    wall: Callable[[], int]
    _told_us: dict[str, int] = field(default_factory=dict)  # by topic
    _waiting: set[str] = field(default_factory=set)  # topics
    on_commit: Callable[[], None] = lambda: None  # tells readers, before anything is published
    paused: set[str] = field(default_factory=set)  # topics of sinks that are told nothing
    ending: bool = False  # the engine is about to end: every sink is due

    def problems(self, known: Iterable[SinkState]) -> list[Problem]:
        """Return which sinks would go on where rows of another view, mode or key are."""
        told = {state.sink.topic: state.sink for state in known if state.version}
        return [
            Problem(
                sink.location,
                f"sink {sink.name} writes to {sink.topic}, which holds rows of "
                f"{_kind(old.view, old.mode, old.key)}: its readers would take them for rows of "
                f"{_kind(sink.view, sink.mode, sink.key)}; choose another topic",
            )
            for sink in self.sinks
            if (old := told.get(sink.topic)) is not None
            and (old.view, old.mode, old.key) != (sink.view, sink.mode, sink.key)
        ]

    def followers(self, settings: Settings) -> Followers:
        """Return what the store has to know of sinks, and of views that keep their changes."""
        limits = ChangeLimits(
            settings.changes_retention_commits, settings.changes_retention_mb << 20
        )
        sinks = tuple(
            SinkEntry(
                each.name, each.view, each.topic, each.mode, self.views[each.view].emit, each.key
            )
            for each in self.sinks
        )
        always = frozenset(view.name for view in self.views.values() if view.changes == "always")
        return Followers(sinks, always, limits)

    def note_changed(self, changed: Changed) -> None:
        """Note which views a commit changed: their sinks wait, and readers hear of it."""
        self._waiting |= {sink.topic for sink in self.sinks if sink.view in changed}
        self.on_commit()

    def stay_paused(self, known: Iterable[SinkState]) -> None:
        """Let sinks be paused that were, unless they are defined otherwise now."""
        same = set(self.followers(Settings()).sinks)
        self.paused = {each.sink.topic for each in known if each.paused and each.sink in same}

    def resume(self, topic: str) -> None:
        """Let a sink be told what waits for it."""
        self.paused.discard(topic)
        self._waiting.add(topic)

    def due(self) -> set[str]:
        """Return the topics of the sinks that are to be told now."""
        return {
            sink.topic
            for sink in self.sinks
            if sink.topic in self._waiting - self.paused and self._due_in_us(sink) <= 0
        }

    @contextmanager
    def telling(self, topics: Collection[str]) -> Iterator[None]:
        """Let sinks be told within; they wait again if that fails.

        Changes that another unit commits meanwhile wait, be they told already or not.
        """
        self._waiting -= set(topics)
        try:
            yield
        except BaseException:
            self._waiting |= set(topics)
            raise
        self.note_told(topics)

    def note_told(self, topics: Collection[str]) -> None:
        """Note when sinks were told."""
        self._told_us |= dict.fromkeys(topics, self.wall())

    def due_in_us(self) -> int:
        """Return in how long the next sink that changes wait for is to be told."""
        waiting = (sink for sink in self.sinks if sink.topic in self._waiting - self.paused)
        return min(map(self._due_in_us, waiting), default=NEVER_US)

    def _due_in_us(self, sink: Sink) -> int:
        told_us, view = self._told_us.get(sink.topic), self.views[sink.view]
        if view.emit != "every" or told_us is None or self.ending:
            return 0
        return max(0, told_us + view.emit_every_us - self.wall())


def _kind(view: str, mode: str, key: Sequence[str]) -> str:
    return f"{view} in mode '{mode}'" + (f" with the key {', '.join(key)}" if key else "")
