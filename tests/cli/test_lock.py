"""One engine per project: the lock is held for life, freed by any death, and names its holder."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.errors import EngineRunning
from headrace.project.lock import (
    Holder,
    hold_engine_lock,
    lock_holder,
    publish_address,
    read_address,
)

HOLD = """
import sys, time
from pathlib import Path
from headrace.project.lock import hold_engine_lock, publish_address
folder = Path(sys.argv[1])
with hold_engine_lock(folder) as holder, publish_address(folder, "http://x", holder, "secret"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_holder_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    with (
        hold_engine_lock(tmp_path) as holder,
        pytest.raises(EngineRunning, match=rf"pid {os.getpid()}, since {holder.started}"),
        hold_engine_lock(tmp_path),
    ):
        pass


def test_asking_who_holds_the_lock_does_not_take_it(tmp_path: Path) -> None:
    assert lock_holder(tmp_path) is None
    with hold_engine_lock(tmp_path) as holder:
        assert lock_holder(tmp_path) == holder
    assert lock_holder(tmp_path) is None


def test_a_killed_holder_frees_the_lock_and_its_address_is_cleared_away(tmp_path: Path) -> None:
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            found = lock_holder(tmp_path)
            assert found is not None
            assert found.pid == holder.pid
            holder.send_signal(signal.SIGKILL)
        assert lock_holder(tmp_path) is None
        assert read_address(tmp_path) is not None  # left behind by the dead
        with hold_engine_lock(tmp_path):
            assert read_address(tmp_path) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine.lock"]


def test_the_address_is_for_its_owner_alone(tmp_path: Path) -> None:
    holder = Holder(os.getpid(), "now")
    with publish_address(tmp_path, "http://x", holder, "secret"):
        mode = stat.S_IMODE((tmp_path / "engine.json").stat().st_mode)
        assert mode == 0o600
        address = read_address(tmp_path)
        assert address is not None
        assert (address.url, address.token) == ("http://x", "secret")
    assert read_address(tmp_path) is None
