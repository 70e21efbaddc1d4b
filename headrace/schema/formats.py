"""The formats of records: the one place that makes a codec of what a definition says."""

from collections.abc import Collection

from headrace.schema.codec import Codec, Encoding
from headrace.schema.json import JsonCodec
from headrace.schema.json_strict import decode_strict

__all__ = ["FORMATS", "decode_record", "make_codec"]

#: What WITH (format = '...') of a stream may say.
FORMATS = ("json",)


def make_codec(encoding: Encoding, wanted: Collection[str] | None = None) -> Codec:
    """Return the codec of an encoding that gives the wanted columns, or all."""
    return JsonCodec(encoding, wanted)


def decode_record(encoding: Encoding, value: bytes | None) -> dict[str, object]:
    """Return the values of one record, worked out in plain Python: what decoding means. Dead."""
    return decode_strict(encoding.columns, value, encoding.timestamp_format)
