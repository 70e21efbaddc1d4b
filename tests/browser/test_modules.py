"""Modules of the dashboard by themselves: each is imported in a page, from the files as served.

Method: one table of cases for each module; what is expected is written out. The browser is in
India, half an hour beside every full hour of UTC, so that a local time cannot pass for one in UTC.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize
from stand_in import column, standing_in


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    size: ViewportSize = {"width": 900, "height": 600}
    with standing_in() as engine:
        context = browser.new_context(timezone_id="Asia/Kolkata", viewport=size)
        opened = context.new_page()
        opened.goto(f"{engine.url}/blank")
        yield opened
        context.close()


def call(page: Page, module: str, body: str, cases: Any) -> Any:
    """Return what a function answers to each case; `body` sees the module's exports as `m`."""
    script = "async ([path, body, cases]) => { const m = await import(path);"
    script += f" const answer = {body}; return cases.map((each) => answer(...each)); }}"
    return page.evaluate(script, [f"/assets/js/{module}", body, cases])


def test_conditions_compare_values_by_their_kind(page: Page) -> None:
    long = "9223372036854775807"
    cases = {
        ("TIMESTAMP", "2026-01-31T12:00:00.500000Z", "c>2026-01-31T12:00:00Z"): True,
        ("TIMESTAMP", "2026-01-31T12:00:00Z", "c='2026-01-31 12:00:00Z'"): True,
        ("TIMESTAMP", "2026-01-31T12:00:00Z", "c=2026-01-31T14:00:00+02:00"): True,
        ("TIMESTAMP", "2026-01-31T12:00:00Z", "c>=2026-02-31"): False,
        ("DATE", "2026-01-31", "c<2026-02-01"): True,
        ("BIGINT", long, "c=9223372036854775806"): False,
        ("BIGINT", long, "c>9223372036854775806"): True,
        ("BIGINT", 5, f"c<{long}"): True,
        ("BIGINT", 5, "c!=five"): False,
        ("DECIMAL(38,2)", "12.50", "c=12.5"): True,
        ("DECIMAL(38,2)", "12345678901234567.51", "c=12345678901234567.5"): False,
        ("DECIMAL(38,2)", "-12345678901234567.51", "c<-12345678901234567.5"): True,
        ("DOUBLE", "nan", "c>1e300"): True,
        ("DOUBLE", "nan", "c=nan"): True,
        ("DOUBLE", "-inf", "c<0"): True,
        ("BOOLEAN", True, "c=TRUE"): True,
        ("BOOLEAN", False, "c=TRUE"): False,
        ("STRING", "two words", "c='two words'"): True,
        ("STRING", "null", "c=null"): False,
        ("STRING", None, "c=null"): True,
        ("STRING", None, "c!=x"): False,
        ("BINARY", "/w==", "c>AA=="): True,
        ("BIGINT", 12345, "12,345"): True,
        ("BIGINT", 12345, "12345 678"): False,
    }
    test = "(type, c, text) => m.rowTest(m.parseFilter(text, [{ name: 'c', type }]))({ c })"
    assert dict(zip(cases, call(page, "filter.js", test, [*cases]), strict=True)) == cases
    filter = "m.parseFilter(text, [{ name: 'c', type: 'INT' }])"
    asked = f"(text) => m.rowTest({filter}, {{ asked: true }})({{ c: 1 }})"
    assert call(page, "filter.js", asked, [["c=2"], ["7"]]) == [True, False]


def test_rows_are_sorted_by_value_with_null_last(page: Page) -> None:
    sorts = """(kind, values, descending) => values
      .map((value) => [value, m.rankOf(kind, value)])
      .sort((a, b) => m.compareSorted(a[1], b[1], descending)).map(([value]) => value)"""
    numbers = ["nan", None, 2, "9007199254740993", "9007199254740992", "-inf", "inf", "1.5"]
    rising = ["-inf", "1.5", 2, "9007199254740992", "9007199254740993", "inf", "nan", None]
    times = ["2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z", None]
    cases = [
        ["number", numbers, False],
        ["number", numbers, True],
        ["time", times, False],
        ["bytes", ["/w==", "AA=="], False],
        ["boolean", [True, False], False],
    ]
    assert call(page, "types.js", sorts, cases) == [
        rising,
        [*rising[-2::-1], None],
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", None],
        ["AA==", "/w=="],
        [False, True],
    ]


