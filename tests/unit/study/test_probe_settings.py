"""Settings of probes in study files."""

from __future__ import annotations

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.study import Study
from steelyard.plugins.find import Plugins, any_file
from steelyard.plugins.parts import Parts
from steelyard.study import settings_of
from tests.unit.study.paper import HEAD, PLUGINS, read_text, study

METER = str(PLUGINS / "probe.py")


def with_meter(table: str, probes: str = f'["{METER}"]') -> Study:
    head = HEAD.replace("probes = []", f"probes = {probes}")
    return read_text(f'{head}\n[probe."{METER}"]\n{table}', "paper.toml")


def test_a_probe_gets_its_settings() -> None:
    metered = with_meter('outlet = 3\nrange = "high"\n')
    probe = Parts(Plugins(trust=any_file)).probe(METER, metered.probe[METER])
    assert (probe.settings.outlet, probe.settings.range) == (3, "high")  # type: ignore[attr-defined]


def test_settings_of_probes_are_no_settings_of_trials() -> None:
    plain, metered = study("[factors]\nnodes = [1]\n"), with_meter("outlet = 3\n[factors]\nnodes = [1]\n")
    assert settings_of(plain, {"nodes": 1}) == settings_of(metered, {"nodes": 1})
    assert metered.model_dump(mode="json")["probe"] == {METER: {"outlet": 3}}


@pytest.mark.parametrize(
    ("table", "probes", "message"),
    [
        ("outlet = 3\nrnage = 1\n", f'["{METER}"]', "no such key; did you mean 'range'"),
        ('outlet = "x"\n', f'["{METER}"]', "outlet = 'x': must be a whole number"),
        ("", f'["{METER}"]', "outlet: must be given"),
        ('outlet = 3\nrange = "middle"\n', f'["{METER}"]', "allowed: low, high"),
        ("outlet = 3\n", '["os"]', "the study does not run this probe; allowed: os"),
        ('outlet = 3\nlogin_password = "hunter2"\n', f'["{METER}"]', "a secret must not be in a study"),
    ],
)
def test_wrong_settings_say_what_is_allowed(table: str, probes: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        with_meter(table, probes)
    assert message in caught.value.message


def test_a_probe_without_settings_refuses_them() -> None:
    head = HEAD.replace("probes = []", 'probes = ["energy"]')
    with pytest.raises(StudyError, match=r"probe\.energy\.outlet = 3: no such key: this probe has no settings"):
        read_text(f"{head}\n[probe.energy]\noutlet = 3\n", "paper.toml")


def test_a_probe_without_settings_is_made_as_ever() -> None:
    assert Parts(Plugins()).probe("energy").name == "energy"
