"""The file of producers' epochs: counted across processes, found again, and unreadable."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.errors import DiskFull, LogError
from headrace.log import EmbeddedLog
from headrace.log.embedded import producers

BEGIN = """
import sys
from headrace.log import EmbeddedLog
log = EmbeddedLog(sys.argv[1])
print(*(log.begin_producer("p") for _ in range(20)))
"""


def test_processes_that_begin_at_once_get_different_epochs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BEGIN, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate()[0].split() for process in running]
    epochs = [[int(epoch) for epoch in each] for each in said]
    assert all(each == sorted(each) for each in epochs)
    assert len({epoch for each in epochs for epoch in each}) == 60


def test_the_file_says_the_newest_epoch_and_is_all_that_is_there(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, clock=lambda: 1_700_000_000_000_000)
    for n in range(30):
        assert log.begin_producer(f"id-{n}") == 1_700_000_001 + n
    folder = tmp_path / "~producers"
    assert json.loads((folder / "epoch.json").read_bytes()) == {"version": 1, "epoch": 1700000030}
    assert {file.name for file in folder.iterdir()} == {"epoch.json", "lock"}


def test_a_lost_file_is_replaced_by_the_clock(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path)
    before = log.begin_producer("p")
    (tmp_path / "~producers" / "epoch.json").unlink()
    later = EmbeddedLog(tmp_path, clock=lambda: (before + 60) * 1_000_000)
    assert later.begin_producer("p") > before


@pytest.mark.parametrize(
    ("content", "text"),
    [("", "Remove the file"), ("[]", "Remove the file"), ('{"version": 2, "epoch": 1}', "newer")],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: str, text: str) -> None:
    log = EmbeddedLog(tmp_path)
    log.begin_producer("p")
    (tmp_path / "~producers" / "epoch.json").write_text(content)
    with pytest.raises(LogError, match=text):
        log.begin_producer("p")


def test_an_epoch_that_cannot_be_kept_is_not_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EmbeddedLog(tmp_path)
    before = log.begin_producer("p")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(producers, "write_new_file", fail)
        with pytest.raises(DiskFull):
            log.begin_producer("p")
    assert log.begin_producer("p") == before + 1
