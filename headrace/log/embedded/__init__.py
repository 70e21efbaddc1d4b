"""The embedded log: a `Log` in a folder, shared by threads and processes."""

from headrace.log.embedded.log import EmbeddedLog

__all__ = ["EmbeddedLog"]
