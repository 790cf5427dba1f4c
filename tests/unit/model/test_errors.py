"""Errors for people: a traceback has the hint, once, and the command line can tell it from notes."""

from __future__ import annotations

import traceback

from steelyard.model.errors import SteelyardError


def test_a_traceback_ends_with_the_newest_hint() -> None:
    error = SteelyardError("it is wrong", "do this")
    error.add_note("while cleaning up")
    error.hint += "; no sealed trial is lost"
    last = traceback.format_exception(error)[-3:]
    assert [line.strip() for line in last] == [
        "steelyard.model.errors.SteelyardError: it is wrong", "do this; no sealed trial is lost", "while cleaning up",
    ]  # fmt: skip
    assert error.notes == ("while cleaning up",)


def test_an_error_without_a_hint_has_no_empty_line() -> None:
    error = SteelyardError("it is wrong")
    error.add_note("while cleaning up")
    assert error.notes == ("while cleaning up",)
    assert traceback.format_exception(error)[1:] == ["while cleaning up\n"]
