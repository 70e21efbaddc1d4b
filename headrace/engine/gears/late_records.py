"""Say of late records which of their windows were closed to them, and by how much; vectorised."""

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["late_reasons"]

_SECOND_US = 1_000_000
_MINUTE_US = 60 * _SECOND_US
_HOUR_US = 60 * _MINUTE_US
_DAY_US = 24 * _HOUR_US


def late_reasons(late: pa.Table, *, overlap: bool, word: str = "window") -> pa.ChunkedArray:
    """Return a sentence per row of the columns that `plan/spark/grouped.py` gives late records.

    `word` is what the only window of a record is called.
    """
    watermark = late["watermark"]
    behind = pc.subtract(watermark, late["first_end"].cast(pa.int64()))
    windows = _interval(late["first_start"], late["first_end"])
    if overlap:
        last = _interval(late["last_start"], late["last_end"])
        one = pc.equal(late["late_windows"], 1)
        windows = pc.binary_join_element_wise(
            late["late_windows"].cast(pa.string()),
            " of ",
            late["windows"].cast(pa.string()),
            " windows, ",
            pc.if_else(one, windows, pc.binary_join_element_wise(windows, last, " to ")),
            "",
        )
    else:
        windows = pc.binary_join_element_wise(word, windows, " ")
    stamp = watermark.cast(pa.timestamp("us", "UTC"))
    return pc.binary_join_element_wise(
        "late by ",
        duration_text(behind),
        " for ",
        windows,
        "; the watermark was ",
        _text(stamp),
        "",
    )


def _interval(start: pa.ChunkedArray, end: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise("[", _text(start), ", ", _text(end), ")", "")


def _text(times: pa.ChunkedArray) -> pa.ChunkedArray:
    text = pc.strftime(times, format="%Y-%m-%dT%H:%M:%SZ")
    return pc.replace_substring_regex(text, r"\.0+Z$", "Z")


def duration_text(durations_us: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return durations in their two largest units: `3 d 4 h`, `4 h 5 min`, `5 min 6 s`, `6.5 s`."""
    days, hours, minutes = (
        pc.divide(durations_us, unit_us) for unit_us in (_DAY_US, _HOUR_US, _MINUTE_US)
    )
    seconds = pc.divide(durations_us, _SECOND_US)
    # Not exact from 285 years on, where nobody reads it.
    exact = durations_us.cast(pa.float64(), safe=False)
    exact = pc.divide(exact, float(_SECOND_US)).cast(pa.string())
    return pc.case_when(
        pc.make_struct(
            pc.greater_equal(durations_us, _DAY_US),
            pc.greater_equal(durations_us, _HOUR_US),
            pc.greater_equal(durations_us, _MINUTE_US),
        ),
        _pair(days, "d", _rest(hours, days, 24), "h"),
        _pair(hours, "h", _rest(minutes, hours, 60), "min"),
        _pair(minutes, "min", _rest(seconds, minutes, 60), "s"),
        pc.binary_join_element_wise(exact, "s", " "),
    )


def _rest(parts: pa.ChunkedArray, wholes: pa.ChunkedArray, size: int) -> pa.ChunkedArray:
    return pc.subtract(parts, pc.multiply(wholes, size))


def _pair(large: pa.ChunkedArray, name: str, small: pa.ChunkedArray, unit: str) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(
        large.cast(pa.string()), name, small.cast(pa.string()), unit, " "
    )
