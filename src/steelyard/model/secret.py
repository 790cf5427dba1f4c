"""Secrets in settings: which keys hold one, how a study refers to one, and how text is redacted. Pure.

A study never holds a secret, only a reference: `env:NAME` (an environment variable of the user who runs the study) or
`file:/path` (a file outside the store). `steelyard.node.secrets` looks it up at the moment of use, so plans, stores and
reports hold only the reference. Output of nodes and logs passes through `redacted` and `Concealer`.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

REDACTED = "(redacted)"
ENV, FILE = "env:", "file:"
LEAST_CHARS = 4
"""Minimum length: removing a shorter secret from logs would garble them."""

PASSWORDS = ("password", "passwd", "passphrase", "passcode", "pwd", "secret", "credential")
SHORT = frozenset({"pass", "pw", "creds", "cred"})
"""Words that are whole, such as those of the option `-pw`."""
TOKEN_KINDS = frozenset({"access", "api", "auth", "bearer", "id", "login", "refresh", "secret", "security", "session"})
KEY_KINDS = frozenset({"access", "account", "api", "encryption", "private", "secret", "shared", "signing"})
JOINED = tuple([f"{kind}token" for kind in TOKEN_KINDS - {"id"}] + [f"{kind}key" for kind in KEY_KINDS])
"""Words without a sign between them, such as `apikey`; any word may end in `idtoken`."""
FORMS = frozenset({"value", "text", "string", "literal", "plain", "plaintext", "cleartext"})
"""Words after the name of a secret that mean that its value follows."""
MISSPELT = 0.85
"""Similarity to one of PASSWORDS above which a word counts as that word misspelt, such as `pasword`."""

_ENV_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_FILE_REFERENCE = re.compile(r"file:/\S.*")
_VALUE = r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;\"'{}()\[\]]+)"
_OPTION = re.compile(r"(?P<name>-{0,2}[A-Za-z][\w.-]*)=(?P<value>.+)", re.DOTALL)
_FLAG = re.compile(rf"(?<![^\s\"'=])(?P<name>--?[A-Za-z][\w.-]*)\s+(?!-){_VALUE}")
_FLAG_ALONE = re.compile(r"--?[A-Za-z][\w.-]*")
_IN_URL = re.compile(r"://[^/\s:@]*:(?P<value>[^/\s@]+)@")
_HEADER = re.compile(r"authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token)\s+(?P<value>[^\s\"']+)", re.IGNORECASE)
_IN_TEXT = re.compile(
    r"(?<![\w.-])(?=[\w.-]*?(?:pass|pwd|pw|secret|cred|token|key))(?P<name>[\w.-]++)"
    rf"(?P<between>[\"']?\s*[=:]\s*){_VALUE}",
    re.IGNORECASE,
)
"""Each word is looked at once, so that time grows with the length of the text and not with its square."""
_KEY_BLOCK = re.compile(
    r"(?P<value>-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z))", re.DOTALL
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PAIRED = re.compile(r"(?!tokens?$)[\w.-]+", re.IGNORECASE)
"""The first of two words that may name the second; `token` is a word of Cassandra's, too."""
_DASHES = re.compile(r"-D(?=\w)|-+")
_NO_VALUE = re.compile(r"[^A-Za-z0-9]*|\?|:\w+|<[^<>]*>")
"""Placeholders in place of a value: an ellipsis, a statement's marker, a placeholder in angle brackets."""
_OF_DATA = re.compile(r"tables\.[^.]+\.columns\.[^.]+|statements\.[^.]+\.values\.[^.]+|types\.[^.]+\.[^.]+")
"""Keys of a workload file that are names of columns and fields; their values say how data are made."""


