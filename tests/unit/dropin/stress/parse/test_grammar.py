"""A section's words with their defaults, which stand in one place."""

from __future__ import annotations

import pytest

from steelyard.dropin.stress.parse import parse_settings, sections
from steelyard.dropin.stress.parse.grammar import Given, Option, Section

SECTION = Section("-x", ((Option("a=", default="1"), Option("b=")),))


def test_what_is_said_comes_before_the_default() -> None:
    given = SECTION.read(["a=2"])
    assert (dict(given), given.value("a="), "b=" in given) == ({"a=": "2"}, "2", False)
    assert Given(SECTION, {}).value("a=") == "1"
    for prefix in ("b=", "c="):
        with pytest.raises(KeyError, match=f"-x {prefix} has no default"):
            given.value(prefix)


def test_a_default_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another default in the table is another in the settings."""
    retries, *others = sections.ERRORS.forms[0]
    assert retries.prefix == "retries="
    changed = Section("-errors", ((Option("retries=", pattern="[0-9]+", default="4"), *others),))
    assert parse_settings.read(["write", "n=1"]).errors.tries == 10
    # The table is the module's own: that is the point.
    monkeypatch.setattr(sections, "ERRORS", changed)
    assert parse_settings.read(["write", "n=1"]).errors.tries == 5
