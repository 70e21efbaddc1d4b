"""Windows and lateness as Spark SQL text over microseconds since 1970.

A window is `[start, end)`. A record is late for it when `end + allowed_lateness <= w`, its
watermark; one of -infinity is NULL here, and then nothing is late.
"""

__all__ = ["late", "window_start", "window_struct"]


def window_start(event_time: str, size_us: int) -> str:
    """Return the start of the tumbling window a time falls into; right before 1970 too."""
    micros = f"unix_micros({event_time})"
    return f"({micros} - pmod({micros}, {size_us}L))"


def window_struct(start_us: str, size_us: int) -> str:
    """Return the window as Spark's own `window` column: a struct of two timestamps."""
    return (
        f"named_struct('start', timestamp_micros({start_us}), "
        f"'end', timestamp_micros({start_us} + {size_us}L))"
    )


def late(start_us: str, size_us: int, watermark_us: str, *, lateness_us: int) -> str:
    """Return the test for a record that comes after its window was closed to it."""
    return f"coalesce({start_us} + {size_us + lateness_us}L <= {watermark_us}, false)"
