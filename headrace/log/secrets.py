"""Credentials in the properties of a log's client, and how they reach who reads a split.

Promises:
- A text that was made of environment variables travels as their names, never as what they say: who
  unpickles it, on another machine perhaps, has it made of the variables there.
- `literal_secrets` names the properties that would travel as they are.
Not promised: that a property of librdkafka which a later release adds is known for a secret.
"""

import os
import re
from collections.abc import Mapping

from headrace.errors import AccessDenied

__all__ = ["VARIABLE", "FromEnvironment", "check_known", "literal_secrets"]

#: How a text refers to an environment variable.
VARIABLE = re.compile(r"\$\{(\w+)\}")
# `sasl.password`, `ssl.key.password`, `ssl.key.pem`, `sasl.oauthbearer.client.secret`, ...
_SECRET = re.compile(r"passw|secret|passphrase|private|key\.pem|oauthbearer\.config|token")
# What they end with that is no secret, but says where one is.
_PLACES = (".location", ".endpoint.url", ".file")


class FromEnvironment(str):
    """A text with `${NAME}` in it, each replaced by the environment variable. KeyError.

    Pickled, it is the text as it was written. Where a variable is missing then, the text is empty
    and `missing` names it.
    """

    template: str
    missing: str

    def __new__(cls, template: str) -> "FromEnvironment":
        """Replace the variables."""
        return cls._made(template, VARIABLE.sub(lambda found: os.environ[found[1]], template))

    @classmethod
    def _made(cls, template: str, text: str, missing: str = "") -> "FromEnvironment":
        made = super().__new__(cls, text)
        made.template, made.missing = template, missing
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return _found_here, (self.template,)


def _found_here(template: str) -> FromEnvironment:
    for name in VARIABLE.findall(template):
        if name not in os.environ:
            # Not an error yet: raised while a task is unpickled it would be Spark's, not ours.
            return FromEnvironment._made(template, "", missing=name)
    return FromEnvironment(template)


def check_known(properties: Mapping[str, str]) -> None:
    """Refuse properties that travelled to where a variable is not set. AccessDenied."""
    for name, value in properties.items():
        if isinstance(value, FromEnvironment) and value.missing:
            raise AccessDenied(
                f"{name}: the environment of {os.uname().nodename} has no {value.missing}, so what "
                f"runs there cannot log in to Kafka. Set it where Spark's workers are started."
            )


def literal_secrets(properties: Mapping[str, str]) -> list[str]:
    """Return the names of credentials that stand among properties as they are."""
    return sorted(
        name
        for name, value in properties.items()
        if _SECRET.search(name)
        and not name.endswith(_PLACES)
        and not isinstance(value, FromEnvironment)
    )
