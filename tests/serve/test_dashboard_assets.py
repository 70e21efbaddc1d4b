"""The dashboard's files: served as they should be, whole in the package, from no other host.

Method: every file is asked for through the routes that the engine mounts; the files themselves are
searched for what must not be in them, and the searches are shown to find it. No browser runs here.
"""

import asyncio
import json
import re
import subprocess
import tomllib
from pathlib import Path

import duckdb
import httpx
import pytest
from starlette.applications import Starlette

from headrace.serve.dashboard.routes import ASSETS, CONTENT_TYPES, dashboard_routes, read_assets

ROOT = Path(__file__).parent.parent.parent
BUNDLING = ASSETS.parent / "bundling"
VENDOR = ASSETS / "vendor"
FILES = sorted(path for path in ASSETS.rglob("*") if path.is_file())
OWN = [path for path in FILES if VENDOR not in path.parents]
MODULES = [path for path in OWN if path.suffix == ".js"]
MAX_LINES = 500

#: What would make markup or code of text, or a style of an attribute.
UNSAFE = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|createContextualFragment|DOMParser"
    r"|srcdoc|execCommand|eval)\b|document\.write|new Function|setTimeout\(['\"]"
    r"|setAttribute\([^,]*['\"](?:style|on\w+)['\"]"
)
#: An address of another host. The first two are names, not addresses; the third is an example.
OUTSIDE = re.compile(r"(?:https?:|wss?:)?//[\w.-]+\.\w+[^\s\"'`)]*")
HARMLESS = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml", "http://127.0.0.1:8080/")
IMPORT = re.compile(r"(?:from|import)\s*\(?\s*\"(\.[^\"]+)\"")
LINK = re.compile(r"(?:src|href)=\"(/[^\"]*)\"|\bsrc: \"(/[^\"]*)\"")
INLINE = re.compile(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)")


APP = Starlette(routes=dashboard_routes())


def ask(path: str, method: str = "GET", **headers: str) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(APP)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(send())


def name_of(path: Path) -> str:
    return path.relative_to(ASSETS).as_posix()


