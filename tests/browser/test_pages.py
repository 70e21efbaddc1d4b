"""Pages of the dashboard over an engine of canned answers: states that a demo is never in.

Method: the files are those that are served; each test sets what the engine answers, opens a page
and does what a person would. No engine runs.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect
from stand_in import Asked, Refusal, StandIn, column, standing_in, view

WAIT_MS = 10_000
RERUN_MS = 1_050  # a query runs again after a second at the earliest
LONG = '{"note": "' + "x" * 500 + ' end"}'


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[tuple[Page, StandIn]]:
    with standing_in() as engine:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(WAIT_MS)
        yield context.new_page(), engine
        context.close()


@pytest.fixture
def page(tab: tuple[Page, StandIn]) -> Iterator[Page]:
    """Give the tab; nothing may have been thrown in it at the end."""
    opened, _ = tab
    problems: list[str] = []
    opened.on("pageerror", note := lambda error: problems.append(str(error)))
    yield opened
    opened.remove_listener("pageerror", note)
    assert problems == []


@pytest.fixture
def engine(tab: tuple[Page, StandIn]) -> StandIn:
    tab[1].reset()
    return tab[1]


def go(page: Page, engine: StandIn, place: str) -> None:
    """Open a place as a link from outside does: the page is loaded anew."""
    page.goto("about:blank")
    page.goto(f"{engine.url}/{place}")


def refresh(page: Page) -> None:
    """Ask for the status now instead of within a second."""
    page.evaluate("import('/assets/js/live.js').then(({ live }) => live.refresh())")


def define(engine: StandIn, sql: str = "SELECT 1", version: str = "v1", **changes: Any) -> None:
    """Define the view `seen`, whose rows have no column of their key, with three rows."""
    columns = [column("ts", "TIMESTAMP"), column("name", "STRING")]
    definition = {"name": "seen", "sql": sql, "columns": columns, "key": ["partition", "offset"]}
    definition |= {"window": None, "inputs": ["orders"], "emit": "changes", "topic": None}

    def rows(asked: Asked) -> Any:
        if unknown := [each for each in asked.parameters.get("order", []) if each != "ts"]:
            raise Refusal(400, f"there is no column {unknown[0]}")
        if "ts>=bad" in asked.parameters.get("where", []):
            raise Refusal(400, "bad is no value of column ts")
        names = ["one", "two", LONG]
        found = [{"ts": f"2026-01-01T00:00:0{at}Z", "name": name} for at, name in enumerate(names)]
        added = [column("_events", "BIGINT"), column("_closed", "BOOLEAN")]
        stands = {"commit": 7, "watermark_us": None, "position": "", "more": True}
        return {"columns": columns + added, "key": definition["key"], "rows": found, **stands}

    engine.answers["/v1/views/seen"] = rows
    engine.definitions = {"views": [definition], "streams": [], "sinks": []}
    engine.views = [view("seen", version, **changes)]


def test_a_large_view_without_its_key_shows_all_rows(page: Page, engine: StandIn) -> None:
    define(engine)
    go(page, engine, "#/view/seen")
    expect(page.get_by_test_id("rows").get_by_test_id("row")).to_have_count(3)
    expect(page.get_by_test_id("rows").locator("th")).to_have_count(2)


def test_a_filter_that_is_refused_can_be_mended(page: Page, engine: StandIn) -> None:
    define(engine)
    go(page, engine, "#/view/seen?sort=partition&filter=" + quote("ts>=bad"))
    expect(page.get_by_test_id("panel-error")).to_contain_text("no value of column ts")
    page.get_by_test_id("filter").fill("name=x")
    expect(page.get_by_test_id("row")).to_have_count(3)  # the engine's work: not filtered again
    page.get_by_test_id("filter").fill("one")
    page.evaluate("() => { location.hash = '#/views'; }")
    page.wait_for_timeout(250)
    assert page.url.endswith("#/views")  # the filter stays with the page that it was typed in


def test_a_long_value_is_shown_whole_by_key_and_by_click(page: Page, engine: StandIn) -> None:
    define(engine)
    go(page, engine, "#/view/seen")
    cell = page.locator("td.long")
    cell.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("whole-text").locator("pre")).to_have_text(LONG)
    page.keyboard.press("Escape")
    cell.click()
    expect(page.get_by_test_id("whole-text")).to_be_visible()


def test_a_view_that_comes_back_is_shown_as_it_is_then(page: Page, engine: StandIn) -> None:
    go(page, engine, "#/view/seen?tab=definition")
    expect(page.get_by_test_id("not-found")).to_be_visible()
    define(engine, "SELECT 'first'")
    refresh(page)
    expect(page.get_by_test_id("definition")).to_contain_text("first")
    expect(page.get_by_test_id("not-found")).to_be_hidden()
    # The tab that the address names is in view, though rows have come above it.
    expect(page.get_by_test_id("row")).to_have_count(3)
    expect(page.get_by_test_id("tab-definition")).to_be_in_viewport()
    define(engine, "SELECT 'second'", "v2", counters={"seen": 9, "late": 0, "pairs": 0, "dead": 0})
    refresh(page)
    expect(page.get_by_test_id("definition")).to_contain_text("second")
    expect(page.get_by_test_id("counters")).to_contain_text("seen 9")


ANSWER = {"columns": [column("n", "int64")], "rows": [[1]], "truncated": False, "milliseconds": 1}


def test_a_link_waits_for_run_and_the_query_button_does_not(page: Page, engine: StandIn) -> None:
    define(engine)
    engine.answers["/v1/sql"] = {**ANSWER, "commit": 7}
    go(page, engine, "#/sql?q=SELECT%201")
    expect(page.get_by_test_id("sql-status")).to_contain_text("Run the query")
    assert engine.count("/v1/sql") == 0
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("answer-rows")).to_be_visible()
    page.evaluate("() => { location.hash = '#/view/seen'; }")
    page.get_by_test_id("open-sql").click()
    expect(page.get_by_test_id("answer-rows")).to_be_visible()
    assert engine.count("/v1/sql") == 2


#: From now on a query has no answer, and runs until it is cancelled.
NO_ANSWER = """() => {
  const { fetch } = window;
  const hang = ({ signal }) => new Promise((_, refuse) => {
    signal.addEventListener("abort", () => refuse(signal.reason));
  });
  window.fetch = (path, options) => (path === "/v1/sql" ? hang(options) : fetch(path, options));
}"""


def test_cancel_ends_running_again_and_a_busy_engine_does_not(page: Page, engine: StandIn) -> None:
    def refuse(_: Asked) -> Any:
        raise Refusal(429, "too many queries")

    define(engine)
    engine.answers["/v1/sql"] = {**ANSWER, "commit": 6}  # behind the status: there is a change
    go(page, engine, "#/sql?q=SELECT%201")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("answer-rows")).to_be_visible()
    engine.answers["/v1/sql"] = refuse
    page.get_by_test_id("rerun").check()
    page.wait_for_timeout(RERUN_MS)
    refresh(page)
    expect(page.get_by_test_id("sql-status")).to_contain_text("too many queries")
    expect(page.get_by_test_id("rerun")).to_be_checked()
    expect(page.get_by_test_id("answer-rows")).to_be_visible()
    page.evaluate(NO_ANSWER)
    page.get_by_test_id("run").click()
    page.get_by_test_id("cancel").click()
    expect(page.get_by_test_id("sql-status")).to_have_text("Cancelled")
    expect(page.get_by_test_id("rerun")).not_to_be_checked()


def test_a_failed_log_out_says_so(page: Page, engine: StandIn) -> None:
    def refuse(_: Asked) -> Any:
        raise Refusal(503, "the engine stops")

    engine.answers["/v1/logout"] = refuse
    go(page, engine, "#/views")
    page.get_by_test_id("logout").click()
    expect(page.get_by_test_id("confirm")).to_contain_text("the engine stops")
    expect(page.get_by_test_id("token")).to_have_count(0)
    engine.answers["/v1/logout"] = {}
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("token")).to_be_visible()


def test_a_token_is_kept_until_the_engine_has_answered(page: Page, engine: StandIn) -> None:
    def answer(asked: Asked) -> Any:
        assert asked.body == {"token": "a/b"}
        if engine.count("/v1/login") == 1:
            raise Refusal(503)
        return {"name": "test", "role": "admin", "expires_us": None}

    engine.answers["/v1/login"] = answer
    del engine.answers["/v1/session"]  # there is none yet
    go(page, engine, "#token=a%2Fb")
    expect(page.get_by_test_id("panel-error")).to_be_visible()
    assert "token" not in page.url
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_test_id("throughput")).to_be_visible()


def test_alarms_lead_to_duplicates_and_a_link_keeps_the_focus(page: Page, engine: StandIn) -> None:
    stream = {"name": "orders", "version": "v1", "state": "live", "topic": "orders"}
    stream |= {"lag_records": 0, "watermark_us": None, "guarded": True, "partitions": []}
    engine.streams = [{**stream, "counters": {"read": 10, "dead": 0, "duplicate": 3}}]
    sink = {"name": "out", "view": "seen", "version": "v1", "topic": "out", "mode": "append"}
    engine.sinks = [{**sink, "told": 1, "rows": 0}]
    go(page, engine, "#/overview")
    alarm = page.locator("a.figure", has=page.get_by_test_id("duplicate-total"))
    expect(alarm).to_have_attribute("href", "#/stream/orders?tab=duplicate")
    page.evaluate("() => { location.hash = '#/sink/out'; }")
    link = page.get_by_role("link", name="seen@v1")
    link.focus()
    engine.sinks = [{**sink, "told": 2, "rows": 5}]
    refresh(page)
    expect(page.get_by_text("5 rows")).to_be_visible()
    expect(link).to_be_focused()


def test_a_table_stands_among_the_views_with_what_its_changes_put_aside(
    page: Page, engine: StandIn
) -> None:
    changes = {"name": "cards", "version": "s1", "kind": "table", "state": "live", "topic": "cards"}
    changes |= {"lag_records": 0, "watermark_us": None, "guarded": True, "partitions": []}
    changes |= {"unit": "main", "counters": {"read": 10, "dead": 37, "duplicate": 0}}
    engine.streams, engine.views = [changes], [view("cards", kind="table", inputs=["cards"])]
    go(page, engine, "#/views")
    row = page.get_by_test_id("row")
    expect(row).to_contain_text("table")
    expect(row).to_contain_text("37")
    page.evaluate("() => { location.hash = '#/streams'; }")
    expect(page.get_by_text("No stream to show")).to_be_visible()
