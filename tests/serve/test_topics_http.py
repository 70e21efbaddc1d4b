"""Appending by HTTP: every kind of body is stored as it was sent, whole or not at all.

Method: a served embedded log without an engine. What a request stored is read back from the log
itself, and after every refusal the log is as it was.
"""

import json
import logging
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest

from headrace.log.base import MAX_RECORD_BYTES, TopicSettings
from headrace.log.names import TIME_TOPIC
from headrace.serve.http import ingesting
from headrace.serve.http.values import ARROW, arrow_bytes
from headrace.serve.ingest.cutting import MAX_RECORDS
from serve.topics_served import LINES, Served, serving

PAYMENT = '{"id": 1, "card": "c-1", "amount": 12.50, "ts": "2026-01-01T12:00:00Z"}'


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("shop")) as served:
        yield served


@pytest.fixture
def served(shared: Served) -> Served:
    for topic in ("payments", "clicks", "both"):
        partitions = shared.log.topic(topic).partitions
        shared.log.delete_topic(topic)
        shared.log.create_topic(topic, partitions=partitions)
    return shared


def refused(answer: httpx.Response, status: int, error: str = "UsageError") -> str:
    """Check a refusal, and return its message."""
    body = answer.json()
    assert (answer.status_code, body["error"]) == (status, error), body
    assert set(body) == {"error", "message"}
    message: str = body["message"]
    return message


def stored(served: Served) -> int:
    return sum(
        end
        for topic in ("payments", "clicks", "both")
        for _, end in served.log.extents(topic).values()
    )


# What is stored


def test_an_object_is_one_record(served: Served) -> None:
    answer = served.append("clicks", ' {"page": "/", "n": 1e400} ')
    assert answer.status_code == 200
    (place,) = answer.json()["partitions"]
    assert answer.json() == {
        "topic": "clicks",
        "records": 1,
        "partitions": [{**place, "first_offset": 0, "end_offset": 1}],
        "position": f"clicks/{place['partition']}@1",
        "without_key": 1,
    }
    assert served.values("clicks") == ['{"page": "/", "n": 1e400}']


@pytest.mark.parametrize(
    "record",
    [
        '{"a":12.50}',
        '{"a": 1e400, "b": -0, "c": 1E+2}',
        '{"a":' + "9" * 5_000 + "}",
        '{ "b" : [ 1 ,2], "a":{"b":{}} }',
        '{"twice":1,"twice":2}',
        '{"é":"\\u00e9 \u2028 \U0001f600"}',
        '{"half": "\\ud800"}',
        "{}",
    ],
)
@pytest.mark.parametrize("type_", ["application/json", LINES])
def test_the_text_of_a_record_is_stored_as_it_was_sent(
    served: Served, record: str, type_: str
) -> None:
    bodies = {LINES: f"{record}\n{record}\n", "application/json": f"[{record},\n {record}\t]\n"}
    assert served.append("both", bodies[type_], type_=type_, key="nothing").status_code == 200
    assert served.values("both") == [record, record]


@pytest.mark.parametrize(
    "type_", [LINES, "application/jsonl", "application/x-ndjson; charset=UTF-8"]
)
def test_lines_may_end_as_they_like(served: Served, type_: str) -> None:
    body = '\ufeff{"a":1}\r\n\n  \n {"a":2} \n{"a":3}'
    assert served.append("both", body, type_=type_, key="a").json()["records"] == 3
    assert served.values("both") == ['{"a":1}', ' {"a":2} ', '{"a":3}']


def test_records_go_by_the_declared_key(served: Served) -> None:
    cards = [f"c-{number}" for number in range(100)]
    body = json.dumps([{"id": 1, "card": card} for card in cards])
    answer = served.append("payments", body).json()
    assert (answer["records"], answer["without_key"], len(answer["partitions"])) == (100, 0, 4)
    first = {record["key"]: record["partition"] for record in served.records("payments")}
    assert set(first) == set(cards)
    served.append("payments", body)
    assert {(each["key"], each["partition"]) for each in served.records("payments")} == set(
        first.items()
    )


