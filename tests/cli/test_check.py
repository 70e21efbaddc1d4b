"""`headrace check`: every problem that needs no types, with its place, and no Spark.

Method: projects with known faults are checked in this process, and what is printed is compared as
a whole. One process proves that Spark is not loaded, one that `--types` asks it.
"""

import subprocess
import time
from pathlib import Path

import pytest

from cli.commands import HEADRACE, Run
from headrace.project.checking import check_project

STREAM = """\
CREATE STREAM orders (id STRING, shop STRING, amount DECIMAL(12,2), ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 30 SECONDS) WITH (topic = 'orders', format = 'json');
"""
VIEW = (
    "CREATE MATERIALIZED VIEW per_shop AS SELECT shop, count(*) AS n FROM orders GROUP BY shop;\n"
)
SINK = "CREATE SINK told FROM per_shop WITH (topic = 'per-shop');\n"


def write(folder: Path, **sql: str) -> Path:
    (folder / "headrace.toml").write_text("")
    for name, text in sql.items():
        (folder / f"{name}.sql").write_text(text)
    return folder


def test_a_sound_project_is_told_in_one_line(tmp_path: Path, headrace: Run) -> None:
    answer = headrace("check", "-p", write(tmp_path, a=STREAM + VIEW + SINK))
    assert (answer.code, answer.out) == (0, "3 definitions, 0 errors\n")
    assert "`headrace check --types`" in answer.err


def test_each_problem_has_its_place_its_line_and_a_caret(tmp_path: Path, headrace: Run) -> None:
    views = (
        "CREATE VIEW a AS\tSELECT '日本' AS x, shup FROM orders;\n"
        f"CREATE VIEW b AS SELECT {'id, ' * 40}shup FROM orders;\n"
        "CREATE MATERIALIZED VIEW c AS SELECT id FROM gone;\n"
        "CREATE VIEW d AS SELECT id FROM a UNION ALL SELECT shop AS id FROM gone;\n"
    )
    answer = headrace("check", "-p", write(tmp_path, orders=STREAM, views=views))
    assert (answer.code, answer.err) == (1, "")
    unknown = "orders has no column shup (did you mean shop?); its columns are id, shop, amount, ts"
    gone = (
        "there is no stream or view gone; define it with CREATE STREAM or CREATE VIEW, or correct "
        "its name; 2 definitions read it: d, c"
    )
    assert answer.out.splitlines() == [
        f"error: views.sql:1:36: {unknown}",
        "  1 | CREATE VIEW a AS    SELECT '日本' AS x, shup FROM orders;",
        "    |                                         ^",
        f"error: views.sql:2:185: {unknown}",
        "  2 | ...d, id, id, id, id, id, id, id, id, id, id, id, shup FROM orders;",
        f"    | {' ' * 50}^",
        f"error: views.sql:3:46: {gone}",
        "  3 | CREATE MATERIALIZED VIEW c AS SELECT id FROM gone;",
        "    |                                              ^",
        f"error: views.sql:4:68: {gone}",
        "  4 | CREATE VIEW d AS SELECT id FROM a UNION ALL SELECT shop AS id FROM gone;",
        f"    | {' ' * 67}^",
        "5 definitions, 4 errors",
    ]


def test_what_the_planner_refuses_without_types_is_told_beside_other_problems(
    tmp_path: Path, headrace: Run
) -> None:
    over = (
        "CREATE VIEW ids AS SELECT shop, collect_set(id) AS ids FROM orders GROUP BY shop;\n"
        "CREATE MATERIALIZED VIEW u AS SELECT e FROM ids LATERAL VIEW explode(ids) t AS e;\n"
        "DROP VIEW x;\n"
    )
    (found,) = headrace("check", "--json", "-p", write(tmp_path, a=STREAM, b=over)).rows
    assert [(each["line"], each["message"][:50]) for each in found["findings"]] == [
        (2, "a generator over groups is not built yet: ids is g"),
        (3, "DROP is not a definition; delete the statement tha"),
    ]


