"""The token of the served pages: of one process, what it opens, and what is refused without it."""

from __future__ import annotations

import hmac
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard.serve.access import NONCE_HEADER, PROOF_HEADER, Access, is_of_another_user, new_token, page_key
from tests.unit.serve.served import TOKEN, Served

PORT = 8765


def test_every_process_has_a_token_of_its_own() -> None:
    tokens = {new_token() for _ in range(20)}
    assert len(tokens) == len({page_key(token) for token in tokens}) == 20
    assert all(re.fullmatch(r"[0-9a-f]{48}", token) for token in tokens)


def proven(target: str, key: str, nonce: str = "n1") -> dict[str, str]:
    """The headers with which a page asks for news: without the cookie."""
    mac = hmac.new(key.encode(), f"ask\n{nonce}\n{target}".encode(), "sha256").hexdigest()
    return {"Cookie": "", NONCE_HEADER: nonce, PROOF_HEADER: mac}


def test_a_page_asks_without_the_cookie_and_gets_a_proof(untouched: Served) -> None:
    key = page_key(TOKEN)
    for target, status in (("/api/s/s?have=", 200), ("/api/s/none", 404)):
        answered, headers, text = untouched.ask(target, headers=proven(target, key))
        assert answered == status
        expected = hmac.new(key.encode(), f"answer\nn1\n{text}".encode(), "sha256").hexdigest()
        assert headers[PROOF_HEADER] == expected


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("/api/s/s", proven("/api/s/s", page_key(TOKEN[::-1]))),
        ("/api/s/s", proven("/api/stores", page_key(TOKEN))),
        ("/api/s/s", {**proven("/api/s/s", page_key(TOKEN)), NONCE_HEADER: "n2"}),
        ("/api/s/s", {**proven("/api/s/s", page_key(TOKEN)), "Sec-Fetch-Site": "cross-site"}),
        ("/api/s/s", {"Cookie": "", NONCE_HEADER: "n1", PROOF_HEADER: "\u00ff"}),
        ("/api/s/s", proven("/api/s/s", page_key(TOKEN), "n" * 65)),
        ("/s/s", proven("/s/s", page_key(TOKEN))),
    ],
    ids=["another process", "another target", "another nonce", "another site", "no proof", "long nonce", "a page"],
)
def test_without_the_key_of_this_process_nothing_is_told(
    untouched: Served, target: str, headers: dict[str, str]
) -> None:
    status, _, text = untouched.ask(target, headers=headers)
    assert status == 403
    assert "laboratory" not in text


@pytest.mark.parametrize(("uid", "refused"), [(os.getuid(), False), (0, False), (4321, True)])
@pytest.mark.parametrize(
    ("family", "peer", "own"),
    [
        (("0100007F", "0100007F"), "127.0.0.1", "127.0.0.1"),
        (("0200007F", "0100007F"), "127.0.0.2", "127.0.0.1"),
        ((f"{0:024X}01000000", f"{0:024X}01000000"), "::1", "::1"),
        ((f"{0:016X}FFFF00000100007F", f"{0:016X}FFFF00000100007F"), "127.0.0.1", "127.0.0.1"),
        ((f"{0:016X}FFFF00000301007F", f"{0:016X}FFFF00000100007F"), "127.0.1.3", "127.0.0.1"),
    ],
)
def test_the_socket_of_another_user_is_known(
    tmp_path: Path, family: tuple[str, str], peer: str, own: str, uid: int, refused: bool
) -> None:
    table, (remote, local) = tmp_path / "tcp", family
    rest = "01 00000000:00000000 00:00000000 00000000"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        f"   0: {local}:223D {remote}:C001 {rest}  {4321 - uid}        0 1 1 0\n"
        f"   1: {remote}:C001 {local}:223D {rest}  {uid}        0 2 1 0\n"
        f"   2: {remote}:C001 {local}:223E {rest}  {4321 - uid}        0 3 1 0\n"
    )
    ours = (own, PORT, 0, 0)
    assert is_of_another_user((peer, 0xC001, 0, 0), ours, [tmp_path / "none", table]) is refused
    assert is_of_another_user((peer, 0xC002, 0, 0), ours, [table]), "listed nowhere: nobody knows whose it is"
    assert is_of_another_user(("127.0.0.9", 0xC001), ours, [table]), "the port alone says nothing"
    assert not is_of_another_user((peer, 0xC001, 0, 0), ours, [tmp_path / "none"])


