"""Definitions on disk are compared with those that the ledger holds; what changes no answer is not.

Method: a store whose ledger holds the definitions of a folder, then edits of its files.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.engine.versions.changes import decide_changes
from headrace.errors import DefinitionError, Location, Problem
from headrace.ledger.entries import MAIN
from headrace.ledger.following import Followers, SinkEntry
from headrace.log import EmbeddedLog
from headrace.observe.drift import Drift, find_drift
from headrace.project.config import read_config
from headrace.project.disk import Disk
from headrace.project.settings import Settings
from headrace.serve.desk import StoreDesk
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore

STREAM = """
CREATE STREAM clicks (page STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts)
WITH (topic = 'clicks', format = 'json');
"""
VIEW = "CREATE MATERIALIZED VIEW hits AS SELECT page, count(*) AS n FROM clicks GROUP BY page;\n"
SINK = "CREATE SINK told FROM hits WITH (topic = 'hits-out');\n"
WRITTEN = (
    "CREATE STREAM loud WITH (topic = 'loud') AS SELECT upper(page) AS page, ts FROM clicks;\n"
)
ALL = STREAM + VIEW + SINK

Look = Callable[[str], Drift | None]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Return what writes other definitions into the folder and looks at them."""
    (tmp_path / "headrace.toml").write_text('[project]\nname = "site"\n')
    disk = Disk(read_config(tmp_path))
    store = DuckDBStore(tmp_path / "store.duckdb")
    epoch = store.begin_epoch()
    entered = decide_changes(parse_project({"site.sql": ALL}), []).enter
    store.hold(epoch, entered, {MAIN: {}})
    told = SinkEntry("told", "hits", "hits-out", "upsert")
    store.set_followers(epoch, Followers((told,)), {})

    def write_and_look(text: str) -> Drift | None:
        (tmp_path / "site.sql").write_text(text)
        with store.open() as snapshot:
            return find_drift(disk, snapshot)

    return write_and_look


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (ALL, None),
        ("-- a comment\n" + ALL.replace("count(*)", "COUNT( * )"), None),
        (ALL + WRITTEN, ("stream loud new",)),
        (ALL.replace("count(*)", "count(ts)"), ("view hits edited",)),
        (ALL.replace("ts AS ts)", "ts AS ts - INTERVAL 1 SECOND)"),
         ("stream clicks edited", "view hits edited")),
        (STREAM, ("view hits removed", "sink told removed")),
        (ALL.replace("hits-out", "other"), ("sink told edited",)),
        (STREAM + VIEW + SINK.replace("told", "heard"), ("sink heard new", "sink told removed")),
    ],
)  # fmt: skip
def test_edits_are_named(look: Look, text: str, changed: tuple[str, ...] | None) -> None:
    drift = look(text)
    assert drift == (None if changed is None else Drift(changed))
    if drift is not None:
        assert drift.text() == f"definitions on disk differ ({', '.join(changed or ())})"
    assert look(ALL) is None  # edited back


def test_nonsense_is_refused_with_its_first_problem(look: Look) -> None:
    drift = look(ALL.replace("page, count", "pag, count"))
    assert drift is not None
    assert drift.text().startswith("definitions on disk are refused: site.sql:4:41: clicks has no")
    assert look("") == Drift(("stream clicks removed", "view hits removed", "sink told removed"))


def test_settings_are_compared_too(look: Look, tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text('[project]\nname = "site"\n[engine]\ntarget_ms = 5\n')
    assert look(ALL) == Drift(("headrace.toml edited",))
    (tmp_path / "headrace.toml").write_text("[engine")
    assert look(ALL) == Drift(("headrace.toml edited",))


def test_what_spark_refused_is_told_by_status_as_problems(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text("")
    (tmp_path / "site.sql").write_text(ALL)
    disk = Disk(read_config(tmp_path))
    problem = Problem(Location("site.sql", 4, 1), "view hits: no function of that name")
    disk.refuse(disk.definitions(), DefinitionError([problem]))
    store, log = DuckDBStore(tmp_path / "store.duckdb"), EmbeddedLog(tmp_path / "log")
    desk = StoreDesk("site", log, store, Settings(), pipelines=list, disk=disk)
    assert desk.status()["definitions"] == {"changed": (), "problems": (str(problem),)}
    (tmp_path / "site.sql").write_text(ALL + "-- edited\n")
    assert desk.status()["definitions"]["problems"] == ()
    store.close()
    log.close()
