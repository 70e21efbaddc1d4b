"""The tree that errors.py draws is the tree there is, and no error of DuckDB leaves the store.

Method: the drawing is parsed and compared with the classes; every public method of a store is
called in ways that make DuckDB fail, and whatever comes out must be one of ours, with its cause.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from headrace import errors
from headrace.errors import HeadraceError, MergeFailed, QueryRefused, StoreError, ViewFailed
from headrace.ledger.following import Followers
from headrace.store.duckdb.errors import translate
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.samples import counts, delta, holding, planned, turn_of


def drawn_tree() -> dict[str, str | None]:
    """Return every class of the drawing with the one that it stands under."""
    tree: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^((?:│   |    )*)(?:├── |└── )?([A-Z]\w+)(?:\s{2,}\S.*)?$", line)
        if match is None or not (line == "HeadraceError" or "── " in line):
            continue
        depth = len(match[1]) // 4 + ("── " in line)
        path[depth:] = [match[2]]
        tree[match[2]] = path[depth - 1] if depth else None
    return tree


def real_tree() -> dict[str, str | None]:
    classes = [
        member
        for _, member in inspect.getmembers(errors, inspect.isclass)
        if issubclass(member, HeadraceError)
    ]
    return {
        found.__name__: None if found is HeadraceError else found.__bases__[0].__name__
        for found in classes
    }


def test_the_tree_that_is_drawn_is_the_tree_there_is() -> None:
    assert drawn_tree() == real_tree()


def test_all_names_everything_that_is_public() -> None:
    public = {
        name
        for name, member in vars(errors).items()
        if inspect.isclass(member) and member.__module__ == errors.__name__
    }
    assert set(errors.__all__) == public
    assert errors.__all__ == sorted(errors.__all__)


def test_every_error_says_which_code_the_command_line_returns() -> None:
    for name in real_tree():
        assert getattr(errors, name).exit_code in (1, 2, 3)


@pytest.mark.parametrize("kind", [MergeFailed, ViewFailed])
def test_an_error_of_a_view_names_it(kind: type[MergeFailed] | type[ViewFailed]) -> None:
    assert kind("it fails", view="hits").view == "hits"


def every_duckdb_error() -> list[type[duckdb.Error]]:
    found, waiting = [], [duckdb.Error]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting += kind.__subclasses__()
    return found


@pytest.mark.parametrize("kind", every_duckdb_error(), ids=lambda kind: kind.__name__)
def test_every_error_of_duckdb_has_a_translation(kind: type[duckdb.Error]) -> None:
    found = translate(kind("text"))
    assert isinstance(found, StoreError)
    assert "text" in str(found)


@pytest.mark.parametrize(
    "text", ["No space left on device", "Disk quota exceeded", "File too large"]
)
def test_a_full_disk_is_told_from_other_failures(text: str) -> None:
    error = duckdb.TransactionException(f'Failed to commit: Could not write file "a": {text}')
    assert isinstance(translate(error), errors.DiskFull)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DuckDBStore]:
    store = DuckDBStore(tmp_path / "store.duckdb")
    yield store
    store.close()


def test_what_duckdb_raises_is_translated_with_its_cause(store: DuckDBStore) -> None:
    table = counts()  # never prepared, so there is no such table
    epoch = store.begin_epoch()
    store.hold(epoch, [holding(table)], {})
    provoked: list[Callable[[], object]] = [
        lambda: store.show(epoch, "main", [table]),
        lambda: store.commit(
            turn_of(planned(epoch, 1), {table: (delta(table, ("a", 1, 1, 1, 1)),)})
        ),
        lambda: store.begin_epoch() and store.published(["not a number"]),  # type: ignore[list-item]
    ]
    for provoke in provoked:
        with pytest.raises(StoreError) as error:
            provoke()
        assert isinstance(error.value.__cause__, duckdb.Error)
    with store.open() as snapshot, pytest.raises(StoreError):
        snapshot.states(table)
    with store.open() as snapshot, pytest.raises(QueryRefused):
        snapshot.query("SELECT 1 // CAST(text AS INTEGER) FROM (VALUES ('x')) t(text)")


def test_a_closed_store_answers_with_our_errors_too(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    table = counts()
    with store.open() as snapshot:
        store.close()
        calls: list[Callable[[], object]] = [
            store.begin_epoch,
            lambda: store.prepare(table),
            lambda: store.hold(1, [], {}),
            lambda: store.journal(planned(1, 1)),
            lambda: store.journalled("main"),
            lambda: store.commit(turn_of(planned(1, 1))),
            lambda: store.show(1, "main", []),
            lambda: store.drop(1, []),
            lambda: store.published([1]),
            lambda: store.seeds("s", "v"),
            lambda: store.open().__enter__(),
            lambda: snapshot.query("SELECT 1"),
            lambda: snapshot.states(table),
            snapshot.holdings,
            snapshot.counters,
            snapshot.units,
            snapshot.outbox,
            snapshot.outbox_records,
            snapshot.state_rows,
            snapshot.manifests,
            snapshot.state_bytes,
            snapshot.sinks,
            snapshot.waiting_changes,
            snapshot.kept_changes,
            snapshot.shown,
            lambda: snapshot.token("v"),
            lambda: store.set_followers(1, Followers(), {}),
            lambda: store.follow("l", "v"),
            lambda: store.unfollow("l"),
            lambda: store.told({"t": 1}),
            lambda: store.begin_publishing([]),
            snapshot.void_markers,
            lambda: snapshot.progress("main"),
            lambda: snapshot.turns("main"),
        ]
        for call in calls:
            with pytest.raises(StoreError):
                call()
    store.close()  # a second time does no harm
