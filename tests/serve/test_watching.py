"""Edits are noticed while an engine runs, and no file in the folder can stop it.

Method: a folder on disk, and a stand-in for what is served that needs neither Spark nor a store;
the tests look when they like, in this thread.
"""

import logging
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.errors import DefinitionError, Location, Problem, StoreError
from headrace.model.definitions import Project
from headrace.observe.drift import Drift
from headrace.project.config import read_config
from headrace.project.disk import Disk
from headrace.serve.watching import DefinitionsWatch

STREAM = "CREATE STREAM clicks (page STRING) WITH (topic = 'clicks', format = 'json');\n"
VIEW = "CREATE MATERIALIZED VIEW hits AS SELECT page, count(*) AS n FROM clicks GROUP BY page;\n"


class Stand:
    """What is served: a ledger that holds the stream alone."""

    def __init__(self, folder: Path) -> None:
        (folder / "headrace.toml").write_text("")
        (folder / "site.sql").write_text(STREAM)
        self.folder = folder
        self.disk = Disk(read_config(folder))
        self.planned: list[Project] = []
        self.refuses: DefinitionError | None = None
        self.fails: Exception | None = None

    def drift(self) -> Drift | None:
        if self.fails is not None:
            raise self.fails
        try:
            views = self.disk.definitions().views
        except DefinitionError as error:
            return Drift((), tuple(map(str, error.problems)))
        return Drift(tuple(f"view {view.name} new" for view in views)) if views else None

    def plan(self, definitions: Project) -> None:
        """As `Served` does it, with a Spark that refuses."""
        self.planned.append(definitions)
        if self.refuses is not None:
            self.disk.refuse(definitions, self.refuses)
            raise self.refuses


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def watch_of(stand: Stand, stop: threading.Event | None = None, **options: Any) -> DefinitionsWatch:
    event = stop or threading.Event()
    return DefinitionsWatch(cast(Any, stand), event, **{"applies": True, **options})


def look_twice(watch: DefinitionsWatch) -> None:
    """Files are judged when they have stood still for a look."""
    watch._try_look()
    watch._try_look()


def test_names_that_hold_no_definitions_are_not_read(stand: Stand) -> None:
    """An editor's lock is a link to nothing, and its copy may be half of a statement."""
    (stand.folder / ".#site.sql").symlink_to("somebody@host.4711")
    (stand.folder / ".site.sql").write_text("CREATE STR")
    watch = watch_of(stand)
    look_twice(watch)
    assert stand.drift() is None
    assert (watch.take(), watch.pause.is_set()) == (None, False)


@pytest.mark.parametrize("kind", ["folder", "link to nothing", "link to itself"])
def test_a_file_that_cannot_be_read_is_refused_and_the_engine_goes_on(
    stand: Stand, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    watch = watch_of(stand)
    look_twice(watch)
    file = stand.folder / "x.sql"
    if kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("gone" if kind == "link to nothing" else "x.sql")
    with caplog.at_level(logging.WARNING):
        look_twice(watch)
    assert "refused: x.sql:1:1: cannot be read: " in caplog.text
    assert (watch.take(), watch.pause.is_set()) == (None, False)
    if kind == "folder":
        file.rmdir()
    else:
        file.unlink()
    (stand.folder / "site.sql").write_text(STREAM + VIEW)
    look_twice(watch)
    assert watch.pause.is_set()
    assert watch.take() is not None


@pytest.mark.parametrize("error", [StoreError("the store is away"), OSError("too many files")])
def test_a_look_that_fails_is_told_once_and_repeated(
    stand: Stand, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    (stand.folder / "site.sql").write_text(STREAM + VIEW)
    watch = watch_of(stand)
    stand.fails = error
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            watch._try_look()
    assert caplog.text.count(str(error)) == 1
    assert not watch.pause.is_set()
    stand.fails = None
    look_twice(watch)
    assert watch.take() is not None


def test_what_spark_refused_is_refused_until_the_files_change(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    problem = Problem(Location("site.sql", 2, 1), "no function of that name")
    stand.refuses = DefinitionError([problem])
    (stand.folder / "site.sql").write_text(STREAM + VIEW)
    watch = watch_of(stand)
    with caplog.at_level(logging.WARNING):
        look_twice(watch)
    refused = Drift((), (str(problem),))
    assert caplog.text.count(refused.text()) == 1
    assert not watch.pause.is_set()
    look_twice(watch)
    assert stand.drift() == refused  # what status shows, too
    assert len(stand.planned) == 1
    stand.refuses = None
    (stand.folder / "site.sql").write_text(STREAM + VIEW + "-- edited\n")
    assert stand.drift() == Drift(("view hits new",))
    look_twice(watch)
    assert watch.take() is not None


def test_definitions_that_were_edited_meanwhile_are_not_those_that_were_refused(
    stand: Stand,
) -> None:
    old = stand.disk.definitions()
    (stand.folder / "site.sql").write_text(STREAM + VIEW)
    new = stand.disk.definitions()
    stand.disk.refuse(old, DefinitionError([Problem(Location("site.sql", 1, 1), "no")]))
    assert stand.disk.definitions() is new


def test_a_stop_after_edits_is_not_forgotten(stand: Stand) -> None:
    stop = threading.Event()
    watch = watch_of(stand, stop, look_seconds=0.01)
    (stand.folder / "site.sql").write_text(STREAM + VIEW)
    look_twice(watch)
    stop.set()
    watch.start()
    watch.join(10)
    assert watch.take() is not None
    assert watch.pause.is_set()


def test_the_thread_looks_until_it_is_stopped(stand: Stand) -> None:
    stop = threading.Event()
    watch = watch_of(stand, stop, look_seconds=0.01)
    watch.start()
    (stand.folder / "site.sql").write_text(STREAM + VIEW)
    assert watch.pause.wait(10)
    edits = watch.take()
    assert edits is not None
    assert [view.name for view in edits.views] == ["hits"]
    assert not watch.pause.is_set()
    stop.set()
    assert watch.pause.wait(10)
    assert watch.take() is None
