"""Who may ask for what: roles, sessions of browsers, rates, TLS.

Method: a real server over an empty store, asked by real clients.
"""

import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets import Origin
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from headrace.errors import EngineError
from headrace.project.serving import ServeSettings
from headrace.serve.http.guard import SESSION_COOKIE, Limits
from headrace.serve.http.permissions import (
    SESSION_SECONDS,
    Grant,
    Permissions,
    Role,
    TokenGrant,
)
from headrace.serve.http.server import serve
from serve.serving_store import EXPIRED, TOKENS, Server, bearer, grants, serving_store
from serve.subscribing import closing

READS = ["/v1/status", "/v1/definitions", "/v1/graph", "/v1/explain", "/v1/turns", "/metrics"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving_store(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.mark.parametrize("path", READS)
def test_reading_takes_the_role_read(server: Server, path: str) -> None:
    answers = {
        role: httpx.get(server.url + path, headers=bearer(token), trust_env=False)
        for role, token in TOKENS.items()
    }
    assert [answers[role].status_code for role in Role] == [403, 200, 200]
    assert answers[Role.INGEST].json() == {
        "error": "AccessDenied",
        "message": "this takes the role read; the token has the role ingest",
    }


def test_an_export_takes_the_role_admin(server: Server) -> None:
    codes = [
        httpx.post(
            f"{server.url}/v1/export", json={}, headers=bearer(TOKENS[role]), trust_env=False
        ).status_code
        for role in Role
    ]
    assert codes == [403, 403, 200]


def test_a_token_that_has_expired_is_refused(server: Server) -> None:
    answer = httpx.get(f"{server.url}/v1/status", headers=bearer(EXPIRED), trust_env=False)
    assert answer.status_code == 401
    login = httpx.post(f"{server.url}/v1/login", json={"token": EXPIRED}, trust_env=False)
    assert login.status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_whether_it_lives_is_told_to_anyone(server: Server, path: str) -> None:
    assert httpx.get(server.url + path, trust_env=False).status_code == 200


def test_which_views_are_built_is_told_to_who_may_read(tmp_path: Path) -> None:
    with serving_store(tmp_path, unready=lambda: "still being built: salaries") as server:
        told = [
            httpx.get(f"{server.url}/readyz", headers=headers, trust_env=False)
            for headers in ({}, bearer("wrong"), *(bearer(TOKENS[role]) for role in Role))
        ]
    assert {answer.status_code for answer in told} == {503}
    assert ["salaries" in answer.text for answer in told] == [False, False, False, True, True]


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2", "::1"])
def test_this_machine_is_asked_by_its_own_names_alone(tmp_path: Path, host: str) -> None:
    if ":" in host and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with serving_store(tmp_path, settings=ServeSettings(host=host)) as server:
        for name in (None, "127.0.0.1", "LOCALHOST:1", "[::1]", "[::1]:80", "evil.example:80"):
            headers = {} if name is None else {"Host": name}
            answer = httpx.get(f"{server.url}/healthz", headers=headers, trust_env=False)
            assert answer.status_code == (400 if name == "evil.example:80" else 200), name


def test_a_browser_logs_in_and_out(server: Server) -> None:
    with httpx.Client(base_url=server.url, trust_env=False) as browser:
        assert browser.get("/v1/session").status_code == 401
        login = browser.post("/v1/login", json={"token": TOKENS[Role.READ]})
        assert (login.json()["name"], login.json()["role"]) == ("a read", "read")
        cookie = login.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/"))
        assert TOKENS[Role.READ] not in cookie
        assert browser.get("/v1/session").json() == login.json()
        kept = dict(browser.cookies)
        assert browser.post("/v1/logout", headers={"Origin": server.url}).status_code == 204
        assert browser.get("/v1/session").status_code == 401
    again = httpx.get(f"{server.url}/v1/session", cookies=kept, trust_env=False)
    assert again.status_code == 401  # who kept a copy of the cookie has nothing


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null"])
def test_another_page_cannot_use_the_session_of_a_browser(
    server: Server, origin: str | None
) -> None:
    with httpx.Client(base_url=server.url, trust_env=False) as browser:
        browser.post("/v1/login", json={"token": TOKENS[Role.ADMIN]})
        headers = {} if origin is None else {"Origin": origin}
        answer = browser.post("/v1/sql", json={"sql": "SELECT 1"}, headers=headers)
        assert answer.status_code == 403
        own = browser.post("/v1/sql", json={"sql": "SELECT 1"}, headers={"Origin": server.url})
        assert own.status_code == 200


@pytest.mark.parametrize("other", ['prefs={"a":1}', "a,b=1", "y[0]=2", "na me=1", "plain"])
def test_cookies_of_other_programs_on_the_host_end_no_session(server: Server, other: str) -> None:
    login = httpx.post(f"{server.url}/v1/login", json={"token": TOKENS[Role.READ]}, trust_env=False)
    cookies = f"{other}; {SESSION_COOKIE}={login.cookies[SESSION_COOKIE]}; {other}"
    answer = httpx.get(f"{server.url}/v1/session", headers={"Cookie": cookies}, trust_env=False)
    assert answer.status_code == 200


@pytest.mark.parametrize("changed", ["", "x", ".", "a.b", "eyJ9.00"])
def test_a_session_that_was_not_signed_here_is_none(server: Server, changed: str) -> None:
    cookies = {SESSION_COOKIE: changed}
    answer = httpx.get(f"{server.url}/v1/session", cookies=cookies, trust_env=False)
    assert answer.status_code == 401


def test_a_session_ends_with_its_token_and_outlives_a_restart() -> None:
    now_us = 1_000_000

    def permissions(*tokens: TokenGrant) -> Permissions:
        return Permissions(tokens, key=b"k" * 32, now_us=lambda: now_us)

    token = TokenGrant.of("secret", Grant("ci", Role.READ, expires_us=5_000_000))
    found = permissions(token).log_in("secret")
    assert found is not None
    session, grant = found
    assert grant.expires_us == 5_000_000  # not after its token
    assert permissions(token).of_session(session) == grant
    assert permissions().of_session(session) is None  # the token was taken away
    now_us = 5_000_000
    assert permissions(token).of_session(session) is None
    forever = TokenGrant.of("other", Grant("me", Role.ADMIN))
    second = permissions(forever).log_in("other")
    assert second is not None
    assert second[1].expires_us == now_us + SESSION_SECONDS * 1_000_000
    other_key = Permissions([forever], key=b"other" * 8, now_us=lambda: now_us)
    assert other_key.of_session(second[0]) is None


def test_too_many_requests_with_one_token_are_told(tmp_path: Path) -> None:
    with (
        serving_store(tmp_path, limits=Limits(requests_per_second=3)) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
    ):
        codes = [
            client.get("/v1/turns", headers=bearer(TOKENS[Role.READ])).status_code for _ in range(8)
        ]
        assert codes[:3] == [200] * 3
        assert 429 in codes
        other = client.get("/v1/turns", headers=bearer(TOKENS[Role.ADMIN]))
        assert other.status_code == 200  # another token has its own rate


def test_a_websocket_without_permission_is_told_why(server: Server) -> None:
    url = server.url.replace("http", "ws") + "/v1/views/x/changes"
    with connect(url, proxy=None) as refused, pytest.raises(ConnectionClosed) as closed:
        refused.recv(timeout=5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401
    assert closed.value.rcvd.reason.startswith("the token is missing")


def test_what_is_not_there_is_told_in_the_one_form(server: Server) -> None:
    headers = bearer(TOKENS[Role.READ])
    missing = httpx.get(f"{server.url}/v1/nothing", headers=headers, trust_env=False)
    assert (missing.status_code, missing.json()["error"]) == (404, "UsageError")
    other = httpx.put(f"{server.url}/v1/status", headers=headers, trust_env=False)
    assert (other.status_code, other.json()["error"]) == (405, "UsageError")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a CA, a certificate of the server and one of a client, by OpenSSL's own command."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ours", "-days", "2")  # fmt: skip
    for name in ("server", "client"):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}",
                "-addext", "subjectAltName=IP:127.0.0.1")  # fmt: skip
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-copy_extensions", "copy", "-out", f"{name}.pem",
                "-days", "2")  # fmt: skip
    return folder


