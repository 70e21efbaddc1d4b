"""Groups are looked at and moved; records are shown to a group; a log is copied."""

from pathlib import Path

from cli.commands import Run
from headrace.consume import find_group, join_group, reset_group
from headrace.log import EmbeddedLog, Partition, records


def open_log(project: Path) -> EmbeddedLog:
    return EmbeddedLog(project / ".headrace" / "log")


def fill(project: Path) -> EmbeddedLog:
    log = open_log(project)
    log.create_topic("clicks", partitions=2)
    for number in (0, 1):
        values = [f"{number}-{n}" for n in range(5)]
        log.append("clicks", records(values), partition=number)
    return log


def test_a_group_is_shown_each_record_once(project: Path, headrace: Run) -> None:
    log = fill(project)
    tail = ("tail", "clicks", "--group", "g", "--json", "-p", project)
    first = headrace(*tail, "--limit", 4)
    assert first.code == 0, first.err
    rest = headrace(*tail)
    shown = [row["value"] for row in (*first.rows, *rest.rows)]
    assert len(first.rows) == 4
    assert sorted(shown) == sorted(f"{number}-{n}" for number in (0, 1) for n in range(5))
    assert headrace(*tail).rows == []
    log.append("clicks", records(["new"]), partition=1)
    assert [row["value"] for row in headrace(*tail).rows] == ["new"]
    wrong = headrace(*tail, "--from", "3")
    assert wrong.code == 2
    assert "headrace groups reset g --to 3 --topic clicks" in wrong.err


def test_no_groups_are_told_in_a_sentence(project: Path, headrace: Run) -> None:
    assert headrace("groups", "-p", project).out == "there are no consumer groups\n"
    assert headrace("groups", "--json", "-p", project).out == ""
    unknown = headrace("groups", "describe", "nope", "-p", project)
    assert unknown.code != 0
    assert "group 'nope': no such group in" in unknown.err
    assert "`headrace groups` lists the groups" in unknown.err


def test_groups_are_listed_described_moved_and_forgotten(project: Path, headrace: Run) -> None:
    log = fill(project)
    reset_group(log, "g", {Partition("clicks", 0): 5, Partition("clicks", 1): 2})
    assert headrace("groups", "--json", "-p", project).rows == [
        {"group": "g", "members": 0, "topics": ["clicks"], "lag_records": 3}
    ]
    assert "g" in headrace("groups", "-p", project).out
    (found,) = headrace("groups", "describe", "g", "--json", "-p", project).rows
    assert found["members"] == []
    assert [entry["lag_records"] for entry in found["partitions"]] == [0, 3]
    assert "g: members none" in headrace("groups", "describe", "g", "-p", project).out
    reset = ("groups", "reset", "g", "-p", project)
    refused = headrace(*reset, "--to", "earliest")  # neither a terminal nor --yes
    assert refused.code == 2
    assert "g: not reset: there is nobody to ask; pass --yes" in refused.err
    assert find_group(log, "g").offsets[Partition("clicks", 0)] == 5
    (moved,) = headrace(*reset, "--to", "1", "--yes", "--json").rows
    assert [(entry["from"], entry["to"]) for entry in moved["offsets"]] == [(5, 1), (2, 1)]
    assert set(find_group(log, "g").offsets.values()) == {1}
    for to, offset in (("latest", 5), ("earliest", 0), ("2000-01-01T00:00:00Z", 0)):
        assert headrace(*reset, "--to", to, "--yes").code == 0
        assert set(find_group(log, "g").offsets.values()) == {offset}
    for to, told in (("soon", "--to soon: write earliest"), ("99", "clicks/0@99")):
        wrong = headrace(*reset, "--to", to, "--yes")
        assert wrong.code in (2, 3)
        assert told in wrong.err
    with join_group(log, "g", ["clicks"]) as member:
        while not member.assigned:
            member.poll(timeout_s=0.1)
        active = headrace(*reset, "--to", "latest", "--yes")
        assert active.code == 2
        assert "it has 1 member (" in active.err
        (found,) = headrace("groups", "describe", "g", "--json", "-p", project).rows
        assert [entry["member"] for entry in found["partitions"]] == [member.id] * 2
    (gone,) = headrace("groups", "delete", "g", "--yes", "--json", "-p", project).rows
    assert gone == {"group": "g", "deleted_offsets": 2}
    assert headrace("groups", "describe", "g", "-p", project).code == 2
    assert headrace("groups", "--json", "-p", project).rows == []


def test_a_log_is_copied_with_its_groups(project: Path, headrace: Run, tmp_path: Path) -> None:
    log = fill(project)
    reset_group(log, "g", {Partition("clicks", 1): 2})
    copy = ("log", "copy", "-p", project)
    for wrong in ((), ("--to", "x", "--to-project", project), ("--to-project", project)):
        assert headrace(*copy, *wrong).code == 2
    assert headrace(*copy, "nothing", "--to", tmp_path / "copy").code == 2
    done = headrace(*copy, "--to", tmp_path / "copy", "--json")
    assert done.code == 0, done.err
    (found,) = done.rows
    assert found["topics"] == [{"topic": "clicks", "records": 10}]
    assert found["groups"] == [{"group": "g", "offsets": 1, "left_out": []}]
    again = headrace(*copy, "--to", tmp_path / "copy")
    assert again.out.splitlines() == [
        "copied 0 records of clicks",
        "group g goes on there, 1 offset",
    ]
    assert find_group(EmbeddedLog(tmp_path / "copy"), "g").offsets == {Partition("clicks", 1): 2}


def test_headers_and_tombstones_are_appended(project: Path, headrace: Run, tmp_path: Path) -> None:
    open_log(project).create_topic("clicks", partitions=1)
    file = tmp_path / "lines"
    file.write_text("x\ny\n")
    append = ("append", "clicks", "-p", project, "--key", "k")
    assert headrace(*append, file, "-H", "a=1", "--header", "b=").code == 0
    assert headrace(*append, "--tombstone").code == 0
    rows = headrace("tail", "clicks", "--json", "-p", project).rows
    assert [row["value"] for row in rows] == ["x", "y", None]
    expected = [{"name": "a", "value": "1"}, {"name": "b", "value": ""}]
    assert [row["headers"] for row in rows] == [expected, expected, []]
    assert {row["key"] for row in rows} == {"k"}
    for wrong in (("--header", "a"), ("--header", "=1"), ("--tombstone", "file.txt")):
        assert headrace("append", "clicks", "-p", project, *wrong).code == 2
