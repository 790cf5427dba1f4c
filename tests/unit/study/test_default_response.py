"""The default of `analysis.response` is what the load of a study leaves free to vary."""

from __future__ import annotations

import pytest

from steelyard.judging.load_response import as_begun, told_time
from steelyard.model.study import Study
from steelyard.plan import warnings
from steelyard.plan.expand import expand
from steelyard.plugins.find import Plugins
from tests.unit.study.paper import HEAD, read_text, text

TIMED = HEAD.replace("operations = 1000", "duration_s = 4")
OFFERED = 'schedule = "constant"\nrate_per_s = 10\n'
PHASES = '[[load.phases]]\nname = "a"\nduration_s = 1\n[[load.phases]]\nname = "b"\nduration_s = 2\n'
OFFERED_PHASES = "".join(
    f'[[load.phases]]\nname = "{name}"\nschedule = "constant"\nrate_per_s = 5\nduration_s = 20\n' for name in "ab"
)


def read(rest: str, head: str = TIMED) -> Study:
    return read_text(text(rest, head), "paper.toml")


@pytest.mark.parametrize(
    ("head", "rest", "response"),
    [
        (HEAD, "", "execution_time_ms"),
        (HEAD, "duration_s = 4\n", "execution_time_ms"),
        (HEAD, OFFERED, "execution_time_ms"),
        (TIMED, "", "throughput_per_s"),
        (TIMED, "[factors]\nload.threads = [1, 2]\n", "throughput_per_s"),
        (TIMED, OFFERED, "response_ms_p50"),
        (TIMED, OFFERED.replace("10", "500"), "response_ms_p99"),
        (TIMED, 'schedule = "ramp"\nfrom_per_s = 1\nto_per_s = 20\nramp_s = 2\n', "response_ms_p50"),
        (TIMED, 'schedule = "ramp"\nfrom_per_s = 1\nto_per_s = 2000\nramp_s = 2\n', "response_ms_p99"),
        (HEAD.replace("operations = 1000\n", ""), OFFERED_PHASES, "response_ms_p50"),
        (HEAD.replace("operations = 1000\n", ""), OFFERED_PHASES.replace("= 5", "= 5000"), "response_ms_p99"),
        (TIMED, "[factors]\nload.operations = [10, 20]\n", "execution_time_ms"),
        (HEAD.replace("operations = 1000\n", ""), PHASES, "throughput_per_s"),
    ],
)
def test_a_duration_is_no_result(head: str, rest: str, response: str) -> None:
    assert read(rest, head).analysis.response == response


def test_what_the_study_names_is_kept_and_noted() -> None:
    named = read('[analysis]\nresponse = "execution_time_ms"\n')
    assert named.analysis.response == "execution_time_ms"
    (note, *_) = warnings(named, expand(named, Plugins()))
    assert note.startswith("each trial lasts as long as load.duration_s says")
    assert 'analysis.response = "throughput_per_s"' in note
    assert told_time(read(""), [{}]) == ""
    assert told_time(read("", HEAD), [{}]) == ""


def test_a_store_keeps_the_response_that_it_began_with() -> None:
    """Its file names none, and the default of the version that began it was another."""
    before = read('[analysis]\nresponse = "execution_time_ms"\nresponses = ["throughput_per_s"]\n')
    stored = Study.model_validate_json(before.model_dump_json())
    silent = read('[analysis]\nresponses = ["throughput_per_s"]\n')
    assert silent.analysis.response == "throughput_per_s"
    assert as_begun(silent, stored).analysis.response == "execution_time_ms"
    assert as_begun(silent, None) == silent
    named = read('[analysis]\nresponse = "response_ms_mean"\n')
    assert as_begun(named, stored) == named


def test_a_default_is_not_there_twice() -> None:
    named = read('[analysis]\nresponses = ["throughput_per_s", "response_ms_p50"]\n').analysis
    assert (named.response, named.responses) == ("throughput_per_s", ("response_ms_p50",))


def test_a_stored_study_keeps_its_response() -> None:
    before = read('[analysis]\nresponse = "execution_time_ms"\n')
    stored = Study.model_validate_json(before.model_dump_json())
    assert stored.analysis.response == "execution_time_ms"
