"""How far an append goes before it returns: what `acks` may be, checked alike by every log.

    acks    when the append returns, the records are …    lost with
    "all"   durable, and visible to every later reader    the disk
    1       written, soon to be durable and visible       the machine

A `Sender` also has `acks=0`: the records are in its buffer, and lost with the process.
"""

from headrace.errors import UsageError
from headrace.log.base import Acks, Producer

__all__ = ["check_acks"]


def check_acks(topic: str, acks: Acks, producer: Producer | None) -> None:
    """Refuse what is no `acks` of an append, and a producer that does not wait. UsageError."""
    if acks not in (1, "all"):
        raise UsageError(
            f"{topic}: acks cannot be {acks!r} here. Use 1 or 'all'; records that nobody waits for "
            f"are sent with `headrace.consume.Sender(log, acks=0)`."
        )
    # It would forget the batch once it is acknowledged, and then nobody could send it again. Kafka
    # refuses it as well.
    if producer is not None and acks != "all":
        raise UsageError(
            f"{topic}: producer {producer.id!r} asks for acks={acks!r}, but its batches are stored "
            f"once only if none is lost after its acknowledgement; leave `acks` out."
        )