def test_rows_have_keys_of_their_own(page: Page) -> None:
    rows = [{"a": 1, "b": None}, {"a": 2, "b": None}]
    twice = [{"a": 1, "b": 1}, {"a": 1, "b": 2}]
    columns = [column("a", "INT"), column("b", "INT")]
    cases = [[rows, ["a", "b"]], [rows, ["partition", "offset"]], [twice, ["a"]], [rows, []]]
    keys = call(page, "rows.js", "m.keysOf", [[*each, columns] for each in cases])
    assert keys == [["[1,null]", "[2,null]"], ["0", "1"], ["0", "1"], ["0", "1"]]
    orders = [["n", True], ["a,b", True], ['say "x"', False]]
    text = "(name, descending) => m.orderText({ name, descending })"
    assert call(page, "rows.js", text, orders) == ["-n", '"-a,b"', '"say ""x"""']


def test_json_is_indented_and_otherwise_unchanged(page: Page) -> None:
    cases = {
        '{"a":12.50,"a":true,"n":1e400}': '{\n  "a": 12.50,\n  "a": true,\n  "n": 1e400\n}',
        '[ {}, [ ] ,"\\u00e9, {\\"}"]': '[\n  {},\n  [],\n  "\\u00e9, {\\"}"\n]',
        "12345678901234567890": "12345678901234567890",
        '{"torn":': '{"torn":',
    }
    found = call(page, "json.js", "m.indentJson", [[each] for each in cases])
    assert dict(zip(cases, found, strict=True)) == cases


def test_numbers_are_not_misprinted(page: Page) -> None:
    shorts = {0.004: "0.004", 1.2345: "1.23", 42.26: "42.3", 12_345: "12.3k", 0: "0"}
    assert call(page, "format.js", "m.short", [[each] for each in shorts]) == [*shorts.values()]
    shares = {(1, 1): "100 %", (1, 750): "0.13 %", (1, 10**9): "< 0.001 %", (0, 0): "0 %"}
    assert call(page, "format.js", "m.percent", [*shares]) == [*shares.values()]
    values = {
        (0.123456789012, "DOUBLE"): "0.123456789012",
        (1234567.25, "DOUBLE"): "1,234,567.25",
        (0.10000000149011612, "FLOAT"): "0.1",
        (1e300, "DOUBLE"): "1e+300",
        ("12.50", "DECIMAL(9,2)"): "12.50",
        ("9223372036854775807", "BIGINT"): "9,223,372,036,854,775,807",
    }
    assert call(page, "format.js", "m.valueText", [*values]) == [*values.values()]


def test_a_time_whose_turns_were_missed_is_unknown(page: Page) -> None:
    records = """(...batches) => {
      const turns = new m.Turns();
      const same = { records: 10, milliseconds: {} };
      const made = ([turn, second]) => ({ turn, ended_us: second * 1e6, ...same });
      for (const batch of batches) turns.take(batch.map(made));
      return turns.columns(106.5e6, 60).records;
    }"""
    whole = [[[1, 100], [2, 102]], [[3, 105]]]
    torn = [[[1, 100], [2, 102]], [[9, 104], [10, 105]]]
    assert call(page, "turns.js", records, [whole, torn]) == [
        [10, 0, 10, 0, 0, 10],
        [10, 0, None, None, None, 10],
    ]


COLUMNS = [
    column("minute", "TIMESTAMP"),
    column("country", "STRING"),
    column("device", "STRING"),
    column("mean", "DOUBLE"),
]
ROWS = [
    {"minute": f"2026-01-01T00:0{minute}:00Z", "country": country, "device": device, "mean": mean}
    for minute, country, device, mean in [(0, "NO", "a", 1), (0, "NO", "b", 3), (1, "NO", "a", 2)]
]


