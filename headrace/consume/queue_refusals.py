"""What every log refuses the consumers of its queues, in the same words."""

from collections.abc import Iterable, Sequence

from headrace.consume.queues import Delivery, Queue, QueueSettings
from headrace.errors import PositionLost, UsageError

__all__ = [
    "check_foreign",
    "other_settings",
    "records_gone",
]


def check_foreign(consumer: object, topic: str, deliveries: Iterable[Delivery]) -> None:
    """Refuse what a queue of another topic handed out. UsageError."""
    for each in deliveries:
        if each.partition.topic != topic:
            raise UsageError(
                f"{consumer}: {each.partition}@{each.offset} was handed out by another queue. "
                f"Nothing was done; give it back to that one."
            )


def other_settings(queue: Queue, there: QueueSettings, others: int) -> UsageError:
    """Return why a consumer with other settings than the others have is refused."""
    stored = there._asdict()
    differences = ", ".join(
        f"{name} is {stored[name]!r} there and {value!r} here"
        for name, value in queue.settings._asdict().items()
        if stored[name] != value
    )
    return UsageError(
        f"{queue}: its {others} other consumers use other settings: "
        f"{differences}. Use the same, or close the others first."
    )


def records_gone(consumer: object, topic: str, gone: Sequence[str]) -> PositionLost:
    """Return what a poll raises once; `gone` names what retention took."""
    return PositionLost(
        f"{consumer}: retention removed records that were not done: {', '.join(gone)}. The queue "
        f"goes on behind them; raise the retention of {topic}, or add consumers."
    )
