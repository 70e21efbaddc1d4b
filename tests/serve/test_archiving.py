"""The archive of Spark's classes: made once, given up on stop, never in the way.

Method: the process that loads the classes is replaced by small ones that write a file, or do not
end. Every run of the tests that starts Spark makes and uses a real one (conftest.py).
"""

import sys
import threading
import time
from pathlib import Path

import pytest

from headrace.engine.spark.classes import archive_of, archived
from headrace.serve import archiving
from headrace.serve.archiving import keeping_archive, make_archive

WRITES = """
import os
path = os.environ["SPARK_SUBMIT_OPTS"].split("AtExit=")[1].split()[0]
open(path, "w").write("x")
"""
HANGS = "import time; time.sleep(600)"
FAILS = "raise SystemExit(1)"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(archiving, "DELAY_SECONDS", 0.0)
    return tmp_path / "headrace" / "classes"


def play(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = archiving.subprocess.Popen

    def started(_: list[str], **options: object) -> object:
        return run([sys.executable, "-c", code], **options)

    monkeypatch.setattr(archiving.subprocess, "Popen", started)


def test_an_archive_is_made_once_and_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert archived("-Xmx1g") == "-Xmx1g"
    play(WRITES, monkeypatch)
    make_archive("-Xmx1g")
    path = archive_of("-Xmx1g")
    assert path is not None
    assert path.parent == cache
    assert archived("-Xmx1g").startswith(f"-Xmx1g -XX:SharedArchiveFile={path} ")
    assert archived(archived("-Xmx1g")) == archived("-Xmx1g")
    assert archived("-Xmx2g") == "-Xmx2g"  # it holds for other options
    play(FAILS, monkeypatch)
    make_archive("-Xmx1g")
    assert path.read_text() == "x"


def test_a_java_that_makes_none_is_not_asked_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play("pass", monkeypatch)
    make_archive("")
    assert archived("") == ""
    play(WRITES, monkeypatch)
    make_archive("")
    assert archived("") == ""
    assert [path.suffix for path in cache.glob("spark-*")] == [".jsa"]


def test_what_fails_or_is_given_up_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(FAILS, monkeypatch)
    make_archive("")
    play(HANGS, monkeypatch)
    began = time.monotonic()
    with keeping_archive(""):
        time.sleep(0.5)
    assert time.monotonic() - began < 60
    assert not [thread for thread in threading.enumerate() if thread.name == "class-archive"]
    assert list(cache.glob("spark-*")) == []


def test_a_cache_that_cannot_be_written_is_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(archiving, "DELAY_SECONDS", 0.0)
    with keeping_archive(""):
        time.sleep(0.2)
    assert archived("") == ""


def test_old_archives_are_removed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(WRITES, monkeypatch)
    for number in range(archiving.MAX_ARCHIVES + 2):
        make_archive(f"-Xmx{number}g")
    assert len(list(cache.glob("spark-*.jsa"))) == archiving.MAX_ARCHIVES