@pytest.mark.root
@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"])
def test_the_right_cookie_is_worth_nothing_to_another_user(source: str, untouched: Served) -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("needs an interpreter that other users may start")
    program = (
        "import sys, http.client as h\n"
        "there = h.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=30, source_address=(sys.argv[3], 0))\n"
        "there.request('GET', '/s/s', headers={'Cookie': sys.argv[2]})\n"
        "print(there.getresponse().status)"
    )
    for user, status in ((None, "200"), (65534, "403")):
        argv = [python, "-I", "-c", program, str(untouched.server.port), untouched.cookie["Cookie"], source]
        done = subprocess.run(argv, user=user, cwd="/", capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == status


@pytest.mark.parametrize(
    ("target", "rest"),
    [
        (f"/?token={TOKEN}", "/"),
        (f"/s/a%20b?token={TOKEN}", "/s/a%20b"),
        (f"/s/s/report?now=1&token={TOKEN}", "/s/s/report?now=1"),
        (f"//evil.example/?token={TOKEN}", "/"),
        (f"/?token=wrong&token={TOKEN}", "/"),
        ("/", None),
        ("/?token=", None),
        (f"/?token={TOKEN}0", None),
        ("/?token=%ff\u20ac", None),
        (f"/{TOKEN}", None),
    ],
)
def test_the_token_in_an_address(target: str, rest: str | None) -> None:
    assert Access(TOKEN, PORT).asked_with_token(target) == rest


@pytest.mark.parametrize(
    ("header", "known"),
    [
        (f"steelyard-8765={TOKEN}", True),
        (f"other=1; steelyard-8765={TOKEN}; x=y", True),
        ("", False),
        ("steelyard-8765=", False),
        (f"steelyard-8766={TOKEN}", False),
        (f"steelyard-8765={TOKEN[:-1]}", False),
        ("steelyard-8765=\u00ff", False),
        ("[];=;=", False),
    ],
)
def test_the_token_in_a_cookie(header: str, known: bool) -> None:
    assert Access(TOKEN, PORT).has_cookie(header) is known


@pytest.mark.parametrize(
    "path", ["/", "/s/s", "/api/stores", "/api/s/s", "/assets/serve.js", "/s/s/report", "/nothing"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_nothing_is_read_without_the_token(untouched: Served, path: str, method: str) -> None:
    for cookie in ("", "steelyard=1", f"steelyard-{untouched.server.port}={TOKEN[::-1]}"):
        status, headers, text = untouched.ask(path, method, {"Cookie": cookie})
        assert (status, "Set-Cookie" in headers) == (403, False)
        assert method == "HEAD" or "steelyard serve" in text
        assert "laboratory" not in text


def test_the_address_with_the_token_lets_in(untouched: Served) -> None:
    status, headers, text = untouched.ask(f"/s/s?token={TOKEN}", headers={"Cookie": ""})
    assert (status, headers["Location"], text) == (303, "/s/s", "")
    cookie = headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert untouched.ask("/s/s", headers={"Cookie": cookie.partition(";")[0]})[0] == 200


def test_a_browser_that_a_file_sent_is_let_in_by_a_page_of_ours(untouched: Served) -> None:
    foreign = {"Cookie": "", "Sec-Fetch-Site": "cross-site"}
    status, headers, text = untouched.ask(f"/s/s?now=1%22&token={TOKEN}", headers=foreign)
    assert (status, "Set-Cookie" in headers) == (200, True)
    assert 'content="0;url=/s/s?now=1%22"' in text
    assert TOKEN not in text
    assert untouched.ask("/s/s", headers={**untouched.cookie, "Sec-Fetch-Site": "cross-site"})[0] == 403
