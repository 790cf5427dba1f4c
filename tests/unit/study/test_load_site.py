"""Section `load_site`: settings of the site that lends the load nodes, in trials only where a study says it."""

from __future__ import annotations

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.trial_settings import TrialSettings
from steelyard.plugins.find import Plugins
from steelyard.study import is_hard, settings_of, treatments_of
from steelyard.study.missing import missing_parts
from tests.unit.study.paper import HEAD, read_text, study, text

LOCAL = '[load_site]\nname = "local"\n'


def wrong(rest: str) -> StudyError:
    with pytest.raises(StudyError) as caught:
        read_text(text(rest, HEAD), "paper.toml")
    return caught.value


def test_settings_without_it_name_no_site() -> None:
    settings = settings_of(study(""), {})
    assert settings["load_site"]["name"] == ""
    assert TrialSettings(settings).load_nodes == 1


def test_settings_with_it_hold_the_plug_ins_own() -> None:
    found = study(f"{LOCAL}nodes = 2\n")
    settings = settings_of(found, {})
    assert settings["load_site"]["name"] == "local"
    assert settings["load_site"]["mode"] == "auto"
    assert (settings["load_site"]["nodes"], settings["site"]["load_nodes"]) == (2, 1)
    assert TrialSettings(settings).load_nodes == 2


def test_its_fields_can_be_factors_and_are_hard() -> None:
    found = study(f"{LOCAL}[factors]\nload_site.nodes = [1, 2]\n")
    assert is_hard(found, "load_site.nodes")
    numbers = [TrialSettings(settings_of(found, treatment)).load_nodes for treatment in treatments_of(found)]
    assert numbers == [1, 2]


def test_a_table_of_one_site_is_for_that_site() -> None:
    found = study('[load_site]\nname = "local"\n[load_site.local]\nmode = "loopback"\n')
    assert settings_of(found, {})["load_site"]["mode"] == "loopback"


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        (
            '[load_site]\nname = "local"\nmod = "loopback"\n',
            "load_site.mod = 'loopback': no such key; did you mean 'mode'?",
        ),
        ('[load_site]\nmode = "loopback"\n', "load_site.mode = 'loopback': needs load_site.name"),
        ('[load_site]\nname = "locl"\n', "load_site.name = 'locl'"),
        (f"{LOCAL}nodes = 65\n", "load_site.nodes = 65"),
        (f"{LOCAL}[factors]\nsite.load_nodes = [1, 2]\n", "write load_site.nodes = 2"),
    ],
    ids=["unknown key", "no name", "misspelt", "too many", "twice"],
)
def test_what_it_cannot_say_is_refused(rest: str, words: str) -> None:
    assert words in str(wrong(rest)), str(wrong(rest))


def test_a_site_that_does_not_exist_is_missing() -> None:
    found = study('[load_site]\nname = "moon"\nregion = "north"\n')
    (missing,) = missing_parts([TrialSettings(settings_of(found, {}, Plugins()))])
    assert [(part.kind, part.name, part.field) for part in missing] == [("site", "moon", "load_site.name")]
