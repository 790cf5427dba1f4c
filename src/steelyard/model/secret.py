"""Secrets in settings: which keys hold one, how a study refers to one, and how text is freed of them. Pure.

A study never holds a secret, only a reference: `env:NAME` (a variable of whoever runs the study) or `file:/path` (a
file outside of the store). It is looked up at the moment of use by `steelyard.node.secrets`, so plans, stores and
reports have nothing but the reference. What nodes and logs say themselves passes through `redacted` and `Concealer`.
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
"""A shorter secret cannot be kept out of logs without garbling them."""

PASSWORDS = ("password", "passwd", "passphrase", "passcode", "pwd", "secret", "credential")
TOKEN_KINDS = frozenset({"access", "api", "auth", "bearer", "id", "login", "refresh", "secret", "security", "session"})
KEY_KINDS = frozenset({"access", "account", "api", "encryption", "private", "secret", "shared", "signing"})
MISSPELT = 0.85
"""How alike a word is to one of PASSWORDS to count as that word misspelt: `pasword` is no key of its own."""

_ENV_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_FILE_REFERENCE = re.compile(r"file:/\S.*")
_OPTION = re.compile(r"(?P<name>-{0,2}[A-Za-z][\w.-]*)=(?P<value>.+)", re.DOTALL)
_IN_URL = re.compile(r"(://[^/\s:@]*:)([^/\s@]+)(@)")
_IN_TEXT = re.compile(
    r"(?P<name>[\w.-]*(?:pass|pwd|secret|credential)[\w.-]*)(?P<between>[\"']?\s*[=:]\s*)"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;\"'{}()\[\]]+)",
    re.IGNORECASE,
)
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@functools.lru_cache(maxsize=4096)
def looks_secret(key: str) -> bool:
    """Whether what stands under a key is to be kept from everybody: `keystore_password`, `auth_token`, `private_key`,
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
    """Whether a value names where its secret is: `env:NAME` under any key, `file:/path` under one that looks secret."""
    if not isinstance(value, str):
        return False
    return bool(_ENV_REFERENCE.fullmatch(value) or (_FILE_REFERENCE.fullmatch(value) and looks_secret(key)))


def option_of(text: str) -> tuple[str, str] | None:
    """Name and value of a text such as `-Dname=value`; None if it is none."""
    match = _OPTION.fullmatch(text)
    return (match["name"], match["value"]) if match else None


def literals(tree: Any, key: str = "") -> Iterator[str]:
    """Dotted keys under which a secret stands in plain sight."""
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
    """Every value and the key that says what it is; of a text `name=value` both."""
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
    """The same without secrets: what stands under keys that look secret, and `password = ...` within texts. References
    stay: they say where a secret is, not what."""
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
    """A text without what it says behind `...password=`, within a URL before an @, or in a block of a private key."""

    def hide(match: re.Match[str]) -> str:
        name, between, value = match["name"], match["between"], match["value"]
        if not looks_secret(name) or is_reference(value, name):
            return match[0]
        quote = value[0] if value[0] in "\"'" else ""
        return f"{name}{between}{quote}{REDACTED}{quote}"

    return _KEY_BLOCK.sub(REDACTED, _IN_URL.sub(rf"\1{REDACTED}\3", _IN_TEXT.sub(hide, text)))


class Concealer:
    """Takes known secrets out of texts, wherever they stand, as they are and as JSON writes them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        written = {form for secret in secrets if secret for form in (secret, json.dumps(secret)[1:-1])}
        self._secrets = tuple(sorted(written, key=len, reverse=True))

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def content(self, content: bytes) -> bytes:
        """A file's content without secrets: known ones, and what lines such as `password: ...` say."""
        for secret in self._secrets:
            content = content.replace(secret.encode(), REDACTED.encode())
        # Latin 1 gives every byte back as it was.
        return redacted_text(content.decode("latin-1")).encode("latin-1")

    def tree(self, tree: Any) -> Any:
        """Every text of a tree without secrets, known ones and those under keys that look secret."""
        return self._known(redacted(tree))

    def _known(self, tree: Any) -> Any:
        if isinstance(tree, Mapping):
            return {name: self._known(inner) for name, inner in tree.items()}
        if isinstance(tree, list | tuple):
            return [self._known(inner) for inner in tree]
        return self.text(tree) if isinstance(tree, str) else tree
