"""Stories about time, played on the engine in both gears and on the reference.

Method: `player.py` says how a story is written. Those of `faulty/` are wrong, and must be caught.
"""

from pathlib import Path

import pytest
from player import Story, play, read_stories

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).parent / "transcripts"
STORIES = read_stories(FOLDER)
FAULTY = read_stories(FOLDER / "faulty")


@pytest.mark.parametrize("gear", ["short", "long"])
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_story_goes_as_it_is_written(story: Story, gear: str) -> None:
    play(story, gear=gear)


@pytest.mark.parametrize("story", FAULTY, ids=str)
def test_a_faulty_story_is_noticed(story: Story) -> None:
    with pytest.raises(AssertionError, match="step"):
        play(story, gear="short")


def test_stories_have_titles_of_their_own() -> None:
    titles = [str(story) for story in STORIES]
    assert len(set(titles)) == len(titles)
