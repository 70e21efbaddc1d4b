"""`headrace init`: a project that runs as it is, with records to try it on, to be changed."""

import json as json_module
import random
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.text.output import JsonOption, show_json, show_text
from headrace.errors import UsageError

__all__ = ["init", "write_files"]

TOML = """\
[project]
name = "{name}"

[log]
kind = "embedded"
# path = ".headrace/log"

[store]
kind = "duckdb"
# path = ".headrace/store.duckdb"

# [engine]
# target_ms = 100            # how long a live turn should take
# max_turn_records = 4000000

# [spark]
# master = "local[*]"
# "spark.driver.memory" = "4g"

# [serve]
# port = 0                   # of the engine's HTTP API on 127.0.0.1; 0 is any free one
"""

SQL = """\
-- A stream is a topic read through a schema. A record that does not fit goes to `payments.dead`.
CREATE STREAM payments (
  id STRING NOT NULL,
  card STRING NOT NULL,
  amount DECIMAL(12,2),
  country STRING,
  ts TIMESTAMP NOT NULL,
  -- Phones send out of order: windows stay open this much longer than the newest record says.
  WATERMARK FOR ts AS ts - INTERVAL 30 SECONDS
) WITH (topic = 'payments', format = 'json', key = 'card');

-- A view is a query that is kept up to date. What comes later than this goes to
-- `spend_per_minute.late`.
CREATE MATERIALIZED VIEW spend_per_minute
WITH (allowed_lateness = '10 minutes') AS
SELECT window.start AS minute, country, count(*) AS n, sum(amount) AS total
FROM payments
GROUP BY window(ts, '1 minute'), country;
"""

GITIGNORE = ".headrace/\nspark-warehouse/\n"

SAMPLE = "payments.jsonl"
SAMPLE_RECORDS = 300
_QUERY = "FROM spend_per_minute ORDER BY minute, country LIMIT 5"


def sample_payments() -> Iterator[dict[str, object]]:
    """Yield the same payments each time: some twenty minutes of a shop, one dead, one late."""
    draw = random.Random(1)
    ts = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for number in range(SAMPLE_RECORDS):
        ts += timedelta(milliseconds=draw.randrange(500, 8_000))
        # Phones send a little later than they are paid with.
        sent = ts - timedelta(seconds=draw.choice((0, 0, 0, 2, 5, 20)))
        amount = f"{draw.lognormvariate(2.5, 0.8):.2f}"
        if number == 150:
            amount += "9"  # three decimals: no DECIMAL(12,2), so the record is dead
        if number == SAMPLE_RECORDS - 5:
            sent = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)  # of a window that is long over
        yield {
            "id": f"p{number:04d}",
            "card": f"card-{draw.randrange(12):02d}",
            "amount": amount,
            "country": draw.choice(("DE", "DE", "FR", "IT", "AT", None)),
            "ts": sent.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }


def next_steps(folder: Path) -> list[str]:
    """Return the commands that show the new project run, to be pasted one after the other."""
    enter = [] if folder.absolute() == Path.cwd() else [f"cd {shlex.quote(str(folder))}"]
    return [
        *enter,
        f"headrace append payments {SAMPLE}",
        "headrace run --once",
        f'headrace sql "{_QUERY}"',
        "headrace tail spend_per_minute.late",
        "headrace tail payments.dead",
        "headrace status",
    ]


def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to; here.")] = Path(),
    json: JsonOption = False,
) -> None:
    """Make a project: headrace.toml, an example of definitions, records for it, .gitignore."""
    name = folder.absolute().name.replace("\\", "").replace('"', "") or "project"
    files = {
        "headrace.toml": TOML.format(name=name),
        "payments.sql": SQL,
        SAMPLE: "".join(f"{json_module.dumps(each)}\n" for each in sample_payments()),
        ".gitignore": GITIGNORE,
    }
    steps = next_steps(folder)
    write_files(folder, files)
    if json:
        made = {"project": name, "folder": str(folder.absolute()), "files": list(files)}
        show_json({**made, "next": steps})
        return
    show_text(f"made {', '.join(files)} in {folder.absolute()}")
    show_text("\nsee it run:\n")
    for step in steps:
        show_text(f"  {step}")
    show_text(
        "\nThen edit payments.sql, and let `headrace run --watch` keep the views up to date.\n"
        "`headrace sql` alone is a prompt; `headrace --help` lists the commands."
    )


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write new files into a folder. UsageError: one is there already; then none is written."""
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise UsageError(
            f"{folder.absolute()}: {', '.join(there)} {'is' if len(there) == 1 else 'are'} there "
            f"already and stay as they are. Choose another folder: `headrace init DIR`."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (folder / name).open("x") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(f"{folder.absolute()}: cannot be written: {error}") from error
