"""The rooms of the house (docs/design.md): imports point up the list of rooms only.

Method: every file is parsed, none is run, so an import within a function counts as well. Texts are
searched for words that only one dialect of SQL has, which must stay in the rooms of that dialect.
What is tracked is searched for paths of the machine it was written on and addresses of its
registries.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_LINES = 500

ROOMS = [
    "errors",
    "wording",
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
    "client",
    "serve",
    "testing",
    "cli",
]
#: Where a library may be imported: rooms, or single files.
LIBRARIES = {
    # The reference translates scalars by itself: it is to share no code with what it judges.
    "sqlglot": ("sql/", "plan/finals/", "reference/scalars.py"),
    "duckdb": ("store/duckdb/", "schema/", "reference/", "scratch.py"),
}
#: Words that one dialect of SQL has and others have not, and where texts may contain them.
DIALECTS = {
    "DuckDB": (
        r"make_timestamptz|struct_pack|list_transform|epoch_us|to_microseconds|IS NOT DISTINCT"
        r"|CREATE TEMP|duckdb_|\browid\b|\bHUGEINT\b|\bEXCLUDE\b|\bjson_object\(",
        ("store/duckdb/", "schema/", "operators/state/hashing.py", "reference/", "testing/"),
    ),
    "Spark": (
        r"unix_micros|timestamp_micros|named_struct|\bpmod\b|raise_error|_utc_timestamp"
        r"|\bDIV\b|double\('|grouping\(",
        # An aggregate keeps its partial, which is Spark's, beside its merge and its final.
        (
            "sql/",
            "model/functions.py",  # the names that users write
            "model/table_views.py",  # a table is expressions over its changes
            "plan/finals/",
            "plan/spark/",
            "aggregates/",
            "engine/",
            "reference/scalars.py",
        ),
    ),
}
PURE = {"log", "consume", "schema", "model", "time", "aggregates", "operators", "reference"}
FILES = sorted((ROOT / "headrace").rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "headrace").parts[0].removesuffix(".py")


@cache
def wrong() -> dict[str, list[str]]:
    """Return what is wrong, by rule; every file is parsed and walked once."""
    found: dict[str, list[str]] = {"libraries": [], "rooms": [], "modules": []}
    for path in FILES:
        text = path.read_text()
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        found["libraries"] += [*foreign_imports(path, nodes), *foreign_words(path, nodes)]
        if room_of(path) in ROOMS:
            found["rooms"] += wrong_imports(path, nodes)
        found["modules"] += (f"{path.relative_to(ROOT)}: {each}" for each in untold(text, tree))
    return found


def nodes_of(code: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(code)))


def imports(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Return the line and the full name of everything that a module imports, wherever it does."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the import in full"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def wrong_imports(path: Path, nodes: Sequence[ast.AST]) -> Iterator[str]:
    room = room_of(path)
    for line, name in imports(nodes):
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


def is_among(path: Path, places: tuple[str, ...]) -> bool:
    return path.relative_to(ROOT / "headrace").as_posix().startswith(places)


def foreign_imports(path: Path, nodes: Sequence[ast.AST]) -> Iterator[str]:
    for line, name in imports(nodes):
        package = name.partition(".")[0]
        if package in LIBRARIES and not is_among(path, LIBRARIES[package]):
            yield f"{path.relative_to(ROOT)}:{line}: {package} is imported outside of its rooms"


def foreign_words(path: Path, nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the texts of a module, docstrings left out, that speak another room's dialect."""
    foreign = {
        dialect: words
        for dialect, (words, places) in DIALECTS.items()
        if not is_among(path, places)
    }
    prose = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        for dialect, words in foreign.items():
            found = re.search(words, node.value)
            if found is not None and id(node) not in prose:
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield f"{place}: {found[0]} is a word of {dialect}"


def test_libraries_and_dialects_stay_in_their_rooms() -> None:
    assert wrong()["libraries"] == []


@pytest.mark.parametrize(
    ("file", "code", "sentence"),
    [
        ("plan/a.py", "import sqlglot.expressions", ":1: sqlglot is imported outside"),
        ("observe/a.py", "from duckdb import connect", ":1: duckdb is imported outside"),
        ("plan/a.py", "x = f'epoch_us({y})'", ":1: epoch_us is a word of DuckDB"),
        ("store/duckdb/a.py", "x = 'unix_micros(ts)'", ":1: unix_micros is a word of Spark"),
    ],
)
def test_a_foreign_word_is_found(file: str, code: str, sentence: str) -> None:
    path, nodes = ROOT / "headrace" / file, nodes_of(code)
    found = [*foreign_imports(path, nodes), *foreign_words(path, nodes)]
    assert any(sentence in each for each in found)


def test_every_room_is_one_of_the_design() -> None:
    assert {room_of(path) for path in FILES} - {"__init__"} <= set(ROOMS)


def test_imports_point_up_the_list_of_rooms_only() -> None:
    assert wrong()["rooms"] == []


@pytest.mark.parametrize(
    ("file", "code", "sentence"),
    [
        ("log/a.py", "def f():\n    from headrace.store import base", ":2: log imports store"),
        ("plan/a.py", "import pyspark.sql", ":1: plan stands above engine and imports Spark"),
        ("model/a.py", "from headrace import cli", ":1: model imports cli"),
    ],
)
def test_a_wrong_import_is_found(file: str, code: str, sentence: str) -> None:
    found = list(wrong_imports(ROOT / "headrace" / file, nodes_of(code)))
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


def untold(text: str, tree: ast.Module) -> Iterator[str]:
    """Yield what a module does not say of itself, or says wrongly."""
    if not ast.get_docstring(tree):
        yield "no docstring"
    if text.count("\n") > MAX_LINES:
        yield f"over {MAX_LINES} lines"
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
    if not set(offered) <= names:
        yield f"__all__ names {set(offered) - names}, which is not there"
    if len(set(offered)) != len(offered):
        yield "__all__ names something twice"


def test_a_module_says_what_it_is_and_what_it_offers() -> None:
    assert len(FILES) > 500
    assert wrong()["modules"] == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", "no docstring"),
        ('"""A."""\n' + "x = 1\n" * MAX_LINES, f"over {MAX_LINES} lines"),
        ('"""A."""\n__all__ = ["x"]\n', "__all__ names {'x'}, which is not there"),
        ('"""A."""\nx = 1\n__all__ = ["x", "x"]\n', "__all__ names something twice"),
    ],
)
def test_what_a_module_does_not_say_is_found(text: str, sentence: str) -> None:
    assert list(untold(text, ast.parse(text))) == [sentence]


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
