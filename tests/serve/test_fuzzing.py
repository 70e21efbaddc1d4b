"""The API is called with what its own description allows, and with what it does not.

Method: schemathesis draws requests from /v1/openapi.json and sends them to a real server. No answer
is a failure of the server's own (500), and each is as the description says.
"""

from collections.abc import Iterator
from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks
from soaking import SOAKING, times

from headrace.serve.http.app import OPENAPI
from headrace.serve.http.permissions import Role
from serve.serving_store import TOKENS, Server, bearer, serving_store

pytestmark = pytest.mark.soak

#: Not among them: that whatever fits the description is accepted. SQL is text, and may be wrong.
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]

SHOP = """
CREATE STREAM payments (card STRING, amount DECIMAL(12,2), ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS) WITH (topic = 'payments', key = 'card');
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n FROM payments GROUP BY window(ts, '1 minute');
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving_store(tmp_path_factory.mktemp("fuzzed"), SHOP) as served:
        served.log.create_topic("payments", partitions=2)
        yield served


def operations(server: Server) -> Iterator[APIOperation]:
    described = schemathesis.openapi.from_url(
        f"{server.url}{OPENAPI}", headers=bearer(TOKENS[Role.ADMIN])
    )
    for found in described.get_all_operations():
        yield found.ok()


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_answer_is_as_described(server: Server, mode: GenerationMode) -> None:
    tried = 0
    for operation in operations(server):
        tried += 1
        try_operation(operation, mode)
    assert tried >= 15


def try_operation(operation: APIOperation, mode: GenerationMode) -> None:
    """Send what the description of one operation draws."""

    @settings(
        max_examples=times(6),
        deadline=None,
        database=None,
        derandomize=not SOAKING,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case) -> None:
        answer = case.call(headers=bearer(TOKENS[Role.ADMIN]), timeout=20)
        case.validate_response(answer, checks=CHECKS)

    with suppress(Unsatisfiable):  # it takes nothing that could be wrong
        send()
