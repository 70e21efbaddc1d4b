"""A served view that changes, for tests of subscriptions; other files have their own fixtures."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import History
from serve.serving import Server, serving


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = DuckDBStore(tmp_path / "store.duckdb")
    yield store
    store.close()


@pytest.fixture
def history(store: Store) -> History:
    history = History(store, "tumbling", random.Random(1))
    for _ in range(5):
        history.turn()
    return history


@pytest.fixture
def start(store: Store, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    with ExitStack() as stack:
        yield lambda **bounds: stack.enter_context(serving(store, tmp_path, **bounds))


@pytest.fixture
def server(history: History, start: Callable[..., Server]) -> Server:
    return start(progress_seconds=0.3)
