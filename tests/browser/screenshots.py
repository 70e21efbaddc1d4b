"""Write pictures of every page of the dashboard to a folder: `make screenshots`.

Light and dark, wide and as a phone shows them, from a demo that has run for a while.
"""

import sys
import tempfile
import time
from pathlib import Path

from chromium import find_chromium
from demo import PAGES, running_demo
from playwright.sync_api import Browser, sync_playwright

WARM_SECONDS = 75
SIZES = {"wide": (1280, 860), "phone": (390, 844)}


def main(folder: Path) -> None:
    """Take all pictures."""
    path = find_chromium()
    if path is None:
        sys.exit("there is no Chromium; `python tests/browser/chromium.py` installs Debian's")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as demo,
        running_demo(Path(demo) / "demo", rate=500) as link,
        sync_playwright() as playwright,
    ):
        time.sleep(WARM_SECONDS)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for size, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                _take(browser, link, folder, (width, height), scheme, size)
        browser.close()


def _take(
    browser: Browser, link: str, folder: Path, size: tuple[int, int], scheme: str, name: str
) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, device_scale_factor=2
    )
    page = context.new_page()
    page.goto(link)
    page.get_by_test_id("throughput").wait_for()
    for title, place in PAGES.items():
        page.goto(link.partition("#")[0] + place)
        page.wait_for_timeout(6_000 if title in ("overview", "graph") else 2_500)
        if title == "sql":
            page.get_by_test_id("run").click()
            page.get_by_test_id("answer-rows").wait_for()
        page.screenshot(path=folder / f"{title}-{name}-{scheme}.png", full_page=name == "phone")
        print(folder / f"{title}-{name}-{scheme}.png")
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/screenshots"))
