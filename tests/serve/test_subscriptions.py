"""What a subscriber folded is the view, at every commit that it is told of: no gap, no repeat.

Method: random turns and swaps of a view of every placement behind the real server; commits that
crash; stores that are opened again and servers that start anew on the same port; real clients, by
WebSocket and by server-sent events, that are cut off, leave and come back with their tokens.
"""

import random
import time
from pathlib import Path

import pytest
from soaking import SOAKING, seeded, times

from headrace import faults
from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import PLACEMENTS, History
from serve.serving import Server, serving
from serve.subscribing import EventSubscriber, Rows, Subscriber, shown

STEPS = 30 if SOAKING else 17


class Play:
    """A history, its server, and what the view was at every commit."""

    def __init__(self, folder: Path, kind: str, draw: random.Random) -> None:
        self.folder = folder
        self.draw = draw
        self.store: Store = DuckDBStore(folder / "store.duckdb")
        self.history = History(self.store, kind, draw)
        for _ in range(3):
            self.history.turn()
        self.at: dict[int, Rows] = {}
        self.note()
        self.serve(0)

    def serve(self, port: int) -> None:
        bounds = {
            "progress_seconds": 0.5,
            "page_rows": self.draw.choice([2, 7, 1_000]),
            "ring_bytes": self.draw.choice([5_000, 8 << 20]),
        }
        self._serving = serving(self.store, self.folder, port=port, **bounds)
        self.server: Server = self._serving.__enter__()

    def note(self) -> None:
        """Note what the view is; commits on the way to here changed nothing."""
        commit, rows = shown(self.store)
        before = max(self.at, default=commit)
        for each in range(before + 1, commit):
            self.at[each] = self.at[before]
        self.at[commit] = rows

    def restart(self) -> None:
        port = int(self.server.url.rpartition(":")[2])
        self.stop()
        self.store = DuckDBStore(self.folder / "store.duckdb")
        self.history.reopen(self.store)
        self.serve(port)

    def stop(self) -> None:
        self._serving.__exit__(None, None, None)
        self.store.close()

    def step(self) -> None:
        event = self.draw.random()
        if event < 0.06:
            self.restart()
        elif event < 0.14:
            self.history.swap(wide=self.draw.random() < 0.5)
        elif event < 0.2:
            faults.arm("before_commit")
            with pytest.raises(faults.Crash):
                self.history.turn()
            faults.disarm()
            self.history.take_back()
        else:
            self.history.turn()
        self.note()
        self.server.commits.note()


def play(folder: Path, kind: str, draw: random.Random) -> None:
    folder.mkdir()
    game = Play(folder, kind, draw)
    kinds = (Subscriber, EventSubscriber)
    subscribers = [draw.choice(kinds)(game.server.url) for _ in range(3)]
    try:
        for each in subscribers:
            each.start()
        for _ in range(STEPS):
            game.step()
            if draw.random() < 0.2:
                draw.choice(subscribers).leave(draw.choice([0.0, 0.2, 1.0]))
            if draw.random() < 0.3:
                time.sleep(draw.choice([0.01, 0.05]))
            if draw.random() < 0.1:
                subscribers.append(draw.choice(kinds)(game.server.url))
                subscribers[-1].start()
        last = max(game.at)
        for each in subscribers:
            each.wait_for(last)
        for each in subscribers:
            for commit, rows in each.at.items():
                assert rows == game.at[commit], (commit, each)
    finally:
        faults.disarm()
        for each in subscribers:
            each.stop()
        game.stop()


@pytest.mark.soak
@pytest.mark.parametrize("kind", PLACEMENTS)
def test_what_is_folded_is_the_view_at_every_commit_told(tmp_path: Path, kind: str) -> None:
    for number in range(times(1)):
        draw = random.Random(f"{seeded(number).random()} {kind}")
        play(tmp_path / str(number), kind, draw)