@functools.lru_cache(maxsize=4096)
def looks_secret(key: str) -> bool:
    """Whether the value under a key must be kept secret: `keystore_password`, `auth_token`, `private_key`,
    `-Djavax.net.ssl.keyStorePassword`; not `num_tokens`, `credentials_validity` or `password_file`."""
    name = _CAMEL.sub("_", key.rpartition(".")[2]).lower()
    words = [word for word in re.split(r"[^a-z0-9]+", name) if word]
    if len(words) > 1 and (words[-1].isdigit() or words[-1] in FORMS):
        words.pop()
    if not words:
        return False
    last, before = words[-1].rstrip("0123456789"), words[-2] if len(words) > 1 else ""
    if last in SHORT or last.removesuffix("s").endswith((*PASSWORDS, *JOINED)):
        return True
    if difflib.get_close_matches(last, PASSWORDS[:3], n=1, cutoff=MISSPELT):
        return True
    word = last.removesuffix("s")
    return (
        (last == "token" and not before)
        or (word == "token" and before in TOKEN_KINDS)
        or (word == "key" and before in KEY_KINDS)
    )


def _option_looks_secret(name: str) -> bool:
    """The same for the name of an option or a property, whose dots are as good as other signs: `-Dapi.key`."""
    bare = _DASHES.sub("", name, count=1) if name.startswith("-") else name
    return looks_secret(bare) or looks_secret(bare.replace(".", "_"))


def is_reference(value: object, key: str) -> bool:
    """Whether a value refers to a secret: `env:NAME` under any key, `file:/path` under a key that looks secret."""
    if not isinstance(value, str):
        return False
    return bool(_ENV_REFERENCE.fullmatch(value) or (_FILE_REFERENCE.fullmatch(value) and looks_secret(key)))


class _Given(NamedTuple):
    """A value within a text that must be kept secret, or refers to a secret."""

    name: str
    begin: int
    end: int


def _given(text: str, *, prose: bool) -> list[_Given]:
    """Values that a text gives to names that look secret, in order. Of `prose`, such as a study's question, a word
    before a colon counts only where a program would write it: `password:x`, `"password": x`."""
    option = _OPTION.fullmatch(text)
    if option and (_option_looks_secret(option["name"]) or _ENV_REFERENCE.fullmatch(option["value"])):
        return [_Given(option["name"], *option.span("value"))]
    matches = [("", match) for pattern in (_KEY_BLOCK, _IN_URL, _HEADER) for match in pattern.finditer(text)]
    matches += [(match["name"], match) for pattern in (_IN_TEXT, _FLAG) for match in pattern.finditer(text)]
    given: list[_Given] = []
    for name, match in sorted(matches, key=lambda pair: pair[1].start("value")):
        begin, end = match.span("value")
        if given and begin < given[-1].end:
            continue
        if not name or (_option_looks_secret(name) and _is_given(name, match, prose=prose)):
            quoted = match["value"][0] in "\"'"
            given.append(_Given(name, begin + quoted, end - quoted))
    return given


def _is_given(name: str, match: re.Match[str], *, prose: bool) -> bool:
    """Whether the text after a name that looks secret gives it a value."""
    between = match.groupdict().get("between", " ")
    if not prose:
        return name.lower() != "token"  # a log's token is a place in the ring
    value = match["value"].strip("\"'")
    if _NO_VALUE.fullmatch(value):
        return False
    if ":" not in between:
        return True
    own_line = match.string[: match.start()].rpartition("\n")[2].strip() in ("", "{", "-")
    return between[0] in "\"'" or between.strip() == between or (own_line and "\n" in match.string)


class LiteralSecret(NamedTuple):
    """A secret in plain text: the dotted key of its value, with indexes of lists; and the key that shows it."""

    place: str
    key: str


def literals(tree: Any) -> Iterator[LiteralSecret]:
    """Where a secret is in plain text: under a key that looks secret, after an option's name, or within a text."""
    for place, key, value in _leaves(tree, "", ""):
        if value is None or isinstance(value, bool) or value == "" or is_reference(value, key):
            continue
        number = isinstance(value, int | float) and re.search(r"tokens?$", key.lower())
        if looks_secret(key) and not number and not _OF_DATA.fullmatch(key):
            yield LiteralSecret(place, key)
        elif isinstance(value, str) and (names := list(literals_in(value))):
            yield LiteralSecret(place, f"{key}.{names[0]}".strip("."))


