"""Read headrace.toml.

    [project] name                          default: the folder's name
    [log]     kind = "embedded", path       default: .headrace/log
    [log]     kind = "kafka", prefix        default: no prefix before the topics' names
    [log.client]                            librdkafka's properties; bootstrap.servers is needed
    [store]   kind = "duckdb", path         default: .headrace/store.duckdb
    [engine]  the fields of `Settings`
    [spark]   master, and settings whose names begin with `spark.`
    [serve]   see `project/serving.py`

Promises:
- Every problem is reported at once, with its place.
- A section or key that is not known is refused, because a misspelt one would change nothing in
  silence.
Paths are relative to the folder. In the properties of [log.client], `${NAME}` is replaced by
the environment variable NAME, so that no secret has to stand in the file, nor be sent to where
Spark's tasks run.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from headrace.errors import DefinitionError, Location, Problem, UsageError
from headrace.log.opening import EmbeddedPlace, KafkaPlace, LogPlace
from headrace.log.secrets import VARIABLE, FromEnvironment
from headrace.project.serving import SERVE_KEYS, ServeSettings, check_serve, serve_settings
from headrace.project.settings import Settings

__all__ = ["FILE", "Config", "not_readable", "not_text", "read_config", "runs_here"]

FILE = "headrace.toml"

_KINDS = {"log": ("embedded", "kafka"), "store": ("duckdb",)}
_LATER = {"postgres"}
_KEYS: Mapping[str, Mapping[str, type]] = {
    "project": {"name": str},
    "log": {"kind": str, "path": str, "prefix": str, "client": dict},
    "store": {"kind": str, "path": str},
    "engine": {entry.name: int for entry in fields(Settings)},
    "spark": {"master": str},
    "serve": SERVE_KEYS,
}
_TYPES = {
    str: "text",
    int: "a whole number",
    dict: "a section of its own",
    bool: "true or false",
}
_OF_KIND = {"path": "embedded", "prefix": "kafka", "client": "kafka"}
# They decide what an expression means, so they are part of every definition.
_FIXED_SPARK = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")


@dataclass(frozen=True)
class Config:
    """What headrace.toml says, with its defaults filled in."""

    folder: Path
    name: str
    log: LogPlace
    store_path: Path
    settings: Settings = field(default_factory=Settings)
    spark_master: str = "local[*]"
    spark_settings: Mapping[str, str] = field(default_factory=dict)
    serve: ServeSettings = field(default_factory=ServeSettings)

    @property
    def runtime(self) -> Path:
        """Where a running engine keeps its lock and its address."""
        return self.folder / ".headrace"

    @property
    def prepares_plans(self) -> bool:
        """Whether plans of short turns are made once: Spark's tasks see the engine's files."""
        return runs_here(self.spark_master)


def runs_here(spark_master: str) -> bool:
    """Whether Spark runs on the engine's machine alone."""
    return spark_master == "local" or spark_master.startswith(("local[", "local-cluster["))


def read_config(folder: Path) -> Config:
    """Return what headrace.toml says. UsageError: there is none. DefinitionError."""
    folder = folder.absolute()
    file = folder / FILE
    try:
        text = file.read_bytes().decode()
        data = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(
            f"{folder}: no {FILE} here. Make a project with `headrace init {folder}`."
        ) from error
    except OSError as error:
        raise DefinitionError([not_readable(FILE, error)]) from error
    except UnicodeDecodeError as error:
        raise DefinitionError([not_text(FILE, error)]) from error
    except tomllib.TOMLDecodeError as error:
        raise DefinitionError([_not_toml(text, error)]) from error
    problems = [*_check_sections(text, data)]
    problems += _check_log(text, data.get("log"))
    spark = {} if problems else _flatten(data.get("spark", {}))
    master = spark.pop("master", Config.spark_master)
    problems += _check_spark(text, spark)
    if not problems:
        serve = data.get("serve", {})
        problems += check_serve(folder, serve, lambda section, key: _place(text, section, key))
    if problems:
        raise DefinitionError(problems)
    return Config(
        folder=folder,
        name=data.get("project", {}).get("name", folder.name),
        log=_log_place(folder, data.get("log", {})),
        store_path=folder / data.get("store", {}).get("path", ".headrace/store.duckdb"),
        settings=Settings(**data.get("engine", {})),
        spark_master=str(master),
        spark_settings={name: _text(value) for name, value in spark.items()},
        serve=serve_settings(folder, data.get("serve", {})),
    )


def _check_sections(text: str, data: Mapping[str, Any]) -> Iterator[Problem]:
    for section, content in data.items():
        if section not in _KEYS:
            yield Problem(
                _place(text, section),
                f"[{section}] is not a section of {FILE}{_closest(section, _KEYS)}; there are: "
                f"{', '.join(f'[{known}]' for known in _KEYS)}",
            )
        elif not isinstance(content, dict):
            yield Problem(_place(text, section), f"{section} is a section; write [{section}]")
        else:
            for key, value in content.items():
                if fault := _fault(section, key, value):
                    yield Problem(_place(text, section, key), fault)


