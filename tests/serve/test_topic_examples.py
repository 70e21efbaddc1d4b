"""The examples of bodies in the description of the API are good: each of them is appended."""

import json
from pathlib import Path

from headrace.serve.http.values import ARROW
from serve.topics_served import LINES, serving


def test_the_api_describes_the_bodies(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        described = served.ask("GET", "/v1/openapi.json").json()
        content = described["paths"]["/v1/topics/{topic}"]["post"]["requestBody"]["content"]
        assert set(content) == {"application/json", LINES, "application/jsonl", ARROW}
        for type_ in ("application/json", LINES):
            for name, example in content[type_]["examples"].items():
                value = example["value"]
                body = value if isinstance(value, str) else json.dumps(value)
                more = {"envelope": "true"} if name == "envelopes" else {}
                assert served.append("payments", body, type_=type_, **more).status_code == 200
