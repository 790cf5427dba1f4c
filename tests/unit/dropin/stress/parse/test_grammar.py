"""A section's words with their defaults, which stand in one place: help, settings and the block read the same."""

from __future__ import annotations

import pytest

from steelyard.dropin.stress.parse import parse_settings, sections
from steelyard.dropin.stress.parse.grammar import Given, Option, Section
from steelyard.dropin.stress.print import settings_block

SECTION = Section("-x", "made", ((Option("a=", "with a default", default="1"), Option("b=", "without one")),))


def test_what_is_said_comes_before_the_default() -> None:
    given = SECTION.read(["a=2"])
    assert (dict(given), given.value("a="), "b=" in given) == ({"a=": "2"}, "2", False)
    assert Given(SECTION, {}).value("a=") == "1"
    for prefix in ("b=", "c="):
        with pytest.raises(KeyError, match=f"-x {prefix} has no default"):
            given.value(prefix)
    assert "  a=? (default=1)                          with a default" in SECTION.help_lines()


def test_a_default_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another default in the table is another in the settings and in what is printed of them."""
    retries, *others = sections.ERRORS.forms[0]
    assert retries.prefix == "retries="
    changed = Section("-errors", "", ((Option("retries=", "", pattern="[0-9]+", default="4"), *others),))
    assert parse_settings.read(["write", "n=1"]).errors.tries == 10
    monkeypatch.setattr(sections, "ERRORS", changed)
    settings = parse_settings.read(["write", "n=1"])
    assert settings.errors.tries == 5
    assert "  Tries: 5" in settings_block.block(settings)
