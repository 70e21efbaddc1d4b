"""Topics are made, described, changed and deleted; the log is checked."""

import subprocess
from pathlib import Path

from cli.commands import Run
from headrace.log import EmbeddedLog, Partition, Topic, TopicSettings, records
from headrace.testing.log.suite import rows


def open_log(project: Path) -> EmbeddedLog:
    return EmbeddedLog(project / ".headrace" / "log")


def test_a_topic_is_made_with_its_settings_and_described(project: Path, headrace: Run) -> None:
    made = headrace("topics", "create", "clicks", "--partitions", 2, "--retention", "7d",
                    "--retention-bytes", "2GiB", "-p", project)  # fmt: skip
    assert made.code == 0, made.err
    assert made.out == (
        "made clicks: 2 partitions, records kept for 604,800 s, 2,147,483,648 bytes of each "
        "partition\n"
    )
    settings = TopicSettings(7 * 86_400_000, 2 << 30)
    assert open_log(project).topic("clicks") == Topic("clicks", 2, settings)
    (project / "lines").write_bytes(b"1\n2\n3\n")
    headrace("append", "clicks", project / "lines", "--partition", 1, "-p", project)
    (found,) = headrace("topics", "describe", "clicks", "--json", "-p", project).rows
    assert found["retention_ms"] == 7 * 86_400_000
    empty, full = found["partitions"]
    assert (empty["end_offset"], empty["last_arrival_us"]) == (0, None)
    assert (full["first_offset"], full["end_offset"]) == (0, 3)
    assert full["last_arrival_us"] > 10**15
    assert "clicks: 2 partitions" in headrace("topics", "describe", "clicks", "-p", project).out
    again = headrace("topics", "create", "clicks", "-p", project)
    assert again.code == 2
    assert "clicks: the topic is there already" in again.err


def test_a_topic_is_changed_one_thing_at_a_time(project: Path, headrace: Run) -> None:
    headrace("topics", "create", "clicks", "--partitions", 2, "--retention", "1h", "-p", project)
    change = ("topics", "change", "clicks", "-p", project)
    assert headrace(*change, "--partitions", 3).code == 0
    assert open_log(project).topic("clicks") == Topic("clicks", 3, TopicSettings(3_600_000))
    assert headrace(*change, "--retention-bytes", "10MB").code == 0
    assert open_log(project).topic("clicks").settings == TopicSettings(3_600_000, 10_000_000)
    assert headrace(*change, "--retention", "forever").code == 0
    assert open_log(project).topic("clicks").settings == TopicSettings(None, 10_000_000)
    for wrong, told in [
        ((), "say what to change"),
        (("--partitions", 1), "it has 3 partitions, and they cannot become 1"),
        (("--retention", "soon"), "--retention soon: write a time such as"),
        (("--retention-bytes", "much"), "--retention-bytes much: write a size such as"),
    ]:
        answer = headrace(*change, *wrong)
        assert answer.code == 2
        assert told in answer.err
    assert open_log(project).topic("clicks") == Topic("clicks", 3, TopicSettings(None, 10_000_000))


def test_a_topic_is_compacted_and_no_longer(project: Path, headrace: Run) -> None:
    made = headrace("topics", "create", "users", "--partitions", 1, "--compact", "-p", project)
    assert made.out == (
        "made users: 1 partition, records kept forever; compacted, tombstones kept for 86,400 s\n"
    )
    log = open_log(project)
    assert log.topic("users").settings == TopicSettings(compact=True)
    change = ("topics", "change", "users", "-p", project)
    assert headrace(*change, "--tombstones", "1h").code == 0
    assert log.topic("users").settings == TopicSettings(compact=True, tombstone_ms=3_600_000)
    wrong = headrace(*change, "--tombstones", "soon")
    assert wrong.code == 2
    assert "--tombstones soon: write a time such as" in wrong.err
    (project / "lines").write_bytes(b"1\n2\n3\n")
    refused = headrace("append", "users", project / "lines", "-p", project)
    assert refused.code == 2
    assert "users: record 0 of this append has no key" in refused.err
    headrace("append", "users", project / "lines", "--key", "k", "-p", project)
    log.compact("users")
    (found,) = headrace("topics", "describe", "users", "--json", "-p", project).rows
    assert (found["compact"], found["tombstone_ms"]) == (True, 3_600_000)
    assert found["partitions"][0]["end_offset"] == 3
    assert found["partitions"][0]["last_arrival_us"] > 10**15
    (left,) = headrace("tail", "users", "--json", "-p", project, "--from", "earliest").rows
    assert left["value"] == "3"
    described = headrace("topics", "describe", "users", "-p", project).out
    assert "compacted, tombstones kept for 3,600 s" in described
    assert headrace(*change, "--no-compact").code == 0
    assert log.topic("users").settings == TopicSettings(compact=False, tombstone_ms=3_600_000)


