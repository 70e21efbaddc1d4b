"""How the definitions on disk differ from those that the ledger holds, and so from what runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.errors import DefinitionError
from headrace.ledger.definitions import hold_stream, hold_view, stream_of, view_of
from headrace.ledger.entries import MAIN, Holding
from headrace.ledger.following import SinkState
from headrace.model.definitions import Project
from headrace.project.config import FILE
from headrace.project.disk import Disk
from headrace.store.base import Snapshot

__all__ = ["RESTART", "Drift", "find_drift"]

CONFIG_EDITED = f"{FILE} edited"
RESTART = (
    f"restart the engine to apply this; `--watch` does not remove definitions or reload {FILE}"
)


@dataclass(frozen=True)
class Drift:
    """What was edited since the engine took the definitions over.

    `changed` has lines such as "view hits edited". With `problems` the files are refused.
    """

    changed: tuple[str, ...]
    problems: tuple[str, ...] = ()

    @property
    def needs_restart(self) -> bool:
        """Whether an engine that watches does not apply it.

        Settings are read once. And a table is not dropped for a file that an editor, or a full
        disk, may have left half empty.
        """
        return any(each == CONFIG_EDITED or each.endswith(" removed") for each in self.changed)

    def text(self) -> str:
        """Return the difference as the beginning of a sentence."""
        if self.problems:
            more = len(self.problems) - 1
            others = f" (and {more} more problem{'' if more == 1 else 's'})" if more else ""
            return f"definitions on disk are refused: {self.problems[0]}{others}"
        return f"definitions on disk differ ({', '.join(self.changed)})"


def find_drift(disk: Disk, snapshot: Snapshot) -> Drift | None:
    """Return how the files differ from the ledger, None if they do not.

    What no answer depends on, such as a comment, is no difference.
    """
    try:
        project = disk.definitions()
    except DefinitionError as error:
        return Drift((), tuple(map(str, error.problems)))
    # A table has two holdings, a stream of changes and a view: report it once.
    changed = [*dict.fromkeys(_changed(project, snapshot.holdings()))]
    changed += _changed_sinks(project, snapshot.sinks())
    if disk.config_differs():
        changed.append(CONFIG_EDITED)
    return Drift(tuple(changed)) if changed else None


def _changed(project: Project, holdings: Sequence[Holding]) -> Iterator[str]:
    wanted = [hold_stream(stream, MAIN) for stream in project.streams]
    wanted += [hold_view(view, project.streams_of(view), MAIN) for view in project.views]
    held = {holding.owner: holding for holding in holdings}
    names = {(holding.kind, holding.name) for holding in holdings}
    for new in wanted:
        old = held.get(new.owner)
        if old is None or old.forms != new.forms:
            word = "edited" if (new.kind, new.name) in names else "new"
            yield f"{_called(new)} {word}"
    kept = {(new.kind, new.name) for new in wanted}
    removed = {_called(old): None for old in holdings if (old.kind, old.name) not in kept}
    yield from (f"{called} removed" for called in removed)


def _called(holding: Holding) -> str:
    """Return what people call it: a stream that is written is kept as a view."""
    is_view = holding.kind == "view"
    kind = view_of(holding).kind if is_view else stream_of(holding, holding.name).kind
    return f"{kind} {holding.name}"


def _changed_sinks(project: Project, known: Sequence[SinkState]) -> Iterator[str]:
    entries = [state.sink for state in known]
    old = {each.name: (each.view, each.topic, each.mode, each.key) for each in entries}
    new = {each.name: (each.view, each.topic, each.mode, each.key) for each in project.sinks}
    for name in new:
        if old.get(name) != new[name]:
            yield f"sink {name} {'edited' if name in old else 'new'}"
    yield from (f"sink {name} removed" for name in old if name not in new)
