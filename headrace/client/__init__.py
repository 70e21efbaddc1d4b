"""The Python client of a running engine: append, query, read and follow views."""

from headrace.client.answers import Answer, Appended, Rows
from headrace.client.asynchronous import AsyncClient
from headrace.client.folding import Fold
from headrace.client.messages import Change, Changes, Message, Progress, Reset
from headrace.client.synchronous import Client

__all__ = [
    "Answer",
    "Appended",
    "AsyncClient",
    "Change",
    "Changes",
    "Client",
    "Fold",
    "Message",
    "Progress",
    "Reset",
    "Rows",
]
