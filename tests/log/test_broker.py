"""The jars of the tests' Kafka broker are resolved once, and are there whole or not at all."""

import threading
from pathlib import Path

import broker
import jars
import pytest

from headrace.errors import Unreachable


def test_jars_that_cannot_be_resolved_are_one_error_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    monkeypatch.setattr(jars, "_ivy", lambda: tmp_path / "missing.jar")
    with pytest.raises(Unreachable, match=r"(?s)HEADRACE_CACHE.*Ivy said: .*missing\.jar"):
        broker.resolve_jars()
    assert not list(tmp_path.rglob("libs"))


def test_of_several_who_want_the_jars_at_once_one_resolves_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    resolved, all_here = [], threading.Barrier(4)

    def resolve(_: str, folder: Path, *__: object) -> None:
        resolved.append(folder)
        (folder / "libs").mkdir()

    def want() -> None:
        all_here.wait(10)
        broker.resolve_jars()

    monkeypatch.setattr(jars, "_resolve", resolve)
    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert resolved == [tmp_path / f"kafka-{broker.KAFKA_VERSION}"]