def trusting(certificates: Path, *, client: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    if client:
        context.load_cert_chain(certificates / "client.pem", certificates / "client.key")
    return context


def test_tls_takes_two_settings(tmp_path: Path, certificates: Path) -> None:
    settings = ServeSettings(
        tls_certificate=certificates / "server.pem", tls_key=certificates / "server.key"
    )
    with serving_store(tmp_path, settings=settings) as server:
        assert server.url.startswith("https://127.0.0.1:")
        answer = httpx.get(
            f"{server.url}/v1/turns",
            headers=bearer(TOKENS[Role.READ]),
            verify=trusting(certificates),
            trust_env=False,
        )
        assert answer.status_code == 200
        login = httpx.post(
            f"{server.url}/v1/login",
            json={"token": TOKENS[Role.READ]},
            verify=trusting(certificates),
            trust_env=False,
        )
        assert "Secure" in login.headers["set-cookie"]


def test_a_client_without_a_certificate_is_not_heard(tmp_path: Path, certificates: Path) -> None:
    settings = ServeSettings(
        tls_certificate=certificates / "server.pem",
        tls_key=certificates / "server.key",
        tls_client_ca=certificates / "ca.pem",
    )
    permissions = Permissions(grants(), certificate=Grant("certificate", Role.READ))
    with serving_store(tmp_path, settings=settings, permissions=permissions) as server:
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{server.url}/healthz", verify=trusting(certificates), trust_env=False)
        with httpx.Client(
            base_url=server.url, verify=trusting(certificates, client=True), trust_env=False
        ) as client:
            assert client.get("/v1/turns").status_code == 200
            assert client.post("/v1/export", json={}).status_code == 403
            admin = client.post("/v1/export", json={}, headers=bearer(TOKENS[Role.ADMIN]))
            assert admin.status_code == 200
            # A browser sends the certificate for whatever page asks.
            for origin, code in [(server.url, 200), ("https://evil.example", 403), ("null", 403)]:
                asked = client.post("/v1/sql", json={"sql": "SELECT 1"}, headers={"Origin": origin})
                assert asked.status_code == code, origin
        url = server.url.replace("https", "wss") + "/v1/views/x/changes"
        for origin, code in [(server.url, 4404), ("https://evil.example", 4403)]:
            with connect(
                url,
                origin=Origin(origin),
                ssl=trusting(certificates, client=True),
                proxy=None,
            ) as refused:
                assert closing(refused)[1] == code


def test_without_a_certificate_its_role_is_not_granted(tmp_path: Path) -> None:
    """As on the second listener, which asks for none."""
    permissions = Permissions(grants(), certificate=Grant("certificate", Role.READ))
    with serving_store(tmp_path, permissions=permissions) as server:
        headers = {"X-Forwarded-Proto": "https"}
        answer = httpx.get(f"{server.url}/v1/turns", headers=headers, trust_env=False)
        assert answer.status_code == 401


def test_a_certificate_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("no certificate")
    settings = ServeSettings(tls_certificate=tmp_path / "a.pem", tls_key=tmp_path / "a.pem")
    with pytest.raises(EngineError, match="TLS cannot begin"), serve(lambda: None, settings):
        pass


def test_a_status_is_worked_out_once_for_a_commit(server: Server) -> None:
    desk = server.services.desk
    first = desk.status()
    assert desk.status() is first
    server.services.commits.note()
    second = desk.status()
    assert second is not first
    assert (second["commit"], second["project"]) == (first["commit"], "shop")
    assert abs(second["taken_us"] / 1_000_000 - time.time()) < 60


def test_metrics_have_what_turns_did_and_what_status_says(server: Server) -> None:
    from headrace.ledger.entries import TurnReport

    report = TurnReport("main", 1, "short", 250, 3, 2, {"fold": 40.0, "publish": 0.0}, 1)
    server.services.turns.note(report)
    text = httpx.get(
        f"{server.url}/metrics", headers=bearer(TOKENS[Role.READ]), trust_env=False
    ).text
    assert 'headrace_turns_total{gear="short",unit="main"} 1.0' in text
    assert 'headrace_turn_records_total{unit="main"} 250.0' in text
    assert 'headrace_turn_seconds_bucket{le="0.05",step="fold",unit="main"} 1.0' in text
    assert "headrace_commits_total 0.0" in text
    assert "headrace_sink_rows 0.0" in text
    turns = httpx.get(
        f"{server.url}/v1/turns", headers=bearer(TOKENS[Role.READ]), trust_env=False
    ).json()["turns"]
    assert (turns[0]["records"], turns[0]["milliseconds"]["fold"]) == (250, 40.0)
    assert turns[0]["fresh_ms"] > 0
