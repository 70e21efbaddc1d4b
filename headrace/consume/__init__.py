"""Clients of the log: consumer groups and queues."""

from headrace.consume.shared_reading import (
    consume_queue,
    delete_group,
    find_group,
    join_group,
    list_groups,
    reset_group,
)

__all__ = [
    "consume_queue",
    "delete_group",
    "find_group",
    "join_group",
    "list_groups",
    "reset_group",
]
