"""The address and the token: what is taken, what is refused, and that a token shows nowhere."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.slurm.rest.address import read_address
from collectors.slurm.rest.token import TokenError, expires_at, token_reference


def jwt(claims: object) -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "HS256"}, claims))
    return ".".join([*parts, "c2lnbmF0dXJl"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://127.0.0.1:6820", "http://127.0.0.1:6820"),
        ("https://slurm.example.org/rest/", "https://slurm.example.org/rest"),
        ("unix:/run/slurmrestd.socket", "unix:/run/slurmrestd.socket"),
        ("unix:///run/slurmrestd.socket", "unix:/run/slurmrestd.socket"),
        ("http://[::1]:6820", "http://[::1]:6820"),
    ],
)
def test_an_address_is_read(text: str, expected: str) -> None:
    assert str(read_address(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slurm.example.org",
        "ftp://x",
        "http://",
        "http://u:secret@x",
        "http://x?a=b",
        "http://x#y",
        "http://x:99999",
        "unix:run/s",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        read_address(text)
    assert "secret" not in str(refused.value)


def test_only_plain_http_over_a_network_shows_the_token() -> None:
    assert read_address("http://slurm.example.org:6820").is_plain
    assert not any(read_address(text).is_plain for text in ("https://a.example.org", "http://localhost:1", "unix:/s"))


def test_a_token_is_read_where_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = jwt({"exp": 1})
    (tmp_path / "jwt").write_text(f"SLURM_JWT={token}\n")
    monkeypatch.setenv("SLURM_JWT_LAB", f" {token} ")
    assert token_reference(f"file:{tmp_path}/jwt").read() == token
    assert token_reference("env:SLURM_JWT_LAB").read() == token


def test_a_token_in_place_of_its_reference_is_refused_and_not_repeated() -> None:
    for text in (jwt({"exp": 1}), "env:" + jwt({"exp": 1}), "file:relative", "", "vault:x"):
        with pytest.raises(TokenError) as refused:
            token_reference(text)
        assert text not in str(refused.value) or not text


@pytest.mark.parametrize("kept", ["", "two words", "a.b", "x" * 40_000, "a.b.c\r\nX-Evil: 1", "ä.ö.ü"])
def test_what_is_no_token_is_refused_and_not_repeated(kept: str, tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text(kept)
    with pytest.raises(TokenError) as refused:
        token_reference(f"file:{tmp_path}/jwt").read()
    assert kept[:5] not in str(refused.value) or not kept


def test_a_token_that_is_not_there_says_where_it_was_sought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    with pytest.raises(TokenError, match="NO_SUCH_TOKEN is not set"):
        token_reference("env:NO_SUCH_TOKEN").read()
    with pytest.raises(TokenError, match="no such file"):
        token_reference(f"file:{tmp_path}/none").read()


def test_the_end_of_a_token_is_told_by_itself() -> None:
    assert expires_at(jwt({"exp": 1_796_103_900, "iat": 1, "sun": "root"})) == datetime(2026, 12, 1, 5, 45, tzinfo=UTC)


@pytest.mark.parametrize("claims", [{}, {"exp": None}, {"exp": "soon"}, {"exp": True}, {"exp": -1}, {"exp": 10**30}, [], "x", 7])
def test_a_token_that_does_not_say_when_it_ends_has_no_end(claims: object) -> None:
    assert expires_at(jwt(claims)) is None


@given(payload=st.binary(max_size=60))
def test_whatever_the_token_holds_its_end_is_a_time_or_unknown(payload: bytes) -> None:
    token = f"a.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.c"
    assert isinstance(expires_at(token), datetime | None)
