"""Secrets in settings: which keys hold one, how a study refers to one, and how text is redacted. Pure.

A study never holds a secret, only a reference: `env:NAME` (an environment variable of whoever runs the study) or
`file:/path` (a file outside the store). `steelyard.node.secrets` looks it up at the moment of use, so plans, stores and
reports hold only the reference. Output of nodes and logs passes through `redacted` and `Concealer`.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

REDACTED = "(redacted)"
ENV, FILE = "env:", "file:"
LEAST_CHARS = 4
"""Minimum length: removing a shorter secret from logs would garble them."""

PASSWORDS = ("password", "passwd", "passphrase", "passcode", "pwd", "secret", "credential")
TOKEN_KINDS = frozenset({"access", "api", "auth", "bearer", "id", "login", "refresh", "secret", "security", "session"})
KEY_KINDS = frozenset({"access", "account", "api", "encryption", "private", "secret", "shared", "signing"})
MISSPELT = 0.85
"""Similarity to one of PASSWORDS above which a word counts as that word misspelt, such as `pasword`."""

_ENV_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_FILE_REFERENCE = re.compile(r"file:/\S.*")
_OPTION = re.compile(r"(?P<name>-{0,2}[A-Za-z][\w.-]*)=(?P<value>.+)", re.DOTALL)
_IN_URL = re.compile(r"(://[^/\s:@]*:)([^/\s@]+)(@)")
_IN_TEXT = re.compile(
    r"(?<![\w.-])(?=[\w.-]*?(?:pass|pwd|secret|credential))(?P<name>[\w.-]++)(?P<between>[\"']?\s*[=:]\s*)"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;\"'{}()\[\]]+)",
    re.IGNORECASE,
)
"""Each word is looked at once, so that time grows with the length of the text and not with its square."""
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@functools.lru_cache(maxsize=4096)
def looks_secret(key: str) -> bool:
    """Whether the value under a key must be kept secret: `keystore_password`, `auth_token`, `private_key`,
    `-Djavax.net.ssl.keyStorePassword`; not `num_tokens`, `credentials_validity` or `password_file`."""
    name = _CAMEL.sub("_", key.rpartition(".")[2]).lower()
    words = [word for word in re.split(r"[^a-z0-9]+", name) if word]
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "pass" or last.removesuffix("s").endswith(PASSWORDS):
        return True
    if difflib.get_close_matches(last, PASSWORDS[:3], n=1, cutoff=MISSPELT):
        return True
    return (last == "token" and before in {*TOKEN_KINDS, ""}) or (last == "key" and before in KEY_KINDS)


def is_reference(value: object, key: str) -> bool:
    """Whether a value refers to a secret: `env:NAME` under any key, `file:/path` under a key that looks secret."""
    if not isinstance(value, str):
        return False
    return bool(_ENV_REFERENCE.fullmatch(value) or (_FILE_REFERENCE.fullmatch(value) and looks_secret(key)))


def option_of(text: str) -> tuple[str, str] | None:
    """Name and value of a text such as `-Dname=value`; None for any other text."""
    match = _OPTION.fullmatch(text)
    return (match["name"], match["value"]) if match else None


def literals(tree: Any, key: str = "") -> Iterator[str]:
    """Dotted keys under which a secret is in plain text."""
    for where, value in _leaves(tree, key):
        if is_reference(value, where) or value is None or isinstance(value, bool) or value == "":
            continue
        number = isinstance(value, int | float)
        named = looks_secret(where) and not (number and not where.lower().endswith(PASSWORDS))
        if named or (isinstance(value, str) and (_IN_URL.search(value) or _KEY_BLOCK.search(value))):
            yield where


def references(tree: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Dotted key and reference of every secret that settings refer to."""
    for where, value in _leaves(tree, key):
        if is_reference(value, where):
            yield where, str(value)


def _leaves(tree: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Every value with the key that describes it; a text `name=value` yields both the whole and its value."""
    if isinstance(tree, Mapping):
        for name, inner in tree.items():
            yield from _leaves(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(tree, list | tuple):
        for inner in tree:
            yield from _leaves(inner, key)
    elif isinstance(tree, str) and not looks_secret(key) and (option := option_of(tree)) is not None:
        yield (f"{key}.{option[0]}" if key else option[0]), option[1]
        yield key, tree if _IN_URL.search(tree) else None
    else:
        yield key, tree


def redacted(tree: Any, key: str = "") -> Any:
    """A copy without secrets: values under keys that look secret, and `password = ...` within texts, are removed.
    References stay: they say where a secret is, not what it is."""
    if isinstance(tree, Mapping):
        return {name: redacted(inner, str(name)) for name, inner in tree.items()}
    if isinstance(tree, list | tuple):
        return [redacted(inner, key) for inner in tree]
    if tree is None or isinstance(tree, bool) or tree == "" or is_reference(tree, key):
        return tree
    if looks_secret(key):
        return REDACTED
    return redacted_text(tree) if isinstance(tree, str) else tree


def redacted_text(text: str) -> str:
    """A text without values after `...password=`, credentials before the @ of a URL, or private key blocks."""

    def hide(match: re.Match[str]) -> str:
        name, between, value = match["name"], match["between"], match["value"]
        if not looks_secret(name) or is_reference(value, name):
            return match[0]
        quote = value[0] if value[0] in "\"'" else ""
        return f"{name}{between}{quote}{REDACTED}{quote}"

    return _KEY_BLOCK.sub(REDACTED, _IN_URL.sub(rf"\1{REDACTED}\3", _IN_TEXT.sub(hide, text)))


class Concealer:
    """Removes known secrets from texts, wherever they occur, both verbatim and as JSON escapes them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        written = {form for secret in secrets if secret for form in (secret, json.dumps(secret)[1:-1])}
        self._secrets = tuple(sorted(written, key=len, reverse=True))

    def text(self, text: str) -> str:
        """The text without known secrets."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def content(self, content: bytes) -> bytes:
        """A file's content without secrets: known ones, and values in lines such as `password: ...`."""
        for secret in self._secrets:
            content = content.replace(secret.encode(), REDACTED.encode())
        # Latin-1 round-trips every byte.
        return redacted_text(content.decode("latin-1")).encode("latin-1")

    def tree(self, tree: Any) -> Any:
        """A copy of a tree whose texts have no secrets: neither known ones nor those under keys that look secret."""
        return self._known(redacted(tree))

    def _known(self, tree: Any) -> Any:
        if isinstance(tree, Mapping):
            return {name: self._known(inner) for name, inner in tree.items()}
        if isinstance(tree, list | tuple):
            return [self._known(inner) for inner in tree]
        return self.text(tree) if isinstance(tree, str) else tree
