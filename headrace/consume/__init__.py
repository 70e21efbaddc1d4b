"""Clients of the log: producers with a buffer, consumer groups, queues."""

from headrace.consume.groups import Group, GroupMember, Lag, MemberSettings, Polled, lag
from headrace.consume.member import Member
from headrace.consume.queue_consumer import QueueConsumer
from headrace.consume.queues import DEAD_HEADERS, Delivery, QueueSettings
from headrace.consume.sending.sender import Sender, SenderStatus, Sent
from headrace.consume.shared_reading import (
    consume_queue,
    delete_group,
    find_group,
    join_group,
    list_groups,
    reset_group,
)

__all__ = [
    "DEAD_HEADERS",
    "Delivery",
    "Group",
    "GroupMember",
    "Lag",
    "Member",
    "MemberSettings",
    "Polled",
    "QueueConsumer",
    "QueueSettings",
    "Sender",
    "SenderStatus",
    "Sent",
    "consume_queue",
    "delete_group",
    "find_group",
    "join_group",
    "lag",
    "list_groups",
    "reset_group",
]