def test_the_last_arrival_is_found_behind_what_was_compacted(project: Path, headrace: Run) -> None:
    log = open_log(project)
    log.create_topic("users", partitions=1, settings=TopicSettings(compact=True, tombstone_ms=0))
    log.append("users", records(["a", "b", None], keys=["1", "2", "2"]))
    log.compact("users")
    log.maintain()
    describe = ("topics", "describe", "users", "--json", "-p", project)
    assert headrace(*describe).rows[0]["partitions"][0]["last_arrival_us"] > 10**15
    log.append("users", records([None], keys=["1"]))
    log.compact("users")
    log.maintain()
    assert headrace(*describe).rows[0]["partitions"][0]["last_arrival_us"] is None


def test_a_topic_is_deleted_when_no_stream_reads_it(project: Path, headrace: Run) -> None:
    (project / "lines").write_bytes(b"1\n2\n3\n")
    headrace("append", "clicks", project / "lines", "--create", "-p", project)
    headrace("append", "payments", project / "lines", "-p", project)
    refused = headrace("topics", "delete", "payments", "--yes", "-p", project)
    assert refused.code == 2
    assert "payments: stream payments reads it" in refused.err
    deleted = headrace("topics", "delete", "clicks", "--yes", "--json", "-p", project)
    assert deleted.rows == [{"topic": "clicks", "deleted_records": 3}]
    assert [topic.name for topic in open_log(project).topics()] == ["payments"]
    gone = headrace("topics", "delete", "clicks", "--yes", "-p", project)
    assert gone.code == 2
    assert "'clicks': no such topic" in gone.err


def test_a_tail_begins_at_a_time(project: Path, headrace: Run) -> None:
    times = iter([10**15, 2 * 10**15, 3 * 10**15])
    log = EmbeddedLog(project / ".headrace" / "log", clock=lambda: next(times))
    log.create_topic("clicks", partitions=1)
    for value in "abc":
        log.append("clicks", records([value]), partition=0)
    tail = ("tail", "clicks", "--json", "-p", project, "--from")
    for start, values in [
        ("2001-09-09T01:46:40Z", "abc"),
        ("2001-09-09T01:46:40.000001", "bc"),
        ("2033-05-18T05:33:20+02:00", "bc"),
        ("2065-01-24", "c"),
        ("2099-01-01", ""),
    ]:
        assert "".join(row["value"] for row in headrace(*tail, start).rows) == values, start
    answer = headrace(*tail, "yesterday")
    assert answer.code == 2
    assert "--from yesterday: write earliest, latest" in answer.err