def test_json_is_one_object_with_counts(tmp_path: Path, headrace: Run) -> None:
    back = "CREATE STREAM back (shop STRING) WITH (topic = 'per-shop', format = 'json');\n"
    unused = "CREATE VIEW unused AS SELECT id FROM orders;\n"
    folder = write(tmp_path, a=STREAM + VIEW + SINK, b=back, c=unused)
    answer = headrace("check", "--json", "-p", folder)
    assert (answer.code, answer.err) == (0, "")
    (found,) = answer.rows
    findings = found.pop("findings")
    assert found == {
        "ok": True,
        "types": False,
        "definitions": 5,
        "errors": 0,
        "warnings": 1,
        "notes": 2,
    }
    assert [list(each) for each in findings] == 3 * [
        ["file", "line", "column", "severity", "message"]
    ]
    assert [(each["file"], each["line"], each["severity"]) for each in findings] == [
        ("b.sql", 1, "note"),
        ("b.sql", 1, "warning"),
        ("c.sql", 1, "note"),
    ]
    assert (
        "stream back reads the topic per-shop, which sink told of this project writes"
        in (findings[1]["message"])
    )
    # A definition that was refused may be the one that reads them.
    (found,) = headrace("check", "--json", "-p", write(folder, d="CREATE VIEW x AS SELEC")).rows
    assert (found["ok"], found["errors"], found["warnings"], found["notes"]) == (False, 1, 1, 0)


def definitions(number: int) -> str:
    """Return five definitions: two streams, a union of CTEs over them, a view, a sink."""
    streams = "".join(STREAM.replace("orders", f"{name}{number}") for name in ("orders", "returns"))
    return f"""{streams}
CREATE VIEW both{number} AS WITH a AS (SELECT * FROM orders{number} WHERE amount > 0),
  b AS (SELECT id, shop, -amount AS amount, ts FROM returns{number})
SELECT id, upper(shop) AS shop, amount, ts FROM a UNION ALL SELECT id, shop, amount, ts FROM b;
CREATE MATERIALIZED VIEW v{number} WITH (allowed_lateness = '10 minutes') AS
SELECT window.start AS minute, shop, CASE WHEN shop = 'x' THEN 1 ELSE 2 END AS kind,
  count(*) AS n, sum(amount) AS total, max(amount) - min(amount) AS spread
FROM both{number} GROUP BY window(ts, '1 minute'), shop HAVING count(*) > 1;
CREATE SINK k{number} FROM v{number} WITH (topic = 'out{number}');
"""


def test_200_definitions_take_less_than_2_seconds(tmp_path: Path) -> None:
    folder = write(tmp_path, **{f"f{n}": definitions(n) for n in range(40)})
    begun = time.process_time()  # others may use this machine, too
    checked = check_project(folder)
    assert time.process_time() - begun < 2
    assert (checked.statements, checked.findings) == (200, ())


def test_check_and_graph_load_no_spark(project: Path) -> None:
    code = (
        "import sys; from headrace.cli.main import call; call(['check']); call(['graph']); "
        "print([m for m in ('pyspark', 'py4j', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run(
        [Path(HEADRACE).with_name("python"), "-c", code],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.spark
def test_types_are_checked_by_spark_when_asked_for(tmp_path: Path, headrace: Run) -> None:
    wrong = (
        "CREATE MATERIALIZED VIEW w AS\nSELECT id,\n  array_join(amount, ',') AS x\nFROM orders;\n"
        "CREATE MATERIALIZED VIEW r AS SELECT id FROM orders\nWHERE upper(id) + 1;\n"
    )
    folder = write(tmp_path, a=STREAM, b=wrong)
    assert headrace("check", "-p", folder).code == 0
    answer = headrace("check", "--types", "-p", folder)
    assert answer.code == 1
    assert "starting Spark to check the types" in answer.err
    assert "error: b.sql:3:3: view w: " in answer.out
    assert "  3 |   array_join(amount, ',') AS x\n    |   ^\n" in answer.out
    assert answer.out.endswith("3 definitions, 2 errors\n")