def test_a_declared_key_that_records_lack_is_told(served: Served) -> None:
    answer = served.append("payments", '[{"id": 1}, {"id": 2, "card": null}, {"card": "c"}]')
    assert answer.json()["without_key"] == 2
    keys = Counter(each["key"] for each in served.records("payments"))
    assert keys == {None: 2, "c": 1}


@pytest.mark.parametrize(
    ("key", "found"),
    [("id", "7"), ("$.who.name", "Ann"), ("$.list[1]", "b"), ("a'\"; DROP TABLE x --", "odd")],
)
def test_a_key_can_be_named(served: Served, key: str, found: str) -> None:
    record = {"id": 7, "who": {"name": "Ann"}, "list": ["a", "b"], "a'\"; DROP TABLE x --": "odd"}
    body = json.dumps([record] * 300)  # so many are read by DuckDB
    answer = served.append("clicks", body, key=key)
    assert answer.json()["without_key"] == 0
    assert {record["key"] for record in served.records("clicks")} == {found}


def test_a_partition_can_be_named(served: Served) -> None:
    body = json.dumps([{"card": f"c-{number}"} for number in range(10)])
    answer = served.append("payments", body, partition="2").json()
    assert answer["partitions"] == [{"partition": 2, "first_offset": 0, "end_offset": 10}]
    assert {each["partition"] for each in served.records("payments")} == {2}
    assert served.records("payments")[3]["key"] == "c-3"


@pytest.mark.parametrize("type_", ["application/json", LINES])
def test_envelopes_carry_keys_and_headers(served: Served, type_: str) -> None:
    envelopes = [
        '{"key": "k-1", "value": {"n": 1.50}, "headers": {"from": "web", "é": "ü", "no": null}}',
        '{ "headers": {}, "value" : {"card": "c-2"} }',
        '{"value": {"card": "c-3"}, "key": null}',
        '{"value": null, "key": "gone"}',
    ]
    body = "\n".join(envelopes) if type_ == LINES else f"[{','.join(envelopes)}]"
    answer = served.append("payments", body, type_=type_, envelope="true", partition="0").json()
    assert (answer["records"], answer["without_key"]) == (4, 1)
    found = served.records("payments")
    assert [(each["key"], each["value"]) for each in found] == [
        ("k-1", '{"n": 1.50}'),
        ("c-2", '{"card": "c-2"}'),
        (None, '{"card": "c-3"}'),
        ("gone", None),
    ]
    assert found[0]["headers"] == {"from": "web", "é": "ü", "no": None}


