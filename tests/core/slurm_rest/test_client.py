"""slurmrestd over a real socket: what is asked, what is tried again, and what is refused."""

from __future__ import annotations

import json
import shutil
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from collectors.slurm.rest import client
from collectors.slurm.rest.address import read_address
from collectors.slurm.rest.client import Access, RestError, RestTooMuchError, Slurmrestd, stored_query
from collectors.slurm.rest.stream import AnswerError
from collectors.slurm.rest.token import token_reference
from tests.core.slurm_rest.stub import TOKEN, Reply, Stub

START, END = datetime(2026, 12, 1, tzinfo=UTC), datetime(2026, 12, 2, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAUSES_SECONDS", (0.0, 0.0))


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
def access(stub: Stub, tmp_path: Path) -> Iterator[Access]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), stub.handler()) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield access_to(f"http://127.0.0.1:{server.server_address[1]}", tmp_path)
        server.shutdown()


def access_to(address: str, folder: Path, **changed: str) -> Access:
    (folder / "jwt").write_text(TOKEN)
    return Access(read_address(address), token_reference(f"file:{folder}/jwt"), **changed)


def ask(access: Access, **options: Any) -> list[Any]:
    with Slurmrestd(access, **options) as rest:
        return list(rest.stored_jobs("v0.0.42", "lab", START, END))


def test_the_token_and_the_user_travel_in_headers_only(stub: Stub, access: Access) -> None:
    ask(access._replace(user="collector"))
    [(path, headers)] = stub.seen
    assert (headers["x-slurm-user-token"], headers["x-slurm-user-name"]) == (TOKEN, "collector")
    assert TOKEN not in path
    ask(access)
    assert "x-slurm-user-name" not in stub.seen[1][1]


def test_a_renewed_token_is_used_from_the_next_question_on(stub: Stub, access: Access, tmp_path: Path) -> None:
    with Slurmrestd(access) as rest:
        list(rest.live_jobs("v0.0.42"))
        (tmp_path / "jwt").write_text("dddd.eeee.ffff")
        list(rest.live_jobs("v0.0.42"))
    assert [headers["x-slurm-user-token"] for _, headers in stub.seen] == [TOKEN, "dddd.eeee.ffff"]


def test_a_unix_socket_is_asked_like_a_port(stub: Stub, tmp_path: Path) -> None:
    path = str(tmp_path / "rest.socket")
    with socketserver.ThreadingUnixStreamServer(path, stub.handler()) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        assert ask(access_to(f"unix:{path}", tmp_path)) == []
        server.shutdown()
    assert stub.seen[0][0].startswith("/slurmdb/v0.0.42/jobs?")


def test_every_attempt_is_asked_for_with_whole_times_and_no_steps() -> None:
    newer = stored_query("v0.0.42", "lab", START, END)
    assert newer.startswith("start_time=uts1796083200&end_time=uts1796169600&cluster=lab&skip_steps=true&")
    assert "show_duplicates=true&disable_truncate_usage_time=true" in newer
    assert "&state=PENDING&state=RUNNING&" in newer
    oldest = stored_query("v0.0.38", "a&b", START, END)
    assert "cluster=a%26b" in oldest
    assert "state=PENDING%2CRUNNING" in oldest
    assert "show_duplicates" not in oldest


@pytest.mark.parametrize(
    "passing", [(502, b""), (503, b""), (504, b""), (429, b""), None], ids=["502", "503", "504", "429", "hangs up"]
)
def test_a_passing_fault_is_tried_again(stub: Stub, access: Access, passing: Reply) -> None:
    stub.replies = lambda _path, count: passing if count < 3 else (200, b'{"jobs": [1]}')
    assert ask(access) == [1]
    assert len(stub.seen) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
def test_a_refusal_is_not_tried_again_and_says_what_to_do(stub: Stub, access: Access, status: int) -> None:
    stub.replies = lambda _path, _count: (status, b"Authentication failure")
    with pytest.raises(RestError, match=f"{status} .*Authentication failure") as refused:
        ask(access)
    assert len(stub.seen) == 1
    assert TOKEN not in str(refused.value)


def test_a_fault_that_does_not_pass_is_told_with_its_words(stub: Stub, access: Access) -> None:
    said = {"errors": [{"error": "Unable to connect to database", "description": "authentication error", "error_number": 7000}]}
    stub.replies = lambda _path, _count: (502, json.dumps(said).encode())
    with pytest.raises(RestError, match=r"502 .*Unable to connect to database: authentication error \(7000\)"):
        ask(access)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_refused_and_the_token_stays(stub: Stub, access: Access, status: int) -> None:
    stub.location = "http://127.0.0.1:1/elsewhere"
    stub.replies = lambda _path, _count: (status, b"")
    with pytest.raises(RestError, match="refused"):
        ask(access)
    assert len(stub.seen) == 1


