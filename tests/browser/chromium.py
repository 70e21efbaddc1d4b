"""Find the machine's Chromium; `python tests/browser/chromium.py` installs Debian's where it can.

Playwright's own browsers come from no package registry, so the tests drive the one of the system.
"""

import os
import shutil
import subprocess
import sys

__all__ = ["NAMES", "find_chromium", "install_chromium"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """Return the path of a Chromium, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install_chromium() -> str:
    """Install Debian's Chromium unless there is one; return what was done, as a sentence."""
    if (found := find_chromium()) is not None:
        return f"Chromium is there: {found}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "there is no Chromium; tests of the dashboard are skipped (install `chromium`)"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
    ):
        done = subprocess.run(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        if done.returncode:
            return f"Chromium cannot be installed: {done.stderr.strip().splitlines()[-1:]}"
    return "Chromium was installed"


if __name__ == "__main__":
    print(install_chromium(), file=sys.stderr)
