"""`headrace init`: a project that runs as it is, to be changed."""

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.output import JsonOption, show_json, show_text
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


def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to; here.")] = Path(),
    json: JsonOption = False,
) -> None:
    """Make a project: headrace.toml, an example of definitions, .gitignore."""
    name = folder.absolute().name.replace("\\", "").replace('"', "") or "project"
    files = {
        "headrace.toml": TOML.format(name=name),
        "payments.sql": SQL,
        ".gitignore": GITIGNORE,
    }
    write_files(folder, files)
    if json:
        show_json({"project": name, "folder": str(folder.absolute()), "files": list(files)})
        return
    show_text(f"made {', '.join(files)} in {folder.absolute()}")
    show_text("next: headrace append payments FILE --key-field card; headrace run")


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
