"""Keep credentials of the log from going to other machines in the clear.

Tasks of a long turn read the log by themselves, so Spark sends them how to reach it. What is taken
from the environment is sent by its name (log/secrets.py). A secret that stands in the settings
would be sent as it is: to other machines only where Spark encrypts what it sends.
"""

from collections.abc import Callable

from headrace.errors import UsageError
from headrace.log.base import Log
from headrace.project.config import runs_here

__all__ = ["check_secrecy"]

_AUTHENTICATED = ("spark.authenticate", "spark.network.crypto.enabled")
_TLS = ("spark.ssl.rpc.enabled",)


def check_secrecy(log: Log, setting: Callable[[str, str], str | None]) -> None:
    """Refuse to run where secrets would be sent in the clear; `setting` tells Spark's. UsageError.

    `setting` takes the name and the default, as `SparkConf.get` does.
    """
    secrets = log.carried_secrets()
    if not secrets or runs_here(setting("spark.master", "local") or ""):
        return
    for wanted in (_AUTHENTICATED, _TLS):
        if all((setting(name, "false") or "").lower() == "true" for name in wanted):
            return
    names = ", ".join(secrets)
    raise UsageError(
        f"{names}: Spark would send {'it' if len(secrets) == 1 else 'them'} in the clear to the "
        f'machines of {setting("spark.master", "")}. Write "${{NAME}}" in [log.client] instead, '
        f"and set the environment variable NAME here and where Spark's workers are started. Or let "
        f'Spark encrypt what it sends: "spark.authenticate" = true and '
        f'"spark.network.crypto.enabled" = true in [spark].'
    )
