"""An append that stops in the middle says which lines are stored, and `--resume` goes on there.

Method: a real process appends small batches and is killed at every fault point of the log, or finds
a full disk; then `--resume` appends the rest. In the end every line is there once. What is refused
and not killed runs in the test's own process, with a pipe as its stdin.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cli.commands import Answer, Run
from headrace.cli.log import appending, lines
from headrace.cli.log.runs import MAX_SLOTS, Task, take_slot
from headrace.log import EmbeddedLog, Log
from headrace.testing.log.suite import rows

LINES = [f'{{"card": "c{n % 50}", "n": {n}}}' for n in range(2_000)]
# Batches of a few lines, so that there is a middle to stop in.
SMALL = """
import sys
from headrace.cli.log import lines
lines.CHUNK_BYTES = int(sys.argv.pop(1))
from headrace.cli.main import main
main()
"""


def run_process(
    *arguments: object, chunk: int = 4_000, fault: str = "", input: str | None = None
) -> Answer:
    environment = {**os.environ, **({"HEADRACE_FAULT": fault} if fault else {})}
    done = subprocess.run(
        [sys.executable, "-c", SMALL, str(chunk), *map(str, arguments)],
        input=input,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "payments.jsonl"
    file.write_text("\n".join(LINES))
    return file


def stored(log: Log, topic: str = "payments") -> list[str]:
    return [row["value"].decode() for place in log.extents(topic) for row in rows(log, place)]


def stored_in(project: Path) -> list[str]:
    log = EmbeddedLog(project / ".headrace" / "log")
    found = stored(log)
    log.close()
    return found


@pytest.mark.parametrize(
    "fault",
    [
        "log_torn:30",
        "log_in_transaction:31",
        "log_before_decision:8",
        "log_after_decision:8",
        "log_in_acknowledgement:31",
    ],
)
def test_killed_anywhere_it_goes_on_without_a_line_lost_or_twice(
    project: Path, headrace: Run, file: Path, fault: str
) -> None:
    killed = run_process("append", "payments", file, "-p", project, fault=fault)
    assert killed.code == -signal.SIGKILL
    part = stored_in(project)
    assert 0 < len(part) < len(LINES)
    assert sorted(part) == sorted(LINES[: len(part)])  # a beginning, and nothing else

    refused = headrace("append", "payments", file, "-p", project)
    assert refused.code == 2
    assert f"stopped after it had stored {len(part):,} records" in refused.err
    assert f"headrace append payments {file} --project {project} --resume" in refused.err
    resumed = headrace("append", "payments", file, "--resume", "--json", "-p", project)
    assert resumed.code == 0, resumed.err
    assert resumed.rows[0]["stored_before"] == len(part)
    assert resumed.rows[0]["records"] == len(LINES) - len(part)
    assert sorted(stored_in(project)) == sorted(LINES)
    # Once more changes nothing; as an append of its own it is the same again.
    assert headrace("append", "payments", file, "--resume", "--json", "-p", project).rows[0][
        "records"
    ] == 0  # fmt: skip
    assert len(stored_in(project)) == len(LINES)
    assert headrace("append", "payments", file, "-p", project).code == 0
    assert sorted(stored_in(project)) == sorted(LINES * 2)


def test_killed_again_and_again_it_ends_with_every_line_once(project: Path, file: Path) -> None:
    options: tuple[str, ...] = ()
    for number in range(4):
        fault = f"log_after_decision:{number + 3}"
        run_process("append", "payments", file, "-p", project, *options, fault=fault)
        options = ("--resume",)
    last = run_process("append", "payments", file, "-p", project, *options)
    assert last.code == 0, last.err
    assert sorted(stored_in(project)) == sorted(LINES)


def test_all_of_it_is_appended_again_on_demand(project: Path, headrace: Run, file: Path) -> None:
    run_process("append", "payments", file, "-p", project, fault="log_after_decision:3")
    part = len(stored_in(project))
    assert headrace("append", "payments", file, "--again", "-p", project).code == 0
    assert len(stored_in(project)) == part + len(LINES)


def test_stdin_goes_on_when_the_same_input_is_piped_again(project: Path, file: Path) -> None:
    text = file.read_text()
    killed = run_process(
        "append", "payments", "-p", project, fault="log_after_decision:5", input=text
    )
    assert killed.code == -signal.SIGKILL
    assert run_process("append", "payments", "-p", project, "--resume", input=text).code == 0
    assert sorted(stored_in(project)) == sorted(LINES)


@pytest.fixture
def pipe(project: Path, headrace: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Append what comes through a pipe, in small batches, in this process."""

    def append(text: str, *options: str) -> Answer:
        reading, writing = os.pipe()

        def write() -> None:
            with suppress(BrokenPipeError), open(writing, "w") as pipe:  # it is refused in between
                pipe.write(text)

        writer = threading.Thread(target=write)
        writer.start()
        with open(reading) as stdin, monkeypatch.context() as patch:
            patch.setattr(lines, "CHUNK_BYTES", 4_000)
            patch.setattr(sys, "stdin", stdin)
            answer = headrace("append", "payments", "-p", project, *options)
        writer.join()
        return answer

    return append


