"""The token of the served pages: where it is kept, what it opens, and what is refused without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.model.errors import SteelyardError
from steelyard.serve.access import Access, kept_token
from tests.unit.serve.served import TOKEN, Served

PORT = 8765


def test_a_token_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "serve-token"
    token = kept_token(path)
    assert re.fullmatch(r"[0-9a-f]{48}", token)
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept_token(path) == token
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("damage", ["readable", "empty", "other text", "link"])
def test_a_token_that_others_may_know_is_replaced(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "serve-token"
    before = kept_token(path)
    match damage:
        case "readable":
            path.chmod(0o644)
        case "empty":
            path.write_text("")
        case "other text":
            path.write_text("guess me")
        case _:
            path.rename(tmp_path / "elsewhere")
            path.symlink_to(tmp_path / "elsewhere")
    after = kept_token(path)
    assert after != before
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_token_that_cannot_be_kept_is_an_error_for_people(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SteelyardError, match="cannot be kept"):
        kept_token(tmp_path / "file" / "serve-token")


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
