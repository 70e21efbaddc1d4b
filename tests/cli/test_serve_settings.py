"""[serve] of headrace.toml: what is refused, and what it takes to be reached from elsewhere."""

from pathlib import Path

import pytest

from headrace.errors import DefinitionError
from headrace.project.config import read_config
from headrace.project.serving import ServeSettings

TOKEN = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("A_TOKEN", TOKEN)
    for name in ("a.pem", "a.key", "ca.pem"):
        (tmp_path / name).write_text("")
    return tmp_path


def problems(folder: Path, text: str) -> list[str]:
    (folder / "headrace.toml").write_text(text)
    with pytest.raises(DefinitionError) as refused:
        read_config(folder)
    return [str(each) for each in refused.value.problems]


def test_without_a_word_this_machine_alone_is_served(folder: Path) -> None:
    (folder / "headrace.toml").write_text("")
    assert read_config(folder).serve == ServeSettings(host="127.0.0.1", port=0)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_token(folder: Path, host: str) -> None:
    (folder / "headrace.toml").write_text(f'[serve]\nhost = "{host}"\n')
    assert read_config(folder).serve.is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "shop.example"])
def test_another_address_needs_permission_and_tls(folder: Path, host: str) -> None:
    found = problems(folder, f'[serve]\nhost = "{host}"\n')
    start = f"headrace.toml:2:1: host {host} is reached from other machines"
    tls, permission = sorted(found)
    assert permission.startswith(f"{start}, so permission is needed: add [serve.tokens.NAME]")
    assert tls.startswith(f"{start}, and without TLS")
    assert "write plaintext = true" in tls


def test_what_it_takes_to_be_reached_from_elsewhere(folder: Path) -> None:
    for text in (
        'tls_certificate = "a.pem"\ntls_key = "a.key"\ntls_client_ca = "ca.pem"\n',
        'plaintext = true\n[serve.tokens.a]\nrole = "read"\ntoken = "${A_TOKEN}"\n',
    ):
        (folder / "headrace.toml").write_text(f'[serve]\nhost = "0.0.0.0"\n{text}')
        assert not read_config(folder).serve.is_loopback


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('tls_certificate = "a.pem"', "one of them is missing"),
        ('tls_certificate = "b.pem"\ntls_key = "a.key"', "there is no file 'b.pem'"),
        ('tls_client_ca = "ca.pem"', "so the server needs one too"),
        ('client_role = "read"', "client_role is for clients with a certificate"),
        ('client_role = "root"', "the role 'root' is not known"),
        ("max_body_mb = 0", "max_body_mb is 0; write 1 or more"),
        ('plaintext = "yes"', "plaintext takes true or false"),
        ("ports = 1", "did you mean port?"),
        ("tokens = 1", "tokens takes a section of its own"),
        ('[serve.tokens.a]\ntoken = "${A_TOKEN}"', "the role None is not known"),
        ('[serve.tokens.a]\nrole = "read"', "token is missing"),
        ('[serve.tokens.a]\nrole = "read"\ntoken = "${NOT_SET}"', "environment has no NOT_SET"),
        ('[serve.tokens.a]\nrole = "read"\ntoken = "short"', "can be guessed"),
        (
            f'[serve.tokens.a]\nrole = "read"\ntoken = "{TOKEN}"\nexpires = "soon"',
            "expires takes a date or a time",
        ),
        (
            f'[serve.tokens.a]\nrole = "read"\ntoken = "{TOKEN}"\nnote = 1',
            "a token has no setting 'note'",
        ),
        ("[serve.tokens]\na = 1", "a token is a section of its own"),
    ],
)
def test_settings_that_make_no_sense_are_refused(folder: Path, text: str, message: str) -> None:
    found = problems(folder, f"[serve]\n{text}\n" if not text.startswith("[") else text)
    assert any(message in each for each in found), found


def test_a_token_is_not_shown(folder: Path) -> None:
    text = f'[serve.tokens.a]\nrole = "read"\ntoken = "{TOKEN}"\nexpires = 2027-01-01\n'
    (folder / "headrace.toml").write_text(text)
    (found,) = read_config(folder).serve.tokens
    assert TOKEN not in repr(found)
    assert found.expires_us == 1_798_761_600_000_000