LARGE = "x" * (2 << 20)


@pytest.mark.parametrize("between", ["", "1\n2\n", LARGE], ids=["empty", "whole", "refused"])
def test_a_pipe_that_stopped_goes_on_although_another_was_appended_since(
    project: Path, pipe: Callable[..., Answer], between: str
) -> None:
    stopped = pipe("\n".join([*LINES[:300], LARGE]))
    assert stopped.code == 2
    assert "Pipe the same input into `headrace append payments - --project" in stopped.err
    assert 0 < len(stored_in(project)) <= 300
    pipe(between)
    resumed = pipe("\n".join(LINES), "--resume")
    assert resumed.code == 0, resumed.err
    whole = sorted([*LINES, *(between.split() if between != LARGE else [])])
    assert sorted(stored_in(project)) == whole
    again = pipe("\n".join(LINES), "--resume")
    assert again.code == 2
    assert "no append from a pipe to payments stopped in the middle" in again.err
    assert sorted(stored_in(project)) == whole


def test_of_two_pipes_that_stopped_the_newest_goes_on_first(
    project: Path, pipe: Callable[..., Answer]
) -> None:
    first, second = ["1", "2"], ["3", "4"]
    for line, _ in (first, second):
        assert pipe(f"{line}\n{LARGE}").code == 2
    other = pipe("\n".join(first), "--resume")
    assert other.code == 2
    assert "Pipe the input of the append that stopped last; others go on after it." in other.err
    for each in (second, first):
        assert pipe("\n".join(each), "--resume").code == 0
    assert sorted(stored_in(project)) == ["1", "2", "3", "4"]


def test_what_a_substituted_process_brings_is_gone_on_with_as_a_pipe(project: Path) -> None:
    def append(*words: str) -> Answer:
        headrace = f"{sys.executable} -m headrace.cli.main append payments"
        command = f"{headrace} {' '.join(words)} -p {project}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
        return Answer(done.returncode, done.stdout, done.stderr)

    stopped = append("<(printf '1\\n'; head -c 2000000 /dev/zero)")
    assert stopped.code == 2
    assert (
        f"Pipe the same input into `headrace append payments - --project {project} --resume`"
        in (stopped.err)
    )
    assert append("- --resume", "<<< $'1\\n2'").code == 0
    assert sorted(stored_in(project)) == ["1", "2"]


def test_nothing_stored_is_told_in_a_sentence(project: Path, headrace: Run, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"x" * (2 << 20))
    refused = headrace("append", "payments", file, "-p", project)
    assert refused.err.endswith(
        "\nNothing was stored. Correct this and run the same command again.\n"
    )
    file.write_bytes(b"1\n" + b"x" * (2 << 20))
    refused = headrace("append", "payments", file, "-p", project)
    assert f"Line 1 of {file} is stored, no other is." in refused.err
    assert refused.err.endswith("--resume` goes on behind it.\n")


def test_the_command_to_go_on_has_the_options_of_the_run_that_stopped(
    project: Path, headrace: Run, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"1\n" + b"x" * (2 << 20))
    headrace("append", "payments", file, "--key", "a b", "-p", project)
    go_on = f"headrace append payments {file} --project {project} --key 'a b' --resume"
    for options in ((), ("--no-key",)):
        refused = headrace("append", "payments", file, *options, "-p", project)
        assert f"stored 1 record. To append the others: `{go_on}`" in refused.err
    other = headrace("append", "payments", file, "--resume", "-p", project)
    assert f"had --key 'a b'. Use the same ones: `{go_on}`." in other.err


def test_ctrl_c_tells_which_lines_are_stored(project: Path, headrace: Run, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SMALL, "4000", "append", "payments", "-", "-p", project],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts the tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None
    process.stdin.write("\n".join(LINES[:10]) + "\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while len(_peek(project)) < 10:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted. Lines 1 to 10 of stdin are stored, no other is." in err
    assert "Pipe the same input into `headrace append payments -" in err


def _peek(project: Path) -> list[str]:
    return stored_in(project) if (project / ".headrace/log/payments/topic.json").exists() else []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs takes root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_with_the_lines_that_are_stored(
    small_disk: Path, headrace: Run, file: Path
) -> None:
    project = small_disk / "shop"
    headrace("init", project)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(250_000))
    full = run_process("append", "payments", file, "-p", project)
    assert full.code == 3
    assert "no space left" in full.err
    assert "append again" not in full.err
    part = len(stored_in(project))
    assert 0 < part < len(LINES)
    assert f"Lines 1 to {part:,} of {file} are stored, no other is." in full.err
    assert f"`headrace append payments {file} --project {project} --resume` goes on" in full.err
    ballast.unlink()
    assert run_process("append", "payments", file, "-p", project, "--resume").code == 0
    assert sorted(stored_in(project)) == sorted(LINES)


