"""What the agent says, in the words of each front end: nothing of its own vocabulary is left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.dropin import wording
from steelyard.model.errors import EngineError

CRATES = Path(__file__).resolve().parents[3] / "crates"
SOURCES = (
    "steelyard-client/src/error.rs",
    "steelyard-client/src/blocking_connection.rs",
    "steelyard-channel/src/tls_errors.rs",
)
OWN = re.compile(r"STEELYARD_CQL|(?<![\w.-])tls\b")


def hints() -> list[str]:
    """Text literals of the agent that name a field of its order or a variable, but for names of variables alone."""
    text = "\n".join((CRATES / source).read_text(encoding="utf-8") for source in SOURCES)
    literals = re.findall(r'"((?:[^"\\]|\\.)*)"', text, re.DOTALL)
    joined = (re.sub(r"\\\n\s*", "", literal) for literal in literals)
    return [one for one in joined if OWN.search(one) and " " in one]


@pytest.mark.parametrize(
    ("words", "user"),
    [
        (wording.STRESS, "-mode user= and password="),
        (wording.YCSB, "-p cassandra.username="),
        (wording.LOAD, "variables"),
    ],
)
def test_every_hint_is_reworded(words: wording.Words, user: str) -> None:
    said_by_agent = hints()
    assert len(said_by_agent) > 10
    for hint in said_by_agent:
        with pytest.raises(EngineError) as raised, wording.spoken(wording.typed(user, words)):
            raise EngineError("127.0.0.1:9042 refused", hint)
        said = raised.value.hint
        left = OWN.search(said)
        assert left is None or (words is wording.LOAD and left[0] == "STEELYARD_CQL"), (hint, said)
        assert said.strip(" ,;")
        assert said[0] not in ",;"


def test_settings_are_named_as_typed() -> None:
    with (
        pytest.raises(EngineError, match=r"-transport truststore=: read ca\.pem") as raised,
        wording.spoken(wording.STRESS),
    ):
        raise EngineError("tls.ca: read ca.pem; no certificate in it", "name another (tls.ca), or tls.verify = none")
    assert raised.value.hint == "name another (-transport truststore=)"
    assert str(raised.value) == raised.value.message
