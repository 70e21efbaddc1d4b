"""Which files are a partition's segments, and which offsets each of them covers.

    <20-digit base offset>.log                              a segment as it was appended
    <20-digit base offset>-<20-digit end offset>-<passes>.log    one that compaction made

The first covers its offsets up to the next segment's base; the second covers `[base, end)`, takes
the place of every file that begins there, and says how often its records were rewritten.

Promises:
- Every offset is in one of the files listed, whatever compaction does meanwhile; a file and the one
  that takes its place are never both listed. So one rename swaps any number of segments.
- A name never stands for other bytes than before: a byte position that was found in a file cannot
  be misread in the one that takes its place.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from headrace.log.embedded.ends import read_ends

__all__ = [
    "SegmentFile",
    "compacted_path",
    "list_files",
    "list_replaced",
    "list_segments",
    "segment_path",
]

_NAME = re.compile(r"(\d{20})(?:-(\d{20})-(\d+))?\.log")


class SegmentFile(NamedTuple):
    """A segment's file. Without an end offset it was never compacted."""

    base_offset: int
    path: Path
    end_offset: int | None = None
    passes: int = 0


def segment_path(folder: Path, base_offset: int) -> Path:
    """Return where a partition keeps the segment that begins at an offset, as it was appended."""
    return folder / f"{base_offset:020d}.log"


def compacted_path(folder: Path, base_offset: int, end_offset: int, passes: int) -> Path:
    """Return where a partition keeps what compaction made of the offsets `[base, end)`."""
    return folder / f"{base_offset:020d}-{end_offset:020d}-{passes}.log"


def list_files(folder: Path) -> list[SegmentFile]:
    """Return a partition's segments, in order. Needs no lock."""
    return _sort_out(_all_files(folder))[0]


def list_replaced(folder: Path) -> list[SegmentFile]:
    """Return the files whose place another one has taken: nobody reads them any more."""
    return _sort_out(_all_files(folder))[1]


def list_segments(folder: Path) -> list[int]:
    """Return the base offsets of a partition's segments, in order."""
    return [file.base_offset for file in list_files(folder)]


def _all_files(folder: Path) -> list[SegmentFile]:
    while True:
        before = read_ends(folder / "ends")
        matches = [_NAME.fullmatch(name) for name in os.listdir(folder)]
        found = [_file(folder, match) for match in matches if match is not None]
        after = read_ends(folder / "ends")
        # The system may list a folder without what came and without what went meanwhile. Between
        # the two, compaction counts in `ends`.
        if before is None or after is None or before.compactions == after.compactions:
            return found


def _file(folder: Path, match: re.Match[str]) -> SegmentFile:
    name, (base, end, passes) = match[0], match.groups()
    return SegmentFile(
        int(base), folder / name, None if end is None else int(end), int(passes or 0)
    )


def _sort_out(found: list[SegmentFile]) -> tuple[list[SegmentFile], list[SegmentFile]]:
    """Return the files that count, in order, and those whose place was taken."""
    found.sort(key=lambda file: (file.base_offset, -(file.end_offset or 0), -file.passes))
    listed: list[SegmentFile] = []
    replaced: list[SegmentFile] = []
    covered = 0
    for file in found:
        if file.base_offset < covered:
            replaced.append(file)
        else:
            listed.append(file)
            covered = file.end_offset or file.base_offset + 1
    return listed, replaced