def literals_in(text: str) -> Iterator[str]:
    """Names to which a text gives a secret in plain text; an empty one for a URL or a private key."""
    for name, begin, end in _given(text, prose=True):
        if not _is_reference_within(text[begin:end]):
            yield name


def references(tree: Any) -> Iterator[tuple[str, str]]:
    """Dotted key and reference of every secret that settings refer to."""
    for _, key, value in _leaves(tree, "", ""):
        if is_reference(value, key):
            yield key, str(value)
        elif isinstance(value, str):
            for name, begin, end in _given(value, prose=True):
                if _is_reference_within(value[begin:end]):
                    yield f"{key}.{name}", value[begin:end]


def with_references(text: str, key: str, look_up: Callable[[str], str]) -> str:
    """A text with each reference replaced by what `look_up` makes of it."""
    if is_reference(text, key):
        return look_up(text)
    for _, begin, end in reversed(_given(text, prose=True)):
        if _is_reference_within(text[begin:end]):
            text = text[:begin] + look_up(text[begin:end]) + text[end:]
    return text


def _is_reference_within(value: str) -> bool:
    return bool(_ENV_REFERENCE.fullmatch(value) or _FILE_REFERENCE.fullmatch(value))


def named(tree: Mapping[Any, Any] | list[Any] | tuple[Any, ...], key: str) -> Iterator[tuple[str, str, Any]]:
    """The values of a table or a list: name or index, the dotted key that describes it, and the value. After an option
    in a list, and in a table of `name` and `value`, that name describes it."""
    if isinstance(tree, Mapping):
        own = tree.get("name", tree.get("key"))
        for name, inner in tree.items():
            last = own if name == "value" and isinstance(own, str) and looks_secret(own) else name
            yield str(name), f"{key}.{last}" if key else str(last), inner
        return
    option = ""
    for index, inner in enumerate(tree):
        after = option and not (isinstance(inner, str) and inner.startswith("-"))
        yield str(index), f"{key}.{option.replace('.', '_')}" if after else key, inner
        is_option = isinstance(inner, str) and (
            _FLAG_ALONE.fullmatch(inner) or (index == 0 and len(tree) == 2 and _PAIRED.fullmatch(inner))
        )
        option = _DASHES.sub("", inner, count=1) if is_option and _option_looks_secret(inner) else ""


def _leaves(tree: Any, place: str, key: str) -> Iterator[tuple[str, str, Any]]:
    """Every value with its place and the key that describes it. Keys that hold a text such as `name=value`, too."""
    if isinstance(tree, Mapping | list | tuple):
        for name, described, inner in named(tree, key):
            if isinstance(tree, Mapping) and next(literals_in(name), None) is not None:
                yield place, key, name
            yield from _leaves(inner, f"{place}.{name}" if place else name, described)
    else:
        yield place, key, tree


def redacted(tree: Any, key: str = "") -> Any:
    """A copy without secrets: values under keys that look secret, and `password = ...` within texts, are removed.
    References stay: they say where a secret is, not what it is."""
    if isinstance(tree, Mapping):
        return {name: redacted(inner, key) for name, (_, key, inner) in zip(tree, named(tree, ""), strict=True)}
    if isinstance(tree, list | tuple):
        return [redacted(inner, key) for _, key, inner in named(tree, key)]
    if tree is None or isinstance(tree, bool) or tree == "" or is_reference(tree, key):
        return tree
    if looks_secret(key):
        return REDACTED
    return redacted_text(tree) if isinstance(tree, str) else tree


def redacted_text(text: str) -> str:
    """A text without values after `...password=`, credentials before the @ of a URL, or private key blocks."""
    for _, begin, end in reversed(_given(text, prose=False)):
        if not _is_reference_within(text[begin:end]):
            text = text[:begin] + REDACTED + text[end:]
    return text


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