def test_arrow_records_are_stored_as_they_are(served: Served) -> None:
    table = pa.table(
        {
            "value": ['{"n": 1.50}', None],
            "key": [b"a", b"b"],
            "headers": pa.array(
                [[{"name": "h", "value": b"x"}], None],
                pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    answer = served.append("both", arrow_bytes(table), type_=ARROW)
    assert answer.json()["records"] == 2
    found = served.records("both")
    assert [(each["key"], each["value"], each["headers"]) for each in found] == [
        ("a", '{"n": 1.50}', {"h": "x"}),
        ("b", None, {}),
    ]


def test_rows_of_arrow_become_objects(served: Served) -> None:
    table = pa.table({"card": ["c-1", "é"], "n": [1, None], "tags": [["a"], []]})
    assert served.append("payments", arrow_bytes(table), type_=ARROW).json()["without_key"] == 0
    assert sorted(served.values("payments")) == [
        '{"card": "c-1", "n": 1, "tags": ["a"]}',
        '{"card": "é", "n": null, "tags": []}',
    ]


def test_what_does_not_fit_the_schema_is_stored_and_dies_later(served: Served) -> None:
    assert served.append("payments", '{"id": "no number", "ts": 5}').status_code == 200


def test_producers_need_not_be_able_to_read(served: Served) -> None:
    for token, status in (("producer", 200), ("admin", 200), ("reader", 403)):
        answer = served.ask("POST", "/v1/topics/clicks", token=token, json={"page": "/"})
        assert answer.status_code == status
    assert served.ask("GET", "/v1/topics", token="producer").status_code == 403


# What is refused

BAD = [
    (b"", "not JSON: it ends too soon", "the body has no record"),
    (b" \n ", "not JSON: it ends too soon", "the body has no record"),
    (b"[]", "the body has no record", "not a JSON object: []"),
    (b'[{"a":1},2]', "record 2: not a JSON object: 2", "line 1: not a JSON object: ["),
    (b'"text"', 'not a JSON object: "text"', 'not a JSON object: "text"'),
    (b"null", "not a JSON object: null", "not a JSON object: null"),
    (b'{"a":1}{"a":2}', "application/x-ndjson", "line 1: not JSON: unexpected '{"),
    (b'{"a":1},{"a":2}', "not JSON: unexpected ',", "not JSON: unexpected ',"),
    (b'{"a":1', "not JSON", "line 1: not JSON"),
    (b'{"a":NaN}', "NaN is not a JSON number", "NaN is not a JSON number"),
    (b'{"a":-Infinity}', "-Infinity is not", "-Infinity is not"),
    (b'{"a":01}', "not JSON", "not JSON"),
    (b"{'a':1}", "not JSON", "not JSON"),
    (b'{"a":1,}', "not JSON", "not JSON"),
    (b'{"a":"\x00"}', "not JSON", "not JSON"),
    (b'{"a":"\xff"}', "line 1: not UTF-8 at byte 6", "line 1: not UTF-8 at byte 6"),
    (b'{"a":' * 100_000, "nested too deep", "nested too deep"),
    (b"<html>", "not JSON", "line 1: not JSON"),
]


@pytest.mark.parametrize(("body", "as_json", "as_lines"), BAD)
def test_bad_bodies_store_nothing(served: Served, body: bytes, as_json: str, as_lines: str) -> None:
    assert as_json in refused(served.append("clicks", body), 400)
    assert as_lines in refused(served.append("clicks", body, type_=LINES), 400)
    assert stored(served) == 0


def test_the_first_bad_line_is_named_and_the_good_ones_are_not_stored(served: Served) -> None:
    body = "\n".join([PAYMENT] * 499 + [""] + [PAYMENT[:-1]] + [PAYMENT])
    assert refused(served.append("payments", body, type_=LINES), 400).startswith(
        "line 501: not JSON"
    )
    body = f"[{','.join([PAYMENT] * 499 + ['[]'])}]"
    assert refused(served.append("payments", body), 400).startswith("record 500: not a JSON object")
    assert stored(served) == 0


@pytest.mark.parametrize(
    ("envelope", "problem"),
    [
        ("{}", 'an envelope has a "value"'),
        ('{"id": 1}', "an envelope has no member 'id'"),
        ('{"value": 1}', '"value" is neither an object nor null'),
        ('{"value": {}, "key": 1}', '"key" is neither text nor null'),
        ('{"value": {}, "key": "\\ud800"}', "half of a surrogate pair"),
        ('{"value": {}, "headers": []}', '"headers" is not an object'),
        ('{"value": {}, "headers": {"a": 1}}', "the header 'a' is neither text nor null"),
        ('{"value": {}, "value": {}}', "twice"),
    ],
)
def test_bad_envelopes_store_nothing(served: Served, envelope: str, problem: str) -> None:
    answer = served.append("clicks", f'[{{"value": {{}}}}, {envelope}]', envelope="true")
    message = refused(answer, 400)
    assert message.startswith("record 2: ")
    assert problem in message
    assert stored(served) == 0


def compressed() -> bytes:
    sink = pa.BufferOutputStream()
    schema = pa.schema([("x", pa.string())])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_table(pa.table({"x": ["a" * 100_000]}))
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "no stream of Arrow"),
        (b"not Arrow at all", "no stream of Arrow"),
        (arrow_bytes(pa.table({"a": [1]}))[:-20], "no stream of Arrow"),
        (arrow_bytes(pa.table({"a": pa.array([], pa.int64())})), "no record"),
        (arrow_bytes(pa.table({"value": [1]})), "the column value is int64"),
        (arrow_bytes(pa.table({"value": ["{}", "{"]})), "record 2: not JSON"),
        (arrow_bytes(pa.table({"value": [b"\xff"]})), "record 1: not UTF-8"),
        (arrow_bytes(pa.table({"value": ["{}"], "headers": [1]})), "as the log takes them"),
        (arrow_bytes(pa.table({"a": pa.array(["x"]).dictionary_encode()})), "dictionary"),
        (arrow_bytes(pa.table({"a": pa.array([[{}]], pa.list_(pa.struct([])))})), "is not read"),
        (compressed(), "compressed"),
    ],
)
def test_bad_arrow_stores_nothing(served: Served, body: bytes, problem: str) -> None:
    assert problem in refused(served.append("clicks", body, type_=ARROW), 400)
    assert stored(served) == 0