def path_of(file: Path) -> str:
    return "/" if file.name == "index.html" else f"/assets/{name_of(file)}"


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_file_is_served_with_its_type_and_headers(file: Path) -> None:
    answer = ask(path_of(file))
    assert answer.status_code == 200
    assert answer.content == file.read_bytes()
    assert answer.headers["content-type"] == CONTENT_TYPES[file.suffix]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == policy["object-src"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert not {"script-src", "style-src", "connect-src"} & set(policy)


def test_a_browser_that_has_a_file_is_not_sent_it_again() -> None:
    etag = ask("/assets/js/main.js").headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', etag)
    for sent in (etag, f'"other", {etag}', f"W/{etag}"):
        again = ask("/assets/js/main.js", **{"If-None-Match": sent})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == etag
    changed = ask("/assets/js/main.js", **{"If-None-Match": '"other"'})
    assert changed.status_code == 200


def test_files_differ_in_their_tags() -> None:
    assets = read_assets()
    assert len({asset.etag for asset in assets}) == len({asset.content for asset in assets})


@pytest.mark.parametrize(
    "path",
    [
        "/assets/",
        "/assets/js",
        "/assets/../routes.py",
        "/assets/%2e%2e/routes.py",
        "/assets/js/..%2f..%2f..%2froutes.py",
        "/assets//etc/passwd",
        "/index.html",
    ],
)
def test_no_other_path_is_served(path: str) -> None:
    assert ask(path).status_code == 404


def test_files_are_only_read() -> None:
    assert ask("/", "HEAD").status_code == 200
    for method in ("POST", "PUT", "DELETE"):
        assert ask("/", method).status_code == 405


def test_the_package_holds_every_file() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["headrace"]
    package = ROOT / "headrace"
    packed = {path for pattern in patterns for path in package.glob(pattern) if path.is_file()}
    assert set(FILES) <= packed


def test_every_type_of_file_is_known() -> None:
    assert {path.suffix for path in FILES} <= set(CONTENT_TYPES)


def outside(text: str) -> list[str]:
    return [found for found in OUTSIDE.findall(text) if not found.startswith(HARMLESS)]


@pytest.mark.parametrize("file", OWN, ids=name_of)
def test_no_file_of_ours_names_another_host(file: Path) -> None:
    assert outside(file.read_text()) == []


@pytest.mark.parametrize("file", MODULES, ids=name_of)
def test_a_module_makes_no_markup_of_text(file: Path) -> None:
    found = [
        f"{number}: {line.strip()}"
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if UNSAFE.search(line)
    ]
    assert found == []


def test_nothing_stands_in_the_page_itself() -> None:
    assert INLINE.findall((ASSETS / "index.html").read_text()) == []


@pytest.mark.parametrize(
    ("search", "text"),
    [
        (UNSAFE.search, "row.innerHTML = value"),
        (UNSAFE.search, "cell.setAttribute('style', value)"),
        (UNSAFE.search, "return new Function(text)"),
        (outside, 'import x from "https://cdn.example.com/x.js"'),
        (outside, '<img src="//example.com/pixel.gif">'),
        (outside, "@import url(http://fonts.example.com/css)"),
        (INLINE.search, "<script>start()</script>"),
        (INLINE.search, '<p onclick="start()">'),
        (INLINE.search, '<p style="color: red">'),
    ],
)
def test_the_searches_find_what_they_are_for(search: object, text: str) -> None:
    assert callable(search)
    assert search(text)


def test_every_import_and_link_leads_to_a_file() -> None:
    paths = {asset.path for asset in read_assets()}
    missing, found = [], 0
    for file in OWN:
        text = file.read_text()
        targets = [Path(file.parent / name).resolve() for name in IMPORT.findall(text)]
        if file.suffix == ".js":
            missing += [f"{name_of(file)}: {each}" for each in targets if each not in FILES]
            found += len(targets)
        links = [one or other for one, other in LINK.findall(text)]
        missing += [f"{name_of(file)}: {each}" for each in links if each not in paths]
        found += len(links)
    assert missing == []
    assert found > len(OWN)


def test_every_file_is_used() -> None:
    used = {"index.html", "vendor/VERSIONS.md"}
    texts = {file: file.read_text() for file in OWN}
    for file, text in texts.items():
        used |= {name_of(Path(file.parent / name).resolve()) for name in IMPORT.findall(text)}
        used |= {(one or other).removeprefix("/assets/") for one, other in LINK.findall(text)}
    licences = {name for name in map(name_of, FILES) if name.endswith(".LICENSE.txt")}
    assert {name_of(file) for file in FILES} - licences == used


@pytest.mark.parametrize("file", MODULES, ids=name_of)
def test_a_module_says_what_it_is_and_is_short(file: Path) -> None:
    text = file.read_text()
    assert text.startswith(("/**", "//"))
    assert text.count("\n") <= MAX_LINES


def test_libraries_have_their_licences_and_versions() -> None:
    wanted = json.loads((BUNDLING / "package.json").read_text())["dependencies"]
    noted = (VENDOR / "VERSIONS.md").read_text()
    rows = re.findall(r"^\| (\S+\.js) \| (\S+) \| (\S+) \| (\S+) \|$", noted, re.MULTILINE)
    versions = {package: version for _, package, version, _ in rows}
    assert wanted.items() <= versions.items()
    assert {file for file, _, _, _ in rows} == {path.name for path in VENDOR.glob("*.js")}
    for file, package, version, licence in rows:
        text = (VENDOR / file.replace(".js", ".LICENSE.txt")).read_text()
        assert f"{package} {version}\n" in text
        assert licence == "MIT"
    assert "Permission is hereby granted, free of charge" in text


def test_the_versions_are_fixed_and_no_lock_names_a_registry() -> None:
    wanted = json.loads((BUNDLING / "package.json").read_text())
    for version in {**wanted["dependencies"], **wanted["devDependencies"]}.values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert not list(ROOT.glob("**/package-lock.json")) or _untracked_only()


def _untracked_only() -> bool:
    listed = subprocess.run(
        ["git", "ls-files", "*package-lock.json"], cwd=ROOT, capture_output=True, text=True
    )
    return listed.stdout == ""


def words(name: str) -> list[str]:
    text = (ASSETS / "js" / "sql" / "words.js").read_text()
    found = re.search(rf"export const {name} = `([^`]*)`", text)
    assert found
    return found[1].split()


def test_the_console_completes_words_that_duckdb_knows() -> None:
    def known(sql: str) -> set[str]:
        return {name for (name,) in duckdb.sql(sql).fetchall()}

    keywords = known("SELECT keyword_name FROM duckdb_keywords()")
    types = known("SELECT lower(type_name) FROM duckdb_types()")
    functions = known("SELECT function_name FROM duckdb_functions()")
    assert set(words("DUCKDB_KEYWORDS")) <= keywords
    assert set(words("DUCKDB_TYPES")) <= types
    # Functions over windows, and UNNEST, are a part of DuckDB's grammar and in no list.
    grammar = set(words("DUCKDB_FUNCTIONS")) - functions
    for name in grammar - {"unnest"}:
        arguments = {"ntile": "2", "nth_value": "x, 1"}.get(name, "")
        arguments = "x" if name.endswith(("_value", "lag", "lead")) and not arguments else arguments
        duckdb.sql(
            f"SELECT {name}({arguments}) OVER (ORDER BY x) FROM (VALUES (1)) v(x)"
        ).fetchall()
    duckdb.sql("SELECT unnest([1])").fetchall()