def _fault(section: str, key: str, value: object) -> str | None:
    """Return what is wrong with one setting."""
    keys = _KEYS[section]
    if key not in keys:
        if section == "spark":
            return None  # checked as a whole: a dotted name is a table to TOML
        return (
            f"[{section}] has no setting {key!r}{_closest(key, keys)}; there are: {', '.join(keys)}"
        )
    wanted = keys[key]
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        return f"{key} takes {_TYPES[wanted]}, not {value!r}"
    if wanted is str and not str(value).strip():
        return f"{key} is empty; write a value or leave it out"
    if key == "kind" and value not in _KINDS[section]:
        later = f"{value!r} comes later" if value in _LATER else f"{value!r} is not known"
        known = " or ".join(f'"{kind}"' for kind in _KINDS[section])
        return f"{section} kind {later}; write kind = {known}"
    if section == "engine" and isinstance(value, int) and value < 1:
        return f"{key} is {value}; write 1 or more"
    if key == "port" and isinstance(value, int) and not 0 <= value <= 65_535:
        return f"port is {value}; write 0 for any free port, or 1 to 65535"
    return None


def _check_log(text: str, log: object) -> Iterator[Problem]:
    if not isinstance(log, dict) or (kind := log.get("kind", "embedded")) not in _KINDS["log"]:
        return
    for key in log:
        if _OF_KIND.get(key, kind) != kind:
            yield Problem(
                _place(text, "log", key),
                f'{key} belongs to a log of kind = "{_OF_KIND[key]}", this one is "{kind}"',
            )
    if kind == "kafka" and isinstance(client := log.get("client", {}), dict):
        yield from _check_client(text, _flatten(client))


def _check_client(text: str, properties: Mapping[str, object]) -> Iterator[Problem]:
    if "bootstrap.servers" not in properties:
        yield Problem(
            _place(text, "log", "kind"),
            'kind = "kafka" needs [log.client] with "bootstrap.servers" = "host:port"',
        )
    for name, value in properties.items():
        place = _place(text, "log.client", name)
        if not isinstance(value, str | int | float):
            yield Problem(place, f"{name} takes text, a number, true or false, not {value!r}")
            continue
        for variable in VARIABLE.findall(str(value)):
            if variable not in os.environ:
                yield Problem(place, f"{name}: the environment has no {variable}; set it")


def _log_place(folder: Path, log: Mapping[str, Any]) -> LogPlace:
    if log.get("kind", "embedded") == "embedded":
        return EmbeddedPlace(folder / log.get("path", ".headrace/log"))
    texts = {name: _text(value) for name, value in _flatten(log["client"]).items()}
    client = {
        name: FromEnvironment(text) if VARIABLE.search(text) else text
        for name, text in texts.items()
    }
    return KafkaPlace(client, log.get("prefix", ""))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_spark(text: str, settings: Mapping[str, object]) -> Iterator[Problem]:
    for name, value in settings.items():
        place = _place(text, "spark", name)
        if not name.startswith("spark."):
            yield Problem(
                place,
                f"[spark] {name} is neither master nor a setting of Spark; their names begin with "
                f'"spark.", for example "spark.driver.memory" = "4g"',
            )
        elif name in _FIXED_SPARK:
            yield Problem(
                place, f"{name} decides what definitions mean and cannot be set; remove it"
            )
        elif not isinstance(value, str | int | float):
            yield Problem(place, f"{name} takes text, a number, true or false, not {value!r}")


def _flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Join the tables that TOML makes of dotted names."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _closest(name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _place(text: str, section: str, key: str | None = None) -> Location:
    """Return where a section or key stands; the file's start where the text does not show it."""
    current = ""
    found = Location(FILE, 1, 1)
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([^\]]*?)\s*\]", line)
        setting = re.match(r"\s*([^=#\[]+?)\s*=", line)
        if header:
            current = header[1].replace('"', "")
            if current == section or current.startswith(f"{section}."):
                found = Location(FILE, number, line.index("[") + 1)
        elif setting:
            name = ".".join(filter(None, (current, re.sub(r"[\"'\s]", "", setting[1]))))
            if name == (section if key is None else f"{section}.{key}"):
                return Location(FILE, number, setting.start(1) + 1)
    return found


def _not_toml(text: str, error: tomllib.TOMLDecodeError) -> Problem:
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
    if found is not None:
        return Problem(Location(FILE, int(found[2]), int(found[3])), f"not TOML: {found[1]}")
    last = text.rpartition("\n")[2]
    place = Location(FILE, text.count("\n") + 1, len(last) + 1)
    return Problem(place, f"not TOML: {error}")


def not_readable(file: str, error: OSError) -> Problem:
    """Return the problem with a file that the operating system does not let us read."""
    reason = error.strerror or str(error)
    advice = "make it a readable file, or remove or rename it"
    return Problem(Location(file, 1, 1), f"cannot be read: {reason}; {advice}")


def not_text(file: str, error: UnicodeDecodeError) -> Problem:
    """Return the problem with a file whose bytes are no text."""
    before = bytes(error.object[: error.start])
    line = before.count(b"\n") + 1
    column = error.start - (before.rfind(b"\n") + 1) + 1
    return Problem(Location(file, line, column), "not UTF-8 text; save the file as UTF-8")
