"""The demo's project: payments and page views of a market, and views worth looking at."""

import re
import secrets
from pathlib import Path

from headrace.cli.init import GITIGNORE, write_files
from headrace.errors import UsageError
from headrace.log.opening import KafkaPlace
from headrace.project.config import FILE
from headrace.project.folder import OpenProject, open_project

__all__ = ["TOPIC", "VIEW", "open_demo"]

TOPIC = "payments"
VIEW = "revenue_per_minute"

_TOML = '[project]\nname = "demo"\n'
# Every demo has topics of its own: its store knows nothing of what another one appended.
_KAFKA = """
[log]
kind = "kafka"
prefix = "headrace-demo-{token}."

[log.client]
"bootstrap.servers" = "{servers}"
"""
_SQL = f"""\
CREATE STREAM payments (
  id STRING NOT NULL,
  card STRING NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  country STRING NOT NULL,
  shop STRING NOT NULL,
  ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS
) WITH (topic = '{TOPIC}', format = 'json', key = 'card');

-- Phones that come out of a tunnel later than this are in revenue_per_minute.late.
CREATE MATERIALIZED VIEW {VIEW}
WITH (allowed_lateness = '1 minute') AS
SELECT window.start AS minute, country, count(*) AS payments, sum(amount) AS revenue
FROM payments
GROUP BY window(ts, '1 minute'), country;

CREATE MATERIALIZED VIEW countries AS
SELECT country, count(*) AS payments, sum(amount) AS revenue, avg(amount) AS average,
  max(amount) AS largest
FROM payments
GROUP BY country;

-- A leaderboard: SELECT * FROM shops ORDER BY revenue DESC.
CREATE MATERIALIZED VIEW shops AS
SELECT shop, count(*) AS payments, sum(amount) AS revenue, avg(amount) AS average
FROM payments
GROUP BY shop;

-- Cards that pay many times within a minute, or in several countries.
CREATE MATERIALIZED VIEW suspicious_cards
WITH (allowed_lateness = '1 minute', retention = '1 hour') AS
SELECT window.start AS minute, card, count(*) AS payments, count(DISTINCT country) AS countries,
  sum(amount) AS total
FROM payments
GROUP BY window(ts, '1 minute'), card
HAVING count(*) >= 6 OR count(DISTINCT country) >= 3;

CREATE STREAM page_views (
  visitor STRING NOT NULL,
  page STRING NOT NULL,
  ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS
) WITH (topic = 'page_views', format = 'json', key = 'visitor');

-- A visit ends when its visitor has looked at no page for 20 seconds.
CREATE MATERIALIZED VIEW visits WITH (retention = '10 minutes') AS
SELECT visitor, window.start AS began, window.end AS ended, count(*) AS pages
FROM page_views
GROUP BY session_window(ts, '20 seconds'), visitor;
"""


def open_demo(folder: Path, kafka: str | None) -> OpenProject:
    """Open the demo's project, made if it is missing, its log on Kafka if servers are given.

    UsageError: something else is there, or a demo with another log.
    """
    if kafka is not None and not re.fullmatch(r"[\w.:,\[\]-]+", kafka):
        raise UsageError(f"--kafka {kafka}: write host:port, or several with commas between them")
    if not (folder / FILE).exists():
        if folder.exists() and any(folder.iterdir()):
            raise UsageError(
                f"{folder.absolute()}: not empty, and no demo. Choose another folder with --dir."
            )
        toml = _TOML
        if kafka is not None:
            toml += _KAFKA.format(token=secrets.token_hex(4), servers=kafka)
        write_files(folder, {FILE: toml, "shop.sql": _SQL, ".gitignore": GITIGNORE})
    opened = open_project(folder.absolute())
    place = opened.config.log
    servers = place.client["bootstrap.servers"] if isinstance(place, KafkaPlace) else None
    if servers != kafka:
        raise UsageError(
            f"{folder.absolute()}: this demo's log is {place}. Leave --kafka as it was, or choose "
            f"another folder with --dir."
        )
    topics = {stream.topic for stream in opened.definitions.streams}
    views = {view.name for view in opened.definitions.views}
    if TOPIC not in topics or VIEW not in views:
        raise UsageError(
            f"{folder.absolute()}: a project without the demo's topic {TOPIC} and view {VIEW}. "
            f"Choose another folder with --dir."
        )
    return opened
