"""A served log without an engine, for tests of topics over HTTP."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from headrace.log import EmbeddedLog
from headrace.log.base import Log
from headrace.log.records import records
from headrace.model.definitions import Project
from headrace.project.settings import Settings
from headrace.serve.desk import StoreDesk
from headrace.serve.http.app import make_app
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.serve.http.server import serve
from headrace.serve.http.services import Services
from headrace.serve.tailing.following import TailLimits, Tails
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore

TOKENS = {"admin": Role.ADMIN, "reader": Role.READ, "producer": Role.INGEST}
LINES = "application/x-ndjson"
SHOP = """
CREATE STREAM payments (
    id BIGINT NOT NULL, card STRING, ts TIMESTAMP NOT NULL,
    WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (topic = 'payments', format = 'json', key = 'card');
CREATE STREAM clicks (page STRING) WITH (topic = 'clicks', format = 'json');
CREATE STREAM refunds (id BIGINT, card STRING) WITH (topic = 'both', format = 'json', key = 'card');
CREATE STREAM returns (id BIGINT, shop STRING) WITH (topic = 'both', format = 'json', key = 'shop');
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n FROM payments GROUP BY window(ts, '1 minute');
"""


class Served:
    """A client of a served log."""

    def __init__(self, url: str, log: Log, tails: Tails) -> None:
        self.url = url
        self.log = log
        self.tails = tails

    def append(
        self, topic: str, body: bytes | str, *, type_: str = "application/json", **more: Any
    ) -> httpx.Response:
        """Append a body; `more` are parameters, and `headers`."""
        headers = {"Content-Type": type_, **more.pop("headers", {})}
        return self.ask("POST", f"/v1/topics/{topic}", content=body, headers=headers, params=more)

    def ask(self, method: str, path: str, *, token: str = "admin", **more: Any) -> httpx.Response:
        """Send a request."""
        headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})}
        return httpx.request(
            method, self.url + path, headers=headers, timeout=30, trust_env=False, **more
        )

    def values(self, topic: str) -> list[str]:
        """Return the values of all records of a topic, by partition and offset."""
        return [record["value"] for record in self.records(topic)]

    def records(self, topic: str) -> list[dict[str, Any]]:
        """Return all records of a topic, by partition and offset."""
        found: list[dict[str, Any]] = []
        after = ",".join(
            f"{place}@{extent.first_offset}" for place, extent in self.log.extents(topic).items()
        )
        while True:
            answer = self.ask("GET", f"/v1/topics/{topic}/records", params={"after": after})
            page = answer.json()
            if not page["records"]:
                return sorted(found, key=lambda each: (each["partition"], each["offset"]))
            found += page["records"]
            after = page["position"]


@contextmanager
def serving(
    folder: Path, *, limits: TailLimits | None = None, sync: bool = False
) -> Iterator[Served]:
    """Serve an embedded log in a folder, whose topics are made if they are missing."""
    with closing(EmbeddedLog(folder / "log", sync=sync)) as log:
        known = {topic.name for topic in log.topics()}
        for topic, partitions in (("payments", 4), ("clicks", 2), ("both", 1)):
            if topic not in known:
                log.create_topic(topic, partitions=partitions)
        with serving_log(folder, log, limits=limits) as served:
            yield served


@contextmanager
def serving_log(folder: Path, log: Log, *, limits: TailLimits | None = None) -> Iterator[Served]:
    """Serve a log."""
    project: Project = parse_project({"shop.sql": SHOP})
    with closing(DuckDBStore(folder / "store.duckdb")) as store:
        desk = StoreDesk("shop", log, store, Settings(), pipelines=list)
        services = Services(desk, log, store, project=lambda: project)
        grants = [TokenGrant.of(token, Grant(token, role)) for token, role in TOKENS.items()]
        app = make_app(services, Permissions(grants))
        app.state.tails = Tails(log, limits)
        with serve(app) as url:
            yield Served(url, log, app.state.tails)


def put(served: Served, *values: str | bytes, partition: int = 0, topic: str = "clicks") -> None:
    served.log.append(topic, records(list(values)), partition=partition)


def read(served: Served, path: str = "/v1/topics/clicks/records", **params: Any) -> dict[str, Any]:
    answer = served.ask("GET", path, params=params, token="reader")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
