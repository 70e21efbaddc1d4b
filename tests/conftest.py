"""Fixtures for all tests. Spark is started once per run, by the first test that needs it."""

import sys
from pathlib import Path

# Helper modules stand beside the tests that use them.
for folder in Path(__file__).parent.iterdir():
    if folder.is_dir() and not (folder / "__init__.py").exists():
        sys.path.insert(0, str(folder))
