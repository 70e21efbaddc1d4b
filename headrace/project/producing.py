"""Open a producer for a project: its log, with the keys that its streams declare.

    with open_sender("shop") as sender:
        sender.send("orders", '{"id": 17}')  # has the key 17 if `orders` declares key = 'id'

Promises:
- A record that is sent without a key gets the one that its topic's streams declare, as with
  `headrace append`. While definitions cannot be read, nothing is sent.
- On leaving, all that was sent is appended or has failed; then the log is closed.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from headrace.consume.sending.outgoing import ReadKeys
from headrace.consume.sending.sender import Sender
from headrace.errors import UsageError
from headrace.log.opening import open_log
from headrace.project.config import read_config
from headrace.project.folder import read_definitions
from headrace.project.keys import declared_key

__all__ = ["open_sender"]


@contextmanager
def open_sender(
    project: str | os.PathLike[str],
    *,
    keys: Mapping[str, ReadKeys | None] | None = None,
    **settings: Any,
) -> Iterator[Sender]:
    """Open a sender to the log of a project's folder; `settings` are those of `Sender`.

    `keys` are used before the declared ones, by topic; None is no key. UsageError: there is no
    project, or a declared key cannot be read. DefinitionError.
    """
    config = read_config(Path(project))
    found = _declared(config.folder, dict(keys or {}))
    with (
        closing(open_log(config.log)) as log,
        Sender(log, keys=found, **settings) as sender,
    ):
        yield sender


def _declared(folder: Path, chosen: Mapping[str, ReadKeys | None]) -> dict[str, ReadKeys]:
    streams = read_definitions(folder).streams
    found = dict(chosen)
    for topic in {stream.topic for stream in streams} - set(chosen):
        try:
            found[topic] = declared_key(streams, topic)
        except UsageError as error:
            raise UsageError(
                f"{error} In Python: pass keys={{{topic!r}: field_key('...')}} with the field, or "
                f"keys={{{topic!r}: None}}."
            ) from error
    return {topic: read for topic, read in found.items() if read is not None}
