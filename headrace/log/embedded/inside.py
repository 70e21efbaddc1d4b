"""What `consume/` uses of an embedded log, beyond what its users may."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.log.base import Append, Appended, Extent, Log, Partition
from headrace.log.clients import Clients
from headrace.log.embedded.topics import StoredTopic

__all__ = ["Inside"]


@dataclass(frozen=True)
class Inside:
    """The inner side of an embedded log."""

    log: Log
    clients: Clients
    path: Path
    sync: bool
    #: UsageError when the log is closed.
    check_open: Callable[[], None]
    #: A topic with its id, which differs from that of an older topic of the same name.
    stored: Callable[[str], StoredTopic]
    #: All of these appends or nothing, also to reserved topics.
    append: Callable[[Sequence[Append]], list[Appended]]
    #: What one partition holds.
    extent: Callable[[Partition], Extent]
    #: The same once all that was decided is acknowledged, whoever died before doing so.
    caught_up_extent: Callable[[Partition], Extent]
