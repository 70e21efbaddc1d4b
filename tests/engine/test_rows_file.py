"""Files of rows belong to the Spark that runs, and go when nothing reads them any more."""

import gc
from pathlib import Path

import pytest

from headrace.engine.gears import rows_file
from headrace.engine.gears.rows_file import RowsFile, lend_file


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let Spark's folder be one of the test's."""
    monkeypatch.setattr(rows_file, "_free", {})
    monkeypatch.setattr(rows_file.SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    return tmp_path


def test_a_file_is_lent_again_until_another_spark_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lend_file("clicks") as first:
        pass
    with lend_file("clicks") as again, lend_file("clicks") as other:
        assert again is first
        assert other is not first
    later = folder / "later"
    later.mkdir()
    monkeypatch.setattr(rows_file.SparkFiles, "getRootDirectory", lambda: str(later))
    with lend_file("clicks") as anew:
        assert anew not in (first, other)
        assert len(list(later.iterdir())) == 1
    assert [key[0] for key in rows_file._free] == [str(later)]


def test_a_file_is_removed_with_the_last_that_reads_it(folder: Path) -> None:
    file = RowsFile()
    assert len(list(folder.iterdir())) == 1
    del file
    gc.collect()
    assert list(folder.iterdir()) == []
