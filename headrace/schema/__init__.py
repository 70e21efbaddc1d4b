"""Types of columns, and the codecs that read records into them."""

from headrace.schema.codec import Decoded
from headrace.schema.json import JsonDecoder
from headrace.schema.types import Column, DataType, parse_type

__all__ = ["Column", "DataType", "Decoded", "JsonDecoder", "parse_type"]
