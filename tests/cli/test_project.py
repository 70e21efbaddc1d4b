"""A project that does not validate starts nothing and prints every error, not only the first."""

from pathlib import Path

import pytest

from cli.commands import Run
from headrace.errors import DefinitionError, UsageError
from headrace.log.opening import EmbeddedPlace, KafkaPlace
from headrace.project.config import read_config
from headrace.project.folder import find_project, open_project
from headrace.project.settings import Settings

STREAM = "CREATE STREAM s (a INT) WITH (topic = 's', format = 'json');\n"


def write(folder: Path, toml: str, **sql: str) -> Path:
    (folder / "headrace.toml").write_text(toml)
    for name, text in sql.items():
        (folder / f"{name}.sql").write_text(text)
    return folder


def problems(folder: Path) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        open_project(folder)
    return [str(problem) for problem in caught.value.problems]


def test_defaults_stand_in_the_folder(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, ""))
    assert config.name == tmp_path.name
    assert config.log == EmbeddedPlace(tmp_path / ".headrace/log")
    assert config.store_path == tmp_path / ".headrace/store.duckdb"
    assert (config.settings, config.spark_master, config.serve.port) == (Settings(), "local[*]", 0)


def test_every_setting_is_read(tmp_path: Path) -> None:
    toml = """
    [project]
    name = "shop"
    [log]
    kind = "embedded"
    path = "/data/log"
    [store]
    kind = "duckdb"
    path = "tables.duckdb"
    [engine]
    target_ms = 250
    [spark]
    master = "local[1]"
    spark.driver.memory = "4g"
    "spark.ui.enabled" = true
    [serve]
    port = 8123
    """
    config = read_config(write(tmp_path, toml))
    assert config.name == "shop"
    assert config.log == EmbeddedPlace(Path("/data/log"))
    assert config.store_path == tmp_path / "tables.duckdb"
    assert config.settings == Settings(target_ms=250)
    assert config.spark_master == "local[1]"
    assert config.spark_settings == {"spark.driver.memory": "4g", "spark.ui.enabled": "true"}
    assert config.serve.port == 8123


def test_properties_for_kafka_are_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "rabbit")
    toml = """
    [log]
    kind = "kafka"
    prefix = "shop."
    [log.client]
    bootstrap.servers = "one:9092,two:9092"
    "sasl.password" = "${SHOP_PASSWORD}!"
    "enable.ssl.certificate.verification" = false
    linger.ms = 3
    """
    config = read_config(write(tmp_path, toml))
    client = {
        "bootstrap.servers": "one:9092,two:9092",
        "sasl.password": "rabbit!",
        "enable.ssl.certificate.verification": "false",
        "linger.ms": "3",
    }
    assert config.log == KafkaPlace(client, "shop.")
    assert "rabbit" not in f"{config} {config.log}"


@pytest.mark.parametrize(
    ("master", "prepares"),
    [("local", True), ("local[*]", True), ("yarn", False), ("spark://one:7077", False)],
)
def test_plans_are_prepared_where_spark_runs_on_one_machine(
    tmp_path: Path, master: str, prepares: bool
) -> None:
    config = read_config(write(tmp_path, f'[spark]\nmaster = "{master}"'))
    assert config.prepares_plans == prepares


