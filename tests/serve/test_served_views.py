"""Views of a running engine over HTTP: turns go on while readers read, follow and wait.

Method: the engine of `headrace run --watch` in this process, with real Spark; what readers fold is
compared with what the engine shows at the same commit.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.client import Client
from headrace.engine.reach import Reach
from headrace.engine.running import run_engine
from headrace.engine.spark.session import start_spark
from headrace.log import EmbeddedLog, records
from headrace.project.config import read_config
from headrace.serve.desk import StoreDesk
from headrace.serve.http.app import make_app
from headrace.serve.http.server import serve
from headrace.serve.http.services import Services
from headrace.serve.process import Served
from headrace.sql import parse_project
from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore
from serve.serving import PERMISSIONS, READ
from serve.subscribing import EventSubscriber, Subscriber, folded, shown

pytestmark = pytest.mark.spark

STREAM = "CREATE STREAM clicks (page STRING) WITH (topic = 'clicks');"
PAGES = "CREATE MATERIALIZED VIEW pages AS SELECT page, count(*) AS n FROM clicks GROUP BY page;"
SHARES = """
CREATE MATERIALIZED VIEW shares AS
SELECT page, 6 / (count(*) - 2) AS share FROM clicks GROUP BY page;
"""
WIDER = """
CREATE MATERIALIZED VIEW pages AS
SELECT page, count(*) AS n, max(page) AS last FROM clicks GROUP BY page;
"""


class Running:
    """A served engine that turns in a thread."""

    def __init__(self, folder: Path) -> None:
        (folder / "headrace.toml").write_text("")
        config = read_config(folder)
        self.stop = threading.Event()
        self.log = EmbeddedLog(folder / "log", sync=False)
        self.log.create_topic("clicks", partitions=2)
        self.store: Store = DuckDBStore(folder / "store.duckdb")
        reach = Reach(self.stop, patient=True)
        self.served = Served(config, self.log, self.store, start_spark(), reach)
        self.served.start(parse_project({"a.sql": f"{STREAM}{PAGES}{SHARES}"}), self.stop)
        self.go()

    def go(self) -> None:
        self._pause = threading.Event()
        arguments = (self.served.engine, self._pause)
        self._thread = threading.Thread(target=run_engine, args=arguments)
        self._thread.start()

    def pause(self) -> None:
        self._pause.set()
        self._thread.join()

    def renew(self, definitions: str) -> None:
        """Let other definitions run, as `headrace run --watch` does."""
        self.pause()
        self.served.renew(parse_project({"a.sql": definitions}), self.stop)
        self.go()

    def append(self, *pages: str) -> str:
        """Append clicks, and return the position behind them."""
        values = [f'{{"page": "{page}"}}'.encode() for page in pages]
        done = self.log.append("clicks", records(values))
        return ",".join(f"{each.partition}@{each.end}" for each in done.ranges)

    def close(self) -> None:
        self.pause()
        self.served.close()
        self.store.close()
        self.log.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    running.close()


@pytest.fixture
def url(running: Running) -> Iterator[str]:
    served = running.served
    settings = served.config.settings
    desk = StoreDesk("shop", running.log, running.store, settings, pipelines=list)
    services = Services(
        desk,
        running.log,
        running.store,
        project=lambda: served.engine.project,
        commits=served.commits,
    )
    with serve(make_app(services, PERMISSIONS)) as url:
        yield url


def test_readers_follow_an_engine_that_turns(running: Running, url: str) -> None:
    with Client(url, READ) as client:
        position = running.append("/", "/shop")
        rows = client.rows("pages", where={"page": "/"}, min_position=position, timeout_s=60)
        assert [row["n"] for row in rows] == [1]
        subscribers = [Subscriber(url, "pages"), EventSubscriber(url, "pages")]
        for each in subscribers:
            each.start()
        for number in range(2, 12):  # each click is read as soon as it was appended
            position = running.append("/")
            rows = client.rows("pages", where={"page": "/"}, min_position=position, timeout_s=60)
            assert [row["n"] for row in rows] == [number]
        # An edit that leaves the view alone: another engine goes on, and nobody notices.
        running.renew(f"{STREAM}{PAGES}{SHARES}{PAGES.replace('pages', 'more')}")
        position = running.append("/", "/new", "/new")
        client.rows("pages", min_position=position, timeout_s=60)
        compare(running, subscribers)
        assert [each.resets for each in subscribers] == [1, 1]
        errors = client.rows("shares.errors", min_position=position, timeout_s=60)
        assert [row["page"] for row in errors] == ["/new"]
        # One that gives it another column: they begin anew.
        running.renew(f"{STREAM}{WIDER}{SHARES}")
        deadline = time.monotonic() + 60
        while "last" not in [each["name"] for each in client.rows("pages").columns]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        running.append("/", "/last")
        compare(running, subscribers)
        assert [each.resets for each in subscribers] == [2, 2]
        status = client.status()
        assert {each["name"] for each in status["views"]} >= {"pages", "shares"}
        for each in subscribers:
            each.stop()


def compare(running: Running, subscribers: list[Subscriber]) -> None:
    """Let the engine stand still, and compare what was folded with the view."""
    running.pause()
    commit, rows = shown(running.store, "pages")
    for each in subscribers:
        each.wait_for(commit)
        assert each.at[commit] == rows == folded(each.fold)
    running.go()