def test_arrow_takes_no_envelopes(served: Served) -> None:
    body = arrow_bytes(pa.table({"a": [1]}))
    assert "Arrow takes no envelopes" in refused(
        served.append("clicks", body, type_=ARROW, envelope="true"), 400
    )


@pytest.mark.parametrize(
    "type_",
    ["", "text/plain", "text/json", "application/json; charset=latin-1", "multipart/form-data"],
)
def test_other_types_are_refused(served: Served, type_: str) -> None:
    answer = served.append("clicks", "{}", type_=type_)
    assert "application/x-ndjson" in refused(answer, 415)


def test_a_compressed_body_is_refused(served: Served) -> None:
    answer = served.append("clicks", "{}", headers={"Content-Encoding": "gzip"})
    assert "send it as it is" in refused(answer, 415)


def test_a_record_over_the_limit_is_refused_and_named(served: Served) -> None:
    large = json.dumps({"a": "x" * MAX_RECORD_BYTES})
    for type_, body, where in (
        ("application/json", f"[{{}},{large}]", "record 2"),
        (LINES, f"{{}}\n{large}", "line 2"),
        (ARROW, arrow_bytes(pa.table({"a": ["", "x" * MAX_RECORD_BYTES]})), "record 2"),
    ):
        message = refused(served.append("clicks", body, type_=type_), 413, "RecordTooLarge")
        assert message.startswith(f"{where}: ")
    # The value alone would fit: with its key it does not.
    nearly = json.dumps({"card": "x" * (MAX_RECORD_BYTES - 100)})
    message = refused(served.append("payments", f"[{{}},{nearly}]"), 413, "RecordTooLarge")
    assert message.startswith("record 2: ")
    assert stored(served) == 0


def test_a_body_over_the_limit_is_refused(served: Served) -> None:
    body = "\n".join(['{"a":"' + "x" * 1_000_000 + '"}'] * 9)
    assert "at most 8388608 bytes" in refused(served.append("clicks", body, type_=LINES), 413)
    many = "{}\n" * (MAX_RECORDS + 1)
    answer = served.append("clicks", many, type_=LINES)
    assert "50,001 lines, 50,000 is the most" in refused(answer, 413, "RecordTooLarge")
    answer = served.append(
        "clicks", arrow_bytes(pa.table({"a": pa.nulls(MAX_RECORDS + 1)})), type_=ARROW
    )
    assert "50,001 records, 50,000 is the most" in refused(answer, 413, "RecordTooLarge")
    assert stored(served) == 0


@pytest.mark.parametrize(
    "name",
    ["nothing", "pay'ments", "payments;--", "~transactions", "%2e%2e", "..%2f..%2fetc", "a" * 300,
     "%00", "payments%20", "PAYMENTS", "%F0%9F%98%80"],
)  # fmt: skip
def test_unknown_topics_are_not_there(served: Served, name: str) -> None:
    # Neither client nor server may tidy the path up: it is sent as it stands.
    head = f"POST /v1/topics/{name} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer admin\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    answer = send_raw(served, head.encode())
    assert answer.startswith(b"HTTP/1.1 404"), answer
    assert b'"message"' in answer
    assert stored(served) == 0


def test_an_unknown_topic_is_answered_with_those_there_are(served: Served) -> None:
    message = refused(served.append("payment", "{}"), 404, "TopicNotFound")
    assert "there are both, clicks, payments" in message


@pytest.mark.parametrize("topic", ["payments.dead", "per_minute.late", "per_minute.dead"])
def test_topics_of_the_engine_take_nothing_and_can_be_read(served: Served, topic: str) -> None:
    if topic not in {each.name for each in served.log.topics()}:
        served.log.create_topic(topic, partitions=1)
    assert "the engine alone writes there" in refused(served.append(topic, "{}"), 400)
    assert served.ask("GET", f"/v1/topics/{topic}/records").json()["records"] == []


