"""A browser for the tests of the dashboard: the machine's Chromium, driven by Playwright."""

import os
from collections.abc import Iterator

import pytest
from chromium import find_chromium
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run a browser. Where there is none its tests are skipped, but not in CI.

    No longer than its tests: Playwright's event loop would be the one of all tests that follow.
    """
    path = find_chromium()
    if path is None:
        if os.environ.get("HEADRACE_CI") or os.environ.get("CI"):
            pytest.fail("there is no Chromium; `make test` installs Debian's, as root")
        pytest.skip("there is no Chromium on this machine; install `chromium`")
    with sync_playwright() as playwright:
        # As root Chromium has no sandbox; it opens nothing but pages of the test's own server.
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()
