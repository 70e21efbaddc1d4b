"""What holds for every window: sizes, slides, steps, offsets and time zones that make sense.

A fault is told with its subject, so that it can be shown where that stands: `window`, or
`time_zone` for what only its time zone makes wrong.
"""

from collections.abc import Iterator
from functools import cache
from zoneinfo import available_timezones

from headrace.model.names import closest
from headrace.model.nodes import Window

__all__ = ["DAY_US", "MAX_WINDOWS", "window_faults"]

DAY_US = 86_400_000_000
#: Windows that one record may belong to: a day in steps of a second is 86,400.
MAX_WINDOWS = 100_000


def window_faults(window: Window) -> Iterator[tuple[str, str]]:
    """Yield every fault of a window as (subject, message)."""
    size_us, slide_us = window.size_us, window.slide_us
    if size_us <= 0:
        length = "size" if window.gap_us is None else "gap"
        yield "window", f"the window {length} must be positive"
        return
    if window.kind == "session":
        yield from _session_faults(window)
        return
    if window.kind != "tumbling":
        yield from (("window", fault) for fault in _overlap_faults(window))
    hop_us = size_us if window.kind == "tumbling" else slide_us
    if abs(window.offset_us) >= max(hop_us, 1):
        yield (
            "window",
            "the window's offset must be shorter than the time from one window to the next; "
            "subtract whole steps from it",
        )
    if window.zone is not None:
        yield from (("time_zone", fault) for fault in _zone_faults(window))


def _session_faults(window: Window) -> Iterator[tuple[str, str]]:
    if window.slide_us or window.offset_us:
        yield (
            "window",
            "a session begins with its first record, so it has a gap and neither slide nor offset; "
            "write session_window(<event time>, '5 minutes')",
        )
    if window.zone is not None:
        yield (
            "time_zone",
            "time_zone has no effect on a session, which begins with its first record; "
            "remove time_zone",
        )


def _overlap_faults(window: Window) -> Iterator[str]:
    word = "step" if window.kind == "cumulative" else "slide"
    if window.slide_us <= 0:
        yield f"the window {word} must be positive"
        return
    if window.slide_us > window.size_us:
        if window.kind == "cumulative":
            yield "the window's step is longer than its size; write the step first, then the size"
        else:
            yield (
                "the window's slide is longer than its size, so that records between two windows "
                "would be in none; write a slide of at most the size"
            )
    elif window.kind == "cumulative" and window.size_us % window.slide_us:
        yield (
            "the window's size must be a whole number of steps; write, for example, "
            "cumulate(<event time>, '1 hour', '1 day')"
        )
    elif window.size_us // window.slide_us > MAX_WINDOWS:
        yield (
            f"a record would be in {window.size_us // window.slide_us:,} windows; at most "
            f"{MAX_WINDOWS:,} are possible, so write a longer {word}"
        )


def _zone_faults(window: Window) -> Iterator[str]:
    zone = window.zone or ""
    if zone not in _zones():
        yield (
            f"time_zone {zone!r} is not known{closest(zone, _zones())}; write a name such as "
            "'Europe/Berlin'"
        )
    lengths = (window.size_us, window.slide_us, window.offset_us)
    if any(length % DAY_US for length in lengths):
        yield (
            f"time_zone {zone!r} says when days begin, so the window needs whole days, such as "
            "window(<event time>, '1 day'); for shorter windows remove time_zone"
        )


@cache
def _zones() -> frozenset[str]:
    # Names of a place (and UTC) mean the same everywhere; EST, posix/... and localtime do not.
    outside = ("posix/", "right/", "Etc/", "SystemV/")
    return frozenset(
        name
        for name in available_timezones()
        if name == "UTC" or ("/" in name and not name.startswith(outside))
    )