def test_the_topic_of_markers_takes_nothing(served: Served) -> None:
    if TIME_TOPIC not in {each.name for each in served.log.topics()}:
        served.log.create_topic(TIME_TOPIC, partitions=1)
    message = refused(served.append(TIME_TOPIC, "{}"), 400)
    assert "every answer depends on it. Append to another topic; reading it is free." in message


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"partition": "2"}, "no such partition; the topic has 2, 0 to 1"),
        ({"partition": "-1"}, "partition"),
        ({"partition": "one"}, "partition"),
        ({"partition": "99999999999"}, "partition"),
        ({"key": ""}, "key"),
        ({"key": "$"}, "names no part of a record"),
        ({"key": "$.a[*]"}, "is not a path"),
        ({"envelope": "maybe"}, "envelope"),
        ({"keys": "id"}, "unknown parameters: keys"),
    ],
)
def test_bad_parameters_store_nothing(
    served: Served, parameters: dict[str, str], problem: str
) -> None:
    assert problem in refused(served.append("clicks", "{}", **parameters), 400)
    assert stored(served) == 0


def test_streams_that_disagree_about_the_key_are_told(served: Served) -> None:
    assert "By HTTP: pass key=FIELD" in refused(served.append("both", "{}"), 400)
    assert served.append("both", '{"shop": "s"}', key="shop").json()["without_key"] == 0


def test_a_compacted_topic_needs_keys(served: Served) -> None:
    served.log.create_topic("latest", settings=TopicSettings(compact=True))
    assert "has no key" in refused(served.append("latest", "{}"), 400)
    assert served.append("latest", '{"id": 1}', key="id").status_code == 200
    served.log.delete_topic("latest")


def send_raw(served: Served, data: bytes) -> bytes:
    address = urlsplit(served.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall(data)
        found = b""
        while chunk := connection.recv(65_536):
            found += chunk
    return found


@pytest.mark.parametrize("sent", [b"", b'{"page":', b'{"page": "/"}'])
def test_a_body_that_is_sent_by_half_stores_nothing(
    served: Served, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    address = urlsplit(served.url)
    head = (
        b"POST /v1/topics/clicks HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer admin\r\n"
        b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    )
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            with socket.create_connection((address.hostname, address.port)) as connection:
                connection.sendall(head + sent)
        assert served.append("clicks", '{"page": "/"}').status_code == 200
    assert served.values("clicks") == ['{"page": "/"}']
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_what_producers_do_wrong_is_no_matter_of_the_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for body, _, _ in BAD:
            served.append("clicks", body)
        served.append("nothing", "{}")
        served.append("clicks", "{}", partition="9")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_more_than_fits_memory_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingesting, "MAX_HELD_BYTES", 100)
    for _ in range(3):
        answer = served.append("clicks", json.dumps({"page": "x" * 200}))
        assert "send this one again in a moment" in refused(answer, 429, "EngineBusy")
        assert answer.headers["Retry-After"] == "1"
    for _ in range(3):  # what was held is given back
        assert served.append("clicks", json.dumps({"page": "x" * 50})).status_code == 200
    assert stored(served) == 3


def test_one_bad_body_among_many_takes_no_other_along(served: Served) -> None:
    def send(number: int) -> httpx.Response:
        if number % 4 == 0:
            return served.append("clicks", "{}", partition="7")
        return served.append("clicks", f'[{{"n": {number}}}, {{"n": {number}}}]')

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(send, range(64)))
    assert [answer.status_code for answer in answers] == [400, 200, 200, 200] * 16
    numbers = [json.loads(value)["n"] for value in served.values("clicks")]
    assert sorted(numbers) == sorted(2 * [number for number in range(64) if number % 4])
    found = served.records("clicks")
    for number, answer in enumerate(answers):
        if number % 4:  # the offsets that each was told are its own
            (place,) = answer.json()["partitions"]
            own = [
                json.loads(record["value"])["n"]
                for record in found
                if record["partition"] == place["partition"]
                and place["first_offset"] <= record["offset"] < place["end_offset"]
            ]
            assert own == [number, number]
