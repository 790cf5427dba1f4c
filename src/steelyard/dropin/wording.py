"""Errors of the agent in the words of the command line that was typed: the agent speaks of fields of its order and of
variables of its environment."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from steelyard.model.errors import SteelyardError

Words = Sequence[tuple[str, str]]
"""Patterns of what the agent says, and what is said instead."""
SENT = r"STEELYARD_CQL_USER and STEELYARD_CQL_PASSWORD(?= hold what was sent)"
WANTED = r"STEELYARD_CQL_USER and STEELYARD_CQL_PASSWORD in the environment"
FIELD = r"(?<![\w.-])tls\."
STRESS: Words = (
    (WANTED, "-mode user= and password=, or -credentials-file"),
    (r"\bset tls$", "-transport truststore=CA.pem, the certificate of the authority that signed the node's"),
    (r"\b(leave out|change) tls\b", r"\1 -transport"),
    (rf"(?:;|,)? ?(?:or )?{FIELD}verify = (?:none|chain)(?:, which[^;]*)?", ""),
    (rf"{FIELD}certificate(?: and |, ){FIELD}key", "-transport keystore="),
    (rf"{FIELD}ca\b", "-transport truststore="),
    (rf"{FIELD}(?:certificate|key)\b", "-transport keystore="),
    (r"ask for another compression", "-mode compression= names another"),
)
YCSB: Words = (
    (WANTED, "-p cassandra.username= and -p cassandra.password="),
    (r"\bset tls$", "-p cassandra.useSSL=true, and -p steelyard.tls.ca=CA.pem names its authority"),
    (r"\bleave out tls\b", "leave out cassandra.useSSL"),
    (r"\bchange tls\b", "change steelyard.tls.*"),
    (rf"{FIELD}(\w+) = (\w+)", r"steelyard.tls.\1=\2"),
    (FIELD, "steelyard.tls."),
)
LOAD: Words = (
    (r"\bset tls$", "--set load.tls=true, and --set load.tls_ca=CA.pem names its authority"),
    (r"\bleave out tls\b", "leave out load.tls"),
    (r"\bchange tls\b", "change load.tls_*"),
    (rf"{FIELD}(\w+) = (\w+)", r"load.tls_\1=\2"),
    (FIELD, "load.tls_"),
    (r"ask for another compression", "--set load.compression= names another"),
)


def typed(user: str, words: Words) -> Words:
    """The words where user and password were typed as `user`, and did not come from the environment."""
    return ((SENT, user), *words)


@contextlib.contextmanager
def spoken(words: Words) -> Iterator[None]:
    """While inside, errors speak in these words."""
    try:
        yield
    except SteelyardError as error:
        error.message, error.hint = (_reworded(text, words) for text in (error.message, error.hint))
        error.args = (error.message,)
        raise


def _reworded(text: str, words: Words) -> str:
    for pattern, instead in words:
        text = re.sub(pattern, instead, text)
    return text
