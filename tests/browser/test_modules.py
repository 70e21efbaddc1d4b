"""Modules of the dashboard by themselves: each is imported in a page, from the files as served.

Method: one table of cases for each module; what is expected is written out. The browser is in
India, half an hour beside every full hour of UTC, so that a local time cannot pass for one in UTC.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize
from stand_in import standing_in


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    size: ViewportSize = {"width": 900, "height": 600}
    with standing_in() as engine:
        context = browser.new_context(timezone_id="Asia/Kolkata", viewport=size)
        opened = context.new_page()
        opened.goto(f"{engine.url}/blank")
        yield opened
        context.close()


def call(page: Page, module: str, body: str, cases: Any) -> Any:
    """Return what a function answers to each case; `body` sees the module's exports as `m`."""
    script = "async ([path, body, cases]) => { const m = await import(path);"
    script += f" const answer = {body}; return cases.map((each) => answer(...each)); }}"
    return page.evaluate(script, [f"/assets/js/{module}", body, cases])


def test_a_tab_that_becomes_visible_starts_no_second_loop(page: Page) -> None:
    runs = page.evaluate("""async () => {
      const { Scope } = await import("/assets/js/scope.js");
      const scope = new Scope();
      const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      let under_way = 0;
      let most = 0;
      scope.every(1, async () => {
        most = Math.max(most, (under_way += 1));
        await pause(30);
        under_way -= 1;
      });
      for (let turn = 0; turn < 10; turn += 1) {
        document.dispatchEvent(new Event("visibilitychange"));
        await pause(10);
      }
      scope.close();
      return most;
    }""")
    assert runs == 1