def test_a_flipped_byte_is_found_and_named(project: Path, headrace: Run) -> None:
    (project / "lines").write_bytes(b"1\n2\n3\n")
    headrace("append", "clicks", project / "lines", "--create", "-p", project)
    sound = headrace("log", "verify", "--json", "-p", project)
    assert sound.code == 0
    assert sound.rows[0]["records"] == 3
    assert sound.rows[0]["damages"] == []
    folder = project / ".headrace" / "log" / "clicks"
    file = max(folder.glob("*/*.log"), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    found = headrace("log", "verify", "clicks", "-p", project)
    assert found.code == 1
    assert f"{file} is damaged at byte" in found.out
    assert "; 1 damage\n" in found.out


def damage_everything(project: Path) -> Path:
    """Make a log of which each topic but `sound` is damaged in another way; return its folder."""
    path = project / ".headrace" / "log"
    log = EmbeddedLog(path, sync=False, segment_bytes=1_000)
    for name in (
        "flipped",
        "sound",
        "gone-first",
        "gone-middle",
        "gone-last",
        "no-json",
        "no-file",
    ):
        log.create_topic(name, partitions=2)
        for n in range(12):
            log.append(name, records([f"{n}-{i}" * 20 for i in range(3)]), partition=0)
    log.close()

    def segments(topic: str) -> list[Path]:
        return sorted((path / topic / "0").glob("*.log"))

    data = bytearray(segments("flipped")[1].read_bytes())
    data[-20] ^= 1
    segments("flipped")[1].write_bytes(data)
    for topic, at in (("gone-first", 0), ("gone-middle", 2), ("gone-last", -1)):
        segments(topic)[at].unlink()
    (path / "no-json" / "topic.json").write_bytes(b'{"version": 3, "part')
    (path / "no-file" / "topic.json").unlink()
    return path


DAMAGED = ["flipped", "gone-first", "gone-last", "gone-middle", "no-file", "no-json"]


def test_topics_and_verify_go_on_past_damage_and_tell_all_of_it(
    project: Path, headrace: Run
) -> None:
    path = damage_everything(project)
    listed = headrace("topics", "--json", "-p", project)
    assert listed.code == 3
    entries = {row["topic"]: row for row in listed.rows}
    assert sorted(entries) == sorted([*DAMAGED, "sound"])
    assert entries["sound"]["records"] == 36
    for name in ("gone-first", "gone-last", "no-file", "no-json"):
        assert "error" in entries[name], name
        assert entries[name]["error"] in listed.err
    table = headrace("topics", "-p", project).out
    assert "damaged" in table
    assert "sound" in table

    found = headrace("log", "verify", "--json", "-p", project)
    assert found.code == 1
    assert found.rows[0]["topics"] == 7
    for name in DAMAGED:
        told = [each for each in found.rows[0]["damages"] if f"{path}/{name}/" in each]
        cure = "`echo '" if name.startswith("no-") else f"`headrace log repair {name}`"
        assert told, name
        assert all(cure in damage for damage in told), told
    assert found.rows[0]["records"] > 36 * 3


def test_the_cures_that_are_told_work(project: Path, headrace: Run) -> None:
    path = damage_everything(project)
    damages = headrace("log", "verify", "--json", "-p", project).rows[0]["damages"]
    for name in ("no-file", "no-json"):
        (told,) = [each for each in damages if f"/{name}/" in each]
        command = told[told.index("`echo") + 1 : told.rindex("`")]
        subprocess.run(command, shell=True, check=True)
    for name in ("flipped", "gone-first", "gone-middle", "gone-last"):
        refused = headrace("log", "repair", name, "-p", project)
        assert refused.code == 2
        assert f"{name}/0: gives up the offsets 0 to" in refused.err
        repaired = headrace("log", "repair", name, "--yes", "--json", "-p", project)
        assert repaired.code == 0, repaired.err
        (given_up,) = repaired.rows[0]["given_up"]
        log = EmbeddedLog(path)
        first, end = log.extents(name)[Partition(name, 0)]
        assert (first, end) == (given_up["end_offset"], 36)
        assert len(rows(log, Partition(name, 0))) == end - first
        assert (name == "gone-last") == (first == end)
        assert log.append(name, records(["x"]), partition=0).ranges[0].start == 36
        log.close()
    sound = headrace("log", "verify", "-p", project)
    assert sound.code == 0, sound.out
    assert headrace("topics", "-p", project).code == 0
    nothing = headrace("log", "repair", "sound", "-p", project)
    assert (nothing.code, nothing.out) == (0, "sound: nothing is damaged\n")


def test_a_topic_that_is_not_there_is_told_with_how_to_get_it(project: Path, headrace: Run) -> None:
    for command in (("log", "verify", "nope"), ("topics", "describe", "nope")):
        answer = headrace(*command, "-p", project)
        assert answer.code == 2
        assert "`headrace append nope --create`" in answer.err
        assert "`cp -r COPY/nope " in answer.err


def test_a_table_keeps_its_partitions(tmp_path: Path, headrace: Run) -> None:
    (tmp_path / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "cards.sql").write_text("CREATE TABLE cards (card STRING PRIMARY KEY);")
    assert headrace("topics", "create", "cards", "-p", tmp_path).code == 0
    refused = headrace("topics", "change", "cards", "--partitions", "8", "-p", tmp_path)
    assert refused.code == 2
    assert "table cards reads it, and more partitions would part the changes" in refused.err
    assert headrace("topics", "change", "cards", "--compact", "-p", tmp_path).code == 0
