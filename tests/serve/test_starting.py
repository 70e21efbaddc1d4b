"""Work that cannot be interrupted is left behind, and the process that leaves it ends at once.

Method: the real threads; a process of its own whose command leaves work behind that never ends.
"""

import subprocess
import sys
import threading
import time

import pytest

from headrace.serve.starting import Stopped, is_left_behind, unless_stopped

LEAVING = """
import sys, threading, time
from headrace.cli import main
from headrace.serve.starting import Stopped, unless_stopped

def leave(_):
    stop = threading.Event()
    stop.set()
    try:
        unless_stopped(lambda: time.sleep(3600), stop)
    except Stopped:
        threading._shutdown = lambda: print("the interpreter was taken apart")
        return 7

main.call = leave
main.main()
"""


def test_work_is_waited_for_and_its_error_raised() -> None:
    assert unless_stopped(lambda: 1, threading.Event()) == 1
    with pytest.raises(ZeroDivisionError):
        unless_stopped(lambda: 1 / 0, threading.Event())
    assert not is_left_behind()


def test_work_that_is_left_behind_is_known_until_it_ends() -> None:
    stop, end = threading.Event(), threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        unless_stopped(end.wait, stop)
    assert is_left_behind()
    end.set()
    deadline = time.monotonic() + 10
    while is_left_behind():
        assert time.monotonic() < deadline


def test_a_process_that_leaves_work_behind_ends_at_once_with_its_exit_code() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (7, ""), done.stderr