def test_all_problems_of_settings_and_definitions_are_told_with_their_places(
    tmp_path: Path,
) -> None:
    toml = """[projekt]
name = "shop"
[log]
kind = "pulsar"
[store]
kind = "postgres"
  pth = "x"
[engine]
target_ms = "fast"
poll_ms = 0
[serve]
port = 70000
"""
    folder = write(tmp_path, toml, b=STREAM + "SELECT 1;", a="CREATE SINK x")
    found = problems(folder)
    assert [text.split(": ")[0] for text in found] == [
        "a.sql:1:13",
        "b.sql:2:1",
        "headrace.toml:1:1",
        "headrace.toml:4:1",
        "headrace.toml:6:1",
        "headrace.toml:7:3",
        "headrace.toml:9:1",
        "headrace.toml:10:1",
        "headrace.toml:12:1",
    ]
    assert "[projekt] is not a section of headrace.toml (did you mean project?)" in found[2]
    assert found[3].endswith("""'pulsar' is not known; write kind = "embedded" or "kafka\"""")
    assert found[4].endswith("""store kind 'postgres' comes later; write kind = "duckdb\"""")
    assert "[store] has no setting 'pth' (did you mean path?)" in found[5]
    assert found[6].endswith("target_ms takes a whole number, not 'fast'")


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("x = ", "headrace.toml:1:5: not TOML: Invalid value"),
        ("[log]\nx = = 1", "headrace.toml:2:5: not TOML: Invalid value"),
        ("log = 1", "headrace.toml:1:1: log is a section; write [log]"),
        ("[engine]\ntarget_ms = true", "headrace.toml:2:1: target_ms takes a whole number"),
        ("[spark]\ncores = 4", "headrace.toml:2:1: [spark] cores is neither master nor"),
        (
            '[spark]\n"spark.sql.ansi.enabled" = false',
            "headrace.toml:2:1: spark.sql.ansi.enabled decides what definitions mean",
        ),
        ('[log]\npath = " "', "headrace.toml:2:1: path is empty"),
        ('[log]\nkind = "kafka"', 'headrace.toml:2:1: kind = "kafka" needs [log.client] with'),
        (
            '[log]\nkind = "kafka"\npath = "x"\n[log.client]\nbootstrap.servers = "h:1"',
            'headrace.toml:3:1: path belongs to a log of kind = "embedded", this one is "kafka"',
        ),
        (
            '[log]\nkind = "kafka"\nclient = "h:1"',
            "headrace.toml:3:1: client takes a section of its own, not 'h:1'",
        ),
        (
            '[log]\nkind = "kafka"\n[log.client]\nbootstrap.servers = "h:1"\n'
            '"sasl.password" = "${HEADRACE_UNSET}"',
            "headrace.toml:5:1: sasl.password: the environment has no HEADRACE_UNSET",
        ),
        (
            '[log]\nkind = "kafka"\n[log.client]\nbootstrap.servers = "h:1"\nx = [1]',
            "headrace.toml:5:1: x takes text, a number, true or false, not [1]",
        ),
    ],
)
def test_a_bad_setting_is_refused_where_it_stands(tmp_path: Path, toml: str, told: str) -> None:
    (found,) = problems(write(tmp_path, toml, s=STREAM))
    assert found.startswith(told)


def test_text_that_is_not_utf8_is_told_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, "").joinpath("s.sql").write_bytes(b"-- ok\n-- \xff")
    assert problems(tmp_path) == ["s.sql:2:4: not UTF-8 text; save the file as UTF-8"]


def test_a_project_without_definitions_is_refused(tmp_path: Path) -> None:
    (found,) = problems(write(tmp_path, ""))
    assert found.startswith("headrace.toml:1:1: the project has no .sql file")


def test_the_project_is_found_from_a_folder_below_it(tmp_path: Path) -> None:
    below = write(tmp_path, "") / "a" / "b"
    below.mkdir(parents=True)
    assert find_project(below) == tmp_path


def test_without_a_project_the_call_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Make a project with `headrace init`"):
        find_project(tmp_path)


def test_run_prints_every_problem_and_starts_nothing(tmp_path: Path, headrace: Run) -> None:
    folder = write(tmp_path, "[nope]\n", s=STREAM + "DROP x;\nCREATE MATERIALIZED VIEW v AS SELEC")
    answer = headrace("run", "-p", folder)
    assert answer.code == 1
    lines = answer.err.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("error: headrace.toml:1:1: [nope] is not a section")
    assert lines[3].startswith("error: s.sql:2:1: DROP is not a definition")
    assert lines[4:6] == ["  2 | DROP x;", "    | ^"]
    assert lines[9] == "3 problems; nothing was started"
    assert not (folder / ".headrace").exists()


def test_a_file_that_cannot_be_read_is_a_problem_like_any_other(
    tmp_path: Path, headrace: Run
) -> None:
    folder = write(tmp_path, "", a=STREAM)
    (folder / ".#a.sql").symlink_to("somebody@host.4711")  # Emacs: a.sql is being edited
    assert len(open_project(folder).definitions.streams) == 1
    (folder / "x.sql").mkdir()
    assert problems(folder) == [
        "x.sql:1:1: cannot be read: Is a directory; make it a readable file, or remove or rename it"
    ]
    answer = headrace("check", "-p", folder)
    assert (answer.code, answer.err) == (1, "")
    assert "error: x.sql:1:1: cannot be read: Is a directory" in answer.out
