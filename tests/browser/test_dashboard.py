"""The dashboard in a real browser, over a demo that runs.

Method: one demo for all tests; Chromium opens its pages, most of them in one tab. What a page shows
is compared with what the API says at the same commit, and the layout is measured.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Literal

import httpx
import pytest
from demo import PAGES, running_demo
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.spark

WAIT_MS = 30_000
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, Scheme] = ("light", "dark")


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_demo(tmp_path_factory.mktemp("browser") / "demo") as found:
        yield found


@pytest.fixture(scope="module")
def tab(browser: Browser, link: str) -> Iterator[tuple[Page, list[str]]]:
    """Open the dashboard; the list gets what goes wrong in the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, color_scheme="light")
    context.set_default_timeout(WAIT_MS)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda each: problems.append(each.text) if each.type == "error" else None)
    opened.goto(link)
    opened.get_by_test_id("throughput").wait_for()
    yield opened, problems
    context.close()


@pytest.fixture
def page(tab: tuple[Page, list[str]], link: str) -> Iterator[Page]:
    opened, problems = tab
    yield opened
    found = problems.copy()
    problems.clear()
    assert found == []


def go(page: Page, link: str, place: str) -> None:
    page.goto(link.partition("#")[0] + place)


def ask(link: str, sql: str) -> dict[str, Any]:
    url, _, token = link.partition("/#token=")
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.post(f"{url}/v1/sql", json={"sql": sql}, headers=headers, trust_env=False)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def number(text: str) -> Decimal:
    found = re.search(r"-?[\d,. \u202f]+", text)
    assert found is not None, text
    return Decimal(re.sub(r"[^\d.-]", "", found[0]))


def test_the_token_leaves_the_address_and_no_script_can_read_it(page: Page) -> None:
    assert "token" not in page.url
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("Object.keys(localStorage).some(key => /token/i.test(key))") is False


def test_numbers_on_the_page_change(page: Page, link: str) -> None:
    go(page, link, "#/overview")
    commit = page.get_by_test_id("commit")
    first = commit.inner_text()
    expect(commit).not_to_have_text(first, timeout=WAIT_MS)
    expect(page.get_by_test_id("throughput")).to_contain_text(re.compile(r"[1-9]"))
    expect(page.get_by_test_id("dead-total")).to_contain_text(re.compile(r"[1-9]"))


def test_rows_of_a_view_are_those_that_sql_gives_at_the_same_commit(page: Page, link: str) -> None:
    go(page, link, "#/view/countries")
    page.get_by_test_id("row").first.wait_for()
    for _ in range(40):
        # Both are read again until they are of one commit: turns go on meanwhile.
        commit = page.get_by_test_id("rows-commit").inner_text()
        answer = ask(link, "SELECT country, payments FROM countries")
        shown = {
            cells[0]: number(cells[1])
            for cells in (
                row.locator("td, th").all_inner_texts()[:2]
                for row in page.get_by_test_id("row").all()
            )
        }
        same = page.get_by_test_id("rows-commit").inner_text() == commit
        if same and number(commit) == answer["commit"]:
            assert shown == {country: Decimal(n) for country, n in answer["rows"]}
            return
    pytest.fail("page and SQL were never read at one commit")


def test_charts_are_drawn(page: Page, link: str) -> None:
    go(page, link, "#/view/revenue_per_minute")
    canvas = page.locator("[data-testid=chart-canvas] canvas").first
    canvas.wait_for()
    page.wait_for_function(
        """() => {
          const canvas = document.querySelector('[data-testid=chart-canvas] canvas');
          const drawn = canvas?.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return drawn && new Set(new Uint32Array(drawn.data.buffer)).size > 3;
        }"""
    )
    go(page, link, "#/view/shops")
    expect(page.get_by_test_id("bar").first).to_be_visible()


def test_a_dead_letter_can_be_read(page: Page, link: str) -> None:
    go(page, link, "#/stream/payments")
    tab = page.get_by_test_id("tab-dead")
    if tab.count():
        tab.click()
    letter = page.get_by_test_id("dead-letter").first
    letter.wait_for()
    expect(letter).to_contain_text(re.compile(r"JSON|amount"))


def test_sql_is_answered_and_can_be_shared(page: Page, link: str) -> None:
    go(page, link, "#/sql?q=SELECT%20count(*)%20AS%20n%20FROM%20shops")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("answer-rows")).to_contain_text("14")
    page.reload()
    expect(page.get_by_test_id("editor")).to_contain_text("FROM shops")


def test_a_view_is_paused_and_resumed_from_its_page(page: Page, link: str) -> None:
    go(page, link, "#/view/visits")
    page.get_by_test_id("pause").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("pause")).to_contain_text(re.compile("resume", re.IGNORECASE))
    page.get_by_test_id("pause").click()
    if page.get_by_test_id("confirm-yes").count():
        page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("pause")).to_contain_text(re.compile("pause", re.IGNORECASE))


@pytest.mark.parametrize(("width", "scheme", "other"), [(390, *SCHEMES), (1280, *SCHEMES[::-1])])
def test_every_page_fits_the_screen(
    browser: Browser, link: str, width: int, scheme: Scheme, other: Scheme
) -> None:
    """Every page is opened in one scheme and then shown in the other one too."""
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, has_touch=width < 500
    )
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.goto(link)
    page.get_by_test_id("throughput").wait_for()
    backgrounds: dict[str, set[str]] = {scheme: set(), other: set()}
    for name, place in PAGES.items():
        page.emulate_media(color_scheme=scheme)
        go(page, link, place)
        page.locator("main").wait_for()
        page.wait_for_timeout(700)
        backgrounds[scheme].add(measured(page, f"{name}, {scheme}"))
        page.emulate_media(color_scheme=other)
        page.wait_for_timeout(100)
        backgrounds[other].add(measured(page, f"{name}, {other}"))
    for shown, (background,) in backgrounds.items():
        channels = [int(each) for each in re.findall(r"\d+", background)[:3]]
        assert (sum(channels) / 3 < 128) == (shown == "dark"), background
    context.close()


def measured(page: Page, name: str) -> str:
    """Check that a page fits; return its background."""
    room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert room[0] <= room[1], f"{name} is {room[0]} pixels wide"
    assert page.evaluate(OVERLAPS) == [], name
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


#: Panels and headings that lie over each other, as the texts that they begin with.
OVERLAPS = """() => {
  const floats = (each) => ['sticky', 'fixed'].includes(getComputedStyle(each).position);
  const boxes = [...document.querySelectorAll('main section, main h1, main h2, header, nav')]
    .filter((each) => each.offsetParent !== null && !floats(each))
    .map((each) => [each, each.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && box.height > 0);
  const found = [];
  for (const [one, a] of boxes) {
    for (const [other, b] of boxes) {
      if (one === other || one.contains(other) || other.contains(one)) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 1) {
        found.push([one, other].map((each) => each.innerText.slice(0, 30)));
      }
    }
  }
  return found;
}"""
