"""Stories about time, played on the engine and on the reference.

Method: `player.py` says how a story is written. Its turns are short and long by turns, the first
is short in every other story of a file; a soak plays each in one gear alone too. The stories of
`faulty/` are wrong, and must be caught.
"""

from itertools import cycle, groupby
from pathlib import Path
from typing import Any

import pytest
from player import Story, play, read_stories
from soaking import SOAKING

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).parent / "transcripts"
STORIES = read_stories(FOLDER)
FAULTY = read_stories(FOLDER / "faulty")


GEARS = [("short", "long"), ("long", "short")]


def plays() -> list[Any]:
    """Return each story with the gears that it is played in, and the name of that."""
    found = []
    for _, stories in groupby(STORIES, lambda story: story.file):
        for story, gears in zip(stories, cycle(GEARS), strict=False):
            chosen = [gears, *([("short",), ("long",)] if SOAKING else [])]
            found += [pytest.param(story, each, id=f"{story}-{'-'.join(each)}") for each in chosen]
    return found


@pytest.mark.soak
@pytest.mark.parametrize(("story", "gears"), plays())
def test_a_story_goes_as_it_is_written(story: Story, gears: tuple[str, ...]) -> None:
    play(story, gears=gears)


@pytest.mark.parametrize("story", FAULTY, ids=str)
def test_a_faulty_story_is_noticed(story: Story) -> None:
    with pytest.raises(AssertionError, match="step"):
        play(story, gears=["short"])


def test_stories_have_titles_of_their_own() -> None:
    titles = [str(story) for story in STORIES]
    assert len(set(titles)) == len(titles)