def test_a_line_that_is_too_large_is_named_with_what_is_stored_before_it(
    project: Path, headrace: Run, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"1\n2\n" + b"x" * (2 << 20) + b"\n3\n")
    refused = headrace("append", "payments", file, "-p", project)
    assert refused.code == 2
    assert f"{file}:3: this line is over" in refused.err
    assert f"Lines 1 to 2 of {file} are stored, no other is." in refused.err
    file.write_bytes(b"1\n2\nmended\n3\n")
    assert headrace("append", "payments", file, "--resume", "-p", project).code == 0
    assert sorted(stored_in(project)) == ["1", "2", "3", "mended"]


def test_a_file_that_grew_goes_on_and_one_that_changed_is_refused(
    project: Path, headrace: Run, tmp_path: Path
) -> None:
    file = tmp_path / "app.log"
    file.write_text("a\nb\n")
    resume = ("append", "payments", file, "--resume", "-p", project)
    unknown = headrace(*resume)
    assert unknown.code == 2
    assert "no earlier append of it to payments is known" in unknown.err
    headrace("append", "payments", file, "-p", project)
    file.write_text("a\nb\nc\n")
    assert headrace(*resume).code == 0
    assert sorted(stored_in(project)) == ["a", "b", "c"]
    for changed in ("a\nB\nc\nd\n", "a\nb\n", "ab\nc\nd\n", ""):
        file.write_text(changed)
        refused = headrace(*resume)
        assert refused.code == 2
        assert (
            "the records it begins with are not the 3 that were appended to payments" in refused.err
        )
    other = headrace(*resume, "--key", "k")
    assert (other.code, "had no options. Use the same ones: `headrace" in other.err) == (2, True)
    assert len(stored_in(project)) == 3


def test_a_topic_that_was_made_anew_is_not_gone_on_with(
    project: Path, headrace: Run, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_text("a\nb\n")
    headrace("append", "clicks", file, "--create", "-p", project)
    headrace("topics", "delete", "clicks", "--yes", "-p", project)
    headrace("topics", "create", "clicks", "-p", project)
    refused = headrace("append", "clicks", file, "--resume", "-p", project)
    assert refused.code == 2
    assert "clicks: the topic no longer knows of the 2 records" in refused.err


def test_an_append_whose_outcome_is_not_known_says_so(
    project: Path, headrace: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log fails within the second batch, and cannot be asked afterwards."""
    from headrace.errors import Unreachable

    calls = []
    real = appending.Appending._store

    def fail(*arguments: object) -> object:
        calls.append(1)
        if len(calls) < 2:
            return real(*arguments)  # type: ignore[arg-type]
        monkeypatch.setattr(EmbeddedLog, "last_sequence", refuse)
        raise Unreachable("the log is gone.")

    def refuse(*_: object) -> int:
        raise Unreachable("the log is gone.")

    with monkeypatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", 4_000)
        patch.setattr(appending.Appending, "_store", fail)
        answer = headrace("append", "payments", file, "-p", project)
    assert answer.code == 3
    first = len(stored_in(project))
    assert f"Lines 1 to {first} of {file} are stored; whether lines {first + 1} to" in answer.err
    assert "finds out, and goes on behind what is stored" in answer.err
    monkeypatch.undo()
    assert headrace("append", "payments", file, "--resume", "-p", project).code == 0
    assert sorted(stored_in(project)) == sorted(LINES)


# Slots.


def test_slots_are_bounded_and_finished_runs_are_forgotten_first(tmp_path: Path) -> None:
    def task(name: str) -> Task:
        return Task("log", "t", name, "")

    producers = set()
    for number in range(MAX_SLOTS + 10):
        with take_slot(tmp_path, task(f"file {number}"), alone=True) as slot:
            producers.add(slot.begin(task(f"file {number}")).producer)
            if number != 3:
                slot.finish()
    assert len(producers) == MAX_SLOTS
    with take_slot(tmp_path, task("file 3"), alone=True) as slot:
        assert slot.run is not None
        assert not slot.run.finished
    with take_slot(tmp_path, task("file 4"), alone=True) as slot:
        assert slot.run is None or slot.run.task.source != "file 4"


def test_a_slot_belongs_to_one_process_and_a_torn_one_is_begun_anew(tmp_path: Path) -> None:
    task = Task("log", "t", "file", "x" * 5_000 + "\u2028" * 5_000)
    with take_slot(tmp_path, task, alone=True) as slot:
        first = slot.begin(task)
        with take_slot(tmp_path, task, alone=False) as other:
            assert other.begin(task).producer != first.producer
        with (
            pytest.raises(Exception, match="another process is appending it to t"),
            take_slot(tmp_path, task, alone=True),
        ):
            pass
    (tmp_path / "0").write_bytes(b'{"version": 1, "prod')
    (tmp_path / "1").unlink()
    with take_slot(tmp_path, task, alone=True) as slot:
        assert slot.run is None
        assert slot.begin(task).producer != first.producer