def test_a_chart_tells_rows_apart_by_their_whole_key(page: Page) -> None:
    draw = """(columns, facts, own, rows) => {
      const choice = m.chooseChart(columns, facts, own);
      if (choice.kind === "line") {
        const { names, columns: lines, combined } = m.toLines(rows, choice, columns);
        return [names, lines, combined];
      }
      const { entries, combined } = m.toBars(rows, choice, columns);
      return [entries.map((each) => each.name), entries.map((each) => each.value), combined];
    }"""
    facts = {"key": ["minute", "country", "device"], "windowStart": "minute"}
    keyless = {"key": [], "data": ROWS}
    cases = [
        [COLUMNS, facts, {}, ROWS],
        [COLUMNS, keyless, {}, ROWS],
        [COLUMNS, facts, {"by": "country"}, ROWS],
        [COLUMNS, {"key": ["country", "device"]}, {"kind": "bars"}, ROWS[:2]],
        [COLUMNS, facts, {"kind": "bars", "x": "country"}, ROWS],
    ]
    apart = [["NO · a", "NO · b"], [[1, 2], [3, None]], False]
    assert call(page, "charts/choose.js", draw, cases) == [
        apart,
        apart,
        [["NO"], [[4, 2]], True],
        [["NO · a", "NO · b"], [1, 3], False],
        [["NO"], [6], True],
    ]


def test_points_without_neighbours_are_found(page: Page) -> None:
    columns = {(1, None, 2, 3, None, 4): [0, 5], (None, 1): [1], (1, 2): [], (7,): [0]}
    found = call(page, "charts/plot.js", "m.lonePoints", [[[*each]] for each in columns])
    assert found == [*columns.values()]


#: Draws a plot; returns the texts on its canvas and how many pixels have the colour of its line.
PLOT = """async ([seconds, values]) => {
  const { createPlot } = await import("/assets/js/charts/plot.js");
  const { Scope } = await import("/assets/js/scope.js");
  const texts = [];
  const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    texts.push(text);
    return draw.call(this, text, ...rest);
  };
  const plot = createPlot({ scope: new Scope(), label: "test", format: String });
  document.body.append(plot.element);
  plot.set(["one", "two"], seconds, values);
  await new Promise((resolve) => setTimeout(resolve, 50));
  CanvasRenderingContext2D.prototype.fillText = draw;
  const canvas = plot.element.querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let coloured = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (data[at] === 0x0b && data[at + 1] === 0x7b && data[at + 2] === 0xa0) coloured += 1;
  }
  plot.element.remove();
  return [texts, coloured];
}"""


def test_a_plot_shows_sparse_lines_and_days_in_utc(page: Page) -> None:
    start = 1_767_225_600  # 2026-01-01T00:00:00Z
    seconds = [start + hour * 3600 for hour in range(0, 48, 4)]
    sparse = [[1 if place % 2 == odd else None for place in range(12)] for odd in (0, 1)]
    texts, coloured = page.evaluate(PLOT, [seconds, sparse])
    assert {"2026-01-01", "2026-01-02"} <= set(texts)
    times = [each for each in texts if ":" in each]
    assert times
    assert all(each.endswith(":00") for each in times)
    assert coloured >= 6  # a dot for each point of the first line


def test_a_tab_that_becomes_visible_starts_no_second_loop(page: Page) -> None:
    runs = page.evaluate("""async () => {
      const { Scope } = await import("/assets/js/scope.js");
      const scope = new Scope();
      const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      let under_way = 0;
      let most = 0;
      scope.every(1, async () => {
        most = Math.max(most, (under_way += 1));
        await pause(30);
        under_way -= 1;
      });
      for (let turn = 0; turn < 10; turn += 1) {
        document.dispatchEvent(new Event("visibilitychange"));
        await pause(10);
      }
      scope.close();
      return most;
    }""")
    assert runs == 1
