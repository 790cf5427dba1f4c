"""What an error about a key says: the range of a number, a name that would do, the guess without a long list."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.model.study import About, Design
from steelyard.tomlfile.problems import MOST_ALLOWED, from_validation, problem


def message_of(model: Any, values: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(values)
    return " ".join(error.message for error in from_validation(caught.value, "part", model))


def test_a_number_has_its_range() -> None:
    assert "must be a whole number, at least 1 and at most 1000" in message_of(Design, {"starts": "two"})


def test_a_short_name_of_a_response_is_answered_with_the_full_one() -> None:
    names = ("execution_time_ms", "throughput_per_s", "response_ms_p99")
    for short, full in (("p99", names[2]), ("throughput", names[1]), ("time", names[0])):
        assert f"did you mean {full!r}?" in problem("analysis.response", short, "not allowed", names).message
    assert "throughput_per_s" not in problem("system.name", "throughput", "not allowed", ("cassandra",)).message


def test_a_name_that_is_none_has_one_that_is() -> None:
    assert "try 'my-study'" in message_of(About, {"name": "My Study", "question": "?"})


def test_many_right_names_are_listed_only_where_none_is_near() -> None:
    many = (*tuple(f"operations_{place}" for place in range(MOST_ALLOWED)), "operations")
    near = problem("load.opperations", 3, "no such key", many).message
    assert near.endswith("no such key; did you mean 'operations'?")
    assert "allowed: operations_0" in problem("load.xyz", 3, "no such key", many).message
