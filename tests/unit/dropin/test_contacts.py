"""Contacts as people write them, in every front end."""

from __future__ import annotations

import pytest

from steelyard.dropin import contacts
from steelyard.dropin.stress.parse import parse_settings
from steelyard.dropin.stress.parse.refusal import Refused
from steelyard.dropin.stress.run.command import addresses
from steelyard.dropin.ycsb.command import parse
from steelyard.dropin.ycsb.order import compile_command
from steelyard.model.errors import StudyError

WRITTEN = [
    ("10.0.0.1", "10.0.0.1:9042"),
    ("10.0.0.1:7", "10.0.0.1:7"),
    ("::1", "[::1]:9042"),
    ("[::1]", "[::1]:9042"),
    ("[::1]:7", "[::1]:7"),
    (" fd00::11 ", "[fd00::11]:9042"),
]
NONE = [
    "",
    "[::1",
    "::1]",
    "[[::1]]",
    "[::1]:",
    "[db1]:7",
    "10.0.0.1:",
    ":7",
    "10.0.0.1:0",
    "10.0.0.1:70000",
    "a b",
    "fd00::11:x",
]
YCSB = "run cassandra-cql -p workload=site.ycsb.workloads.CoreWorkload -p recordcount=1 -p operationcount=1 -p"


@pytest.mark.parametrize(("word", "contact"), WRITTEN)
def test_an_address_with_and_without_brackets_and_port(word: str, contact: str) -> None:
    assert compile_command(parse([*YCSB.split(), f"hosts={word}"]), 1).target.contacts == (contact,)
    assert addresses(parse_settings.read(["read", "n=1", "-node", word]).connection) == [contact]


@pytest.mark.parametrize("word", NONE)
def test_what_is_no_contact_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"is not an address|go in brackets"):
        contacts.parsed(word, 9042)


def test_the_front_ends_say_which_word_it_was() -> None:
    with pytest.raises(StudyError, match=r"the property hosts: '\[::1' is not an address"):
        compile_command(parse([*YCSB.split(), "hosts=10.0.0.1,[::1"]), 1)
    with pytest.raises(Refused, match=r"-node: read '\[::1'"):
        addresses(parse_settings.read(["read", "n=1", "-node", "[::1"]).connection)
