"""Links in studies: shipped ones, a file of the user's own, overriding fields, levels; what settings and ids hold."""

from __future__ import annotations

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.link import LinkChoice
from steelyard.model.study import Study
from steelyard.plan.expand import expand
from steelyard.plugins import find
from steelyard.plugins.find import Plugins
from steelyard.study import links
from steelyard.study.read import read_text
from steelyard.study.settings import is_hard, settings_of
from tests.unit.small_study import SMALL_STUDY

SHIPPED = ("802.11b", "802.11g", "802.11n", "ethernet-100", "ethernet-1000", "nodal", "wan-20ms")
LAB = """
title = "The cable in our laboratory"
source = "measured in May"
not_modelled = "its connectors"
[link]
medium = "switched"
rate_mbit = 42
mtu = 1400
"""


def study_with(link: str = "", factors: str = "", plugins: Plugins | None = None) -> Study:
    section = f"[link]\n{link}\n" if link else ""
    return read_text(SMALL_STUDY.replace("[factors]\n", f"{section}[factors]\n{factors}\n"), plugins=plugins)


def link_of(link: str, plugins: Plugins | None = None) -> LinkChoice:
    study = study_with(link, plugins=plugins)
    return LinkChoice.model_validate(settings_of(study, {"nodes": 1}, plugins)["link"])


def test_the_shipped_links_are_complete_and_say_where_they_come_from() -> None:
    assert find.shipped_values("link") == SHIPPED
    for name in SHIPPED:
        named = links.link_of(Plugins(), name)
        assert len(named.source) > 40
        assert len(named.not_modelled) > 40
        assert LinkChoice.model_validate(named.link).medium == ("802.11" if name.startswith("802") else "switched")


def test_settings_hold_the_numbers_of_a_named_link() -> None:
    assert link_of('name = "ethernet-100"') == LinkChoice(
        name="ethernet-100", medium="switched", rate_mbit=100.0, duplex="full", mtu=1500, queue_frames=128
    )


def test_fields_of_the_study_override_those_of_the_link() -> None:
    own = link_of('name = "802.11n"\nrts_threshold_bytes = 500\naggregate = 4')
    assert (own.rts_threshold_bytes, own.aggregate, own.phy) == (500, 4, "802.11n-65")


def test_the_network_as_it_is_has_no_numbers_and_is_a_level_like_any_other() -> None:
    assert link_of("") == link_of('name = "nodal"') == LinkChoice()
    without, with_levels = study_with(), study_with(factors='link = ["nodal", "ethernet-100"]')
    ids, more = ({trial.id for trial in expand(study).trials} for study in (without, with_levels))
    assert ids < more
    assert len(more) == 2 * len(ids)
    assert link_of("rate_mbit = 10") == LinkChoice(medium="switched", rate_mbit=10.0)


def test_a_file_of_the_user_s_own_is_looked_for_beside_the_study(tmp_path) -> None:
    (tmp_path / "lab.toml").write_text(LAB)
    own = link_of('name = "lab.toml"\nmtu = 1300', Plugins(tmp_path))
    assert own == LinkChoice(name="lab.toml", medium="switched", rate_mbit=42.0, mtu=1300)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LAB.replace("rate_mbit", "rate"), r"link\.name: link lab\.toml: link\.rate = 42: no such key"),
        (LAB.replace('medium = "switched"', ""), r"link lab\.toml: link\.medium is missing"),
        (LAB.replace("source =", "origin ="), "link lab.toml: .*source: must be given"),
        (LAB.replace('"switched"', '"802.11"'), "medium 802.11 has no rate_mbit"),
        ("", "must be given"),
    ],
)
def test_a_file_that_is_no_link_is_refused(tmp_path, text: str, why: str) -> None:
    (tmp_path / "lab.toml").write_text(text)
    with pytest.raises(StudyError, match=why):
        link_of('name = "lab.toml"', Plugins(tmp_path))


def test_a_file_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(StudyError, match=r"link file lab\.toml not found"):
        link_of('name = "lab.toml"', Plugins(tmp_path))


def test_a_field_of_another_medium_is_refused_where_a_level_chooses_it() -> None:
    with pytest.raises(StudyError, match="medium switched has no rts_threshold_bytes"):
        study_with("rts_threshold_bytes = 500", 'link = ["ethernet-100", "802.11n"]')


def test_every_field_can_be_a_factor_and_needs_a_start_of_its_own() -> None:
    study = study_with('name = "802.11n"', '"link.rts_threshold_bytes" = [500, 65535]\n"link.mtu" = [1400, 1500]')
    assert is_hard(study, "link.rts_threshold_bytes")
    assert is_hard(study, "link.mtu")
    assert is_hard(study_with(factors='link = ["nodal", "802.11n"]'), "link")
    plan = expand(study)
    assert len({trial.start for trial in plan.trials}) == 2 * 2 * 2 * study.design.starts
    assert {trial.settings.link.rts_threshold_bytes for trial in plan.trials} == {500, 65535}


def test_a_study_can_have_the_network_as_it_is_measured_and_its_trials_keep_their_ids() -> None:
    plain = study_with()
    asked = plain.model_copy(update={"measure_links": True})
    assert links.measures_links(asked)
    assert {trial.id for trial in expand(asked).trials} == {trial.id for trial in expand(plain).trials}


def test_a_study_that_asks_for_any_link_has_all_of_them_measured() -> None:
    assert not links.measures_links(study_with())
    assert links.measures_links(study_with("mtu = 1400"))
    assert links.measures_links(study_with(factors='link = ["nodal", "802.11n"]'))
    assert links.measures_links(study_with('name = "802.11n"', '"link.mtu" = [1400, 1500]'))


def test_answers_go_at_a_basic_rate_of_the_amendment() -> None:
    assert LinkChoice(medium="802.11", phy="802.11g-54", ack_rate_mbit=12).ack_rate_mbit == 12
    with pytest.raises(ValueError, match=r"ack_rate_mbit = 11: 802.11g-54 answers at 6, 12, 24 Mbit/s"):
        LinkChoice(medium="802.11", phy="802.11g-54", ack_rate_mbit=11)
    with pytest.raises(ValueError, match=r"802.11n-13 answers at 6, 12 Mbit/s"):
        LinkChoice(medium="802.11", phy="802.11n-13", ack_rate_mbit=24)