def test_an_answer_that_is_too_large_is_cut_off(stub: Stub, access: Access) -> None:
    stub.replies = lambda _path, _count: (200, b'{"jobs": [' + b'"x",' * 200_000 + b"1]}")
    with pytest.raises(RestTooMuchError, match="larger than 500,000 bytes"):
        ask(access, max_bytes=500_000)


def test_an_answer_that_breaks_off_is_no_answer(stub: Stub, access: Access) -> None:
    stub.replies = lambda _path, _count: (200, b'{"jobs": [{"job_id": 1},')
    with pytest.raises(AnswerError, match="ends in the middle"):
        ask(access)


def test_a_silent_slurmrestd_is_given_up(stub: Stub, access: Access) -> None:
    stop = threading.Event()
    stub.replies = lambda _path, _count: (200, b"{}") if stop.wait(5) else None
    with pytest.raises(RestTooMuchError, match="did not answer within 0 s"):
        ask(access, limit_seconds=0.1)
    stop.set()


def test_nobody_listening_is_told_with_the_place(tmp_path: Path) -> None:
    with pytest.raises(RestError, match=f"unix:{tmp_path}/none: there is no socket"):
        ask(access_to(f"unix:{tmp_path}/none", tmp_path))
    with pytest.raises(RestError, match=r"http://127\.0\.0\.1:9: no answer"):
        ask(access_to("http://127.0.0.1:9", tmp_path))


def test_a_missing_token_is_told_before_anything_is_sent(stub: Stub, access: Access) -> None:
    with pytest.raises(RestError, match="not set"):
        ask(access._replace(token=token_reference("env:NO_SUCH_TOKEN")))
    assert stub.seen == []


def test_the_environments_proxy_is_not_asked(stub: Stub, access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert ask(access) == []


def test_the_version_is_found_in_the_openapi_document_wherever_its_pieces_are_cut(stub: Stub, access: Access) -> None:
    filler = b" " * (client.CHUNK_BYTES - 20)
    stub.replies = lambda _path, _count: (200, b"{" + filler + rb'"\/slurmdb\/v0.0.41\/jobs\/": {}, "/slurmdb/v0.0.40/jobs"}')
    with Slurmrestd(access) as rest:
        assert rest.version() == "v0.0.41"
    assert [path for path, _ in stub.seen] == ["/openapi/v3"]


def test_without_an_openapi_document_the_versions_are_tried_from_the_newest(stub: Stub, access: Access) -> None:
    stub.replies = lambda path, _count: (200, b"{}") if path == "/slurmdb/v0.0.42/diag" else (404, b"Unable find requested URL.")
    with Slurmrestd(access) as rest:
        assert rest.version() == "v0.0.42"
    assert [path for path, _ in stub.seen] == ["/openapi/v3", *(f"/slurmdb/v0.0.{n}/diag" for n in (44, 43, 42))]


def test_a_slurmrestd_of_unknown_versions_is_told(stub: Stub, access: Access) -> None:
    stub.replies = lambda _path, _count: (200, b'{"/slurmdb/v0.0.36/jobs": {}}')
    with pytest.raises(RestError, match=r"it offers v0\.0\.36; those that can be read: v0\.0\.44"), Slurmrestd(access) as rest:
        rest.version()


@pytest.fixture
def tls(stub: Stub, tmp_path: Path) -> Iterator[str]:
    """The address of a stub whose certificate nobody has signed; it stands in cert.pem."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl here to make a certificate with")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    extra = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([openssl, *made, *extra], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    class Server(socketserver.ThreadingTCPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A handshake that the client breaks off is what is expected."""

    with Server(("127.0.0.1", 0), stub.handler()) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"https://localhost:{server.server_address[1]}"
        server.shutdown()


def test_a_certificate_that_nobody_signed_is_refused(tls: str, stub: Stub, tmp_path: Path) -> None:
    with pytest.raises(RestError, match="CERTIFICATE_VERIFY_FAILED"):
        ask(access_to(tls, tmp_path))
    assert stub.seen == []


def test_an_authority_of_ones_own_is_trusted_by_name(tls: str, tmp_path: Path) -> None:
    assert ask(access_to(tls, tmp_path, ca_file=str(tmp_path / "cert.pem"))) == []


def test_an_authority_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(RestError, match="no certificates can be read"):
        ask(access_to("https://localhost:1", tmp_path, ca_file=str(tmp_path / "none.pem")))
