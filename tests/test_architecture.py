"""The house is built as DESIGN section 9 draws it: imports point up the list of rooms only.

Method: every file is parsed, none is run, so an import within a function counts as well. What is
tracked is searched for paths of the machine it was written on and addresses of its registries.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_LINES = 500

ROOMS = [
    "errors",
    "faults",
    "scratch",
    "log",
    "consume",
    "schema",
    "model",
    "sql",
    "define",
    "time",
    "aggregates",
    "operators",
    "plan",
    "reference",
    "ledger",
    "store",
    "sinks",
    "project",
    "engine",
    "capture",
    "sourcing",
    "deploy",
    "observe",
    "serve",
    "testing",
    "cli",
]
PURE = {"log", "consume", "schema", "model", "time", "aggregates", "operators", "reference"}
FILES = sorted((ROOT / "headrace").rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "headrace").parts[0].removesuffix(".py")


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Return the line and the full name of everything that a module imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the import in full"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def wrong_imports(path: Path, tree: ast.Module) -> Iterator[str]:
    room = room_of(path)
    for line, name in imports(tree):
        package, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        place = f"{path.relative_to(ROOT)}:{line}"
        if package in ("pyspark", "py4j") and ROOMS.index(room) < ROOMS.index("engine"):
            yield f"{place}: {room} stands above engine and imports Spark"
        if package == "headrace" and target in ROOMS:
            if ROOMS.index(target) > ROOMS.index(room):
                yield f"{place}: {room} imports {target}, which stands below it"
            if room in PURE and target == "store":
                yield f"{place}: {room} knows the store"


def test_every_room_is_one_of_the_design() -> None:
    assert {room_of(path) for path in FILES} - {"__init__"} <= set(ROOMS)


def test_imports_point_up_the_list_of_rooms_only() -> None:
    wrong = [
        sentence
        for path in FILES
        if room_of(path) in ROOMS
        for sentence in wrong_imports(path, ast.parse(path.read_text()))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("file", "code", "sentence"),
    [
        ("log/a.py", "def f():\n    from headrace.store import base", ":2: log imports store"),
        ("plan/a.py", "import pyspark.sql", ":1: plan stands above engine and imports Spark"),
        ("model/a.py", "from headrace import cli", ":1: model imports cli"),
    ],
)
def test_a_wrong_import_is_found(file: str, code: str, sentence: str) -> None:
    found = list(wrong_imports(ROOT / "headrace" / file, ast.parse(code)))
    assert any(sentence in each for each in found)


def test_the_suites_of_log_and_store_do_not_load_spark_and_the_harness_is_a_function() -> None:
    code = (
        "import sys, headrace.testing.log.contract, headrace.testing.store.contract\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j')]\n"
        "from headrace.testing.harness import Harness as before\n"
        "from headrace.testing import Harness, harness\n"
        "assert Harness is before and harness.__name__ == 'harness'"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_and_what_it_offers(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "no docstring"
    assert text.count("\n") <= MAX_LINES, f"over {MAX_LINES} lines"
    offered: list[str] = []
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
            if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
                assert node.value is not None
                offered = ast.literal_eval(node.value)
        elif isinstance(node, ast.If):  # TYPE_CHECKING
            names |= {
                alias.asname or alias.name
                for inner in node.body
                if isinstance(inner, ast.Import | ast.ImportFrom)
                for alias in inner.names
            }
    assert set(offered) <= names, f"__all__ names {set(offered) - names}, which is not there"
    assert len(set(offered)) == len(offered)


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git working copy, so there is no list of what is tracked")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


# Written in parts, so that this file does not find itself.
FORBIDDEN = {
    "a path of the machine": re.compile(
        "|".join(["/" + "work/", "/" + "root/", "/" + "home/" + r"\w"])
    ),
    "the address of a registry": re.compile(
        "(?i)"
        + "|".join(
            [
                "index-" + r"url\s*=?\s*\S",
                "registry" + r"\.\w+\.\w+",
                r"pypi\." + "org",
                "simple" + r"/\s*$",
            ]
        )
    ),
}


def test_no_tracked_file_knows_the_machine_or_a_registry() -> None:
    found = []
    for path in tracked_files():
        try:
            text = path.read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # a golden file of bytes, or one that was just removed
        for what, pattern in FORBIDDEN.items():
            for number, line in enumerate(text.splitlines(), 1):
                if pattern.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {what}: {line.strip()[:80]}")
    assert found == []
