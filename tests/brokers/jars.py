"""Java archives that tests and benchmarks need, resolved by the Ivy that PySpark carries.

Promises:
- They are resolved once, and are in the cache whole or not at all; of several processes that want
  them at once one resolves and the others wait.
"""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from headrace.engine.spark.java import find_java_home
from headrace.errors import JavaMissing, Unreachable
from headrace.log.embedded.files import locked

__all__ = ["find_java", "resolve"]

RESOLVE_TIMEOUT_S = 300

_IVY = """<ivy-module version="2.0">
<info organisation="headrace" module="{name}"/>
<configurations><conf name="default"/></configurations>
<dependencies>{dependencies}</dependencies>
</ivy-module>
"""


def resolve(name: str, coordinates: Sequence[str], *, with_dependencies: bool) -> Path:
    """Return the folder of some jars, each named `group:artifact:version`.

    Unreachable: they are not cached and cannot be had.
    """
    cache = os.environ.get("HEADRACE_CACHE") or Path.home() / ".cache" / "headrace"
    folder = Path(cache) / name
    libs = folder / "libs"
    if libs.is_dir():
        return libs
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if not libs.is_dir():
            _resolve(name, folder, coordinates, with_dependencies)
    return libs


def _resolve(name: str, folder: Path, coordinates: Sequence[str], with_dependencies: bool) -> None:
    staging = folder / "resolving"
    shutil.rmtree(staging, ignore_errors=True)  # of one that died: we hold the lock
    wanted = "default" if with_dependencies else "master"
    module = folder / "ivy.xml"
    module.write_text(
        _IVY.format(
            name=name,
            dependencies="".join(
                f'<dependency org="{group}" name="{artifact}" rev="{version}" '
                f'transitive="{str(with_dependencies).lower()}" conf="default->{wanted}"/>'
                for group, artifact, version in (each.split(":") for each in coordinates)
            ),
        )
    )
    command: list[str | Path] = [
        *(find_java(), "-jar", _ivy(), "-cache", folder / "ivy", "-ivy", module),
        *("-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", f"{staging}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, timeout=RESOLVE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise _unresolved(name, f"no answer in {RESOLVE_TIMEOUT_S} s") from error
    # Ivy ends with 0 even where a dependency is missing; it says so in its report.
    if run.returncode != 0 or "UNRESOLVED" in run.stdout or not any(staging.glob("*.jar")):
        raise _unresolved(name, (run.stdout + run.stderr)[-1000:])
    staging.rename(folder / "libs")


def _unresolved(name: str, reason: str) -> Unreachable:
    return Unreachable(
        f"{name}: its jars are not in the cache and cannot be resolved. Run this once where Ivy "
        f"reaches a repository, or point HEADRACE_CACHE at a cache that has them. Ivy said: "
        f"{reason}"
    )


def find_java() -> Path:
    """Return the java command. Unreachable: there is none."""
    try:
        return find_java_home() / "bin" / "java"
    except JavaMissing as error:
        raise Unreachable(f"there is no Java to run: {error}") from error


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None, "pyspark is a dependency"
    assert spec.origin is not None
    (jar,) = (Path(spec.origin).parent / "jars").glob("ivy-*.jar")
    return jar
