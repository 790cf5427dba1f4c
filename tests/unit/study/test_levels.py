"""Named levels: what they set, and what is refused, with file and line."""

from __future__ import annotations

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.study import Study
from steelyard.plan import expand
from steelyard.study import is_hard, settings_of, treatments_of
from steelyard.study.levels import is_reserved, unused
from tests.unit.analysis.made import cell, frame
from tests.unit.study.paper import HEAD, SITE, read_text, study, text

HARDWARE = """\
[factors]
hardware = ["vm-1gb", "vm-2gb"]
[levels.hardware.vm-1gb]
"node.memory_mb" = 1024
"system.heap_mb" = 256
number = 1.0
unit = "GB"
[levels.hardware.vm-2gb]
node.memory_mb = 2048
system.heap_mb = 512
number = 2.0
unit = "GB"
"""
"""Line 20 is `[factors]`."""
CONSISTENCY = """\
[factors]
consistency = ["ONE", "QUORUM"]
[levels.consistency.ONE]
[levels.consistency.QUORUM]
"load.read_consistency" = "QUORUM"
"load.write_consistency" = "QUORUM"
"""


def wrong(rest: str, head: str = HEAD) -> StudyError:
    with pytest.raises(StudyError) as caught:
        read_text(text(rest, head), "paper.toml")
    return caught.value


def settings(found: Study, **treatment: str) -> dict[str, dict[str, object]]:
    return settings_of(found, treatment)


def test_a_level_sets_several_fields() -> None:
    found = study(HARDWARE)
    assert treatments_of(found) == ({"hardware": "vm-1gb"}, {"hardware": "vm-2gb"})
    large = settings(found, hardware="vm-2gb")
    assert (large["node"]["memory_mb"], large["system"]["heap_mb"]) == (2048, 512)
    assert [found.number_of("hardware", level) for level in found.factors["hardware"]] == [1.0, 2.0]
    assert found.levels["hardware"]["vm-1gb"].unit == "GB"


def test_fields_that_move_together_within_a_named_factor_are_not_confounded() -> None:
    plan = expand(study(HARDWARE))
    assert plan.factors == {"hardware": ("vm-1gb", "vm-2gb")}
    assert len(plan.trials) == 2 * 2 * 3


@pytest.mark.parametrize(
    ("rest", "factor", "hard"), [(HARDWARE, "hardware", True), (CONSISTENCY, "consistency", False)]
)
def test_a_factor_is_hard_if_any_of_its_fields_is(rest: str, factor: str, hard: bool) -> None:
    found = study(rest)
    assert is_hard(found, factor) is hard
    plan = expand(found)
    assert plan.hard == ((factor,) if hard else ())
    assert len({trial.start for trial in plan.trials if trial.block == 1}) == (2 if hard else 1)


def test_an_easy_field_of_a_hard_factor_tells_its_starts_apart() -> None:
    rest = HARDWARE.replace('"system.heap_mb" = 256', "load.threads = 2").replace(
        "system.heap_mb = 512", "load.threads = 9"
    )
    plan = expand(study(rest.replace("2048", "1024")))
    assert len({trial.start for trial in plan.trials}) == 2 * 2
    assert len({trial.id for trial in plan.trials}) == len(plan.trials)


def test_a_level_that_sets_nothing_leaves_the_study_as_it_is() -> None:
    found = study(CONSISTENCY)
    assert settings(found, consistency="ONE") == settings_of(study(""), {})
    assert settings(found, consistency="QUORUM")["load"]["write_consistency"] == "QUORUM"


def test_a_level_overrides_a_fixed_setting_of_the_study() -> None:
    head = HEAD.replace("[workload]", "heap_mb = 300\n[workload]", 1)
    found = read_text(text(HARDWARE, head), "paper.toml")
    assert settings(found, hardware="vm-1gb")["system"]["heap_mb"] == 256


def test_levels_may_be_numbers() -> None:
    found = study(
        "[factors]\nram_gb = [1, 2]\n[levels.ram_gb.1]\nnode.memory_mb = 1024\n"
        "[levels.ram_gb.2]\nnode.memory_mb = 2048\n"
    )
    assert settings_of(found, {"ram_gb": 2})["node"]["memory_mb"] == 2048
    assert found.number_of("ram_gb", 2) == 2.0


def test_a_level_may_choose_a_plug_in_and_its_settings() -> None:
    rest = f"""\
[factors]
place = ["small", "large"]
[levels.place.small]
nodes = 1
[levels.place.large]
"site" = "{SITE}"
"site.nodes" = 3
"""
    found = study(rest)
    assert settings(found, place="large")["site"]["nodes"] == 3


CASES = {
    "paper.toml:21: factors.hardware = 'vm-2g': no such level under [levels.hardware]; did you mean 'vm-2gb'?": (
        HARDWARE.replace('"vm-2gb"]', '"vm-2g"]')
    ),
    "paper.toml:24: levels.hardware.vm-1gb.system.heap_m: no such key: a level sets fields of the study; did you mean "
    "'system.heap_mb'?": HARDWARE.replace('"system.heap_mb"', '"system.heap_m"'),
    "paper.toml:24: levels.hardware.vm-1gb.design.starts: no such key: a level sets fields of the study": (
        HARDWARE.replace('"system.heap_mb"', '"design.starts"')
    ),
    "paper.toml:27: levels.hardware.vm-2gb: sets the same as level vm-1gb: these are the same level": (
        HARDWARE.replace("2048", "1024").replace("512", "256")
    ),
    "have the same complete settings": CONSISTENCY.replace('"load.read_consistency" = "QUORUM"\n', "").replace(
        '"load.write_consistency" = "QUORUM"', '"load.write_consistency" = "ONE"'
    ),
    "paper.toml:22: levels.hardwar: not a factor of this study; did you mean 'hardware'?": (
        HARDWARE.replace("[levels.hardware.vm-1gb]", "[levels.hardwar.vm-1gb]")
    ),
    "paper.toml:24: levels.hardware.vm-1gb: system.heap_mb = 'much': must be a whole number": (
        HARDWARE.replace('"system.heap_mb" = 256', '"system.heap_mb" = "much"')
    ),
    "paper.toml:23: levels.hardware.vm-1gb: node.memory_mb = 1: must be at least 16": HARDWARE.replace("1024", "1"),
    "paper.toml:25: levels.hardware.vm-1gb.number = 'one': must be a number": (
        HARDWARE.replace("number = 1.0", 'number = "one"')
    ),
    "paper.toml:27: levels.hardware.vm-2gb.number: level vm-1gb of this factor has a number": (
        HARDWARE.replace("number = 2.0\n", "")
    ),
    "one unit for all levels of a factor; here are GB and MB": HARDWARE[::-1].replace('"BG"', '"BM"', 1)[::-1],
    "levels.hardware.vm-1gb.system.heap_mb = [256]: must be one level": (
        HARDWARE.replace('"system.heap_mb" = 256', '"system.heap_mb" = [256]')
    ),
    "paper.toml:21: levels.hardware = 3: must be a table of levels": "[levels]\nhardware = 3\n",
    "is a field, or a column of the results; choose another": "[factors]\nblock = ['a']\n[levels.block.a]\nnodes = 1\n",
    "letters, digits, '_' and '-', 64 at most, no dots": "[factors]\n'a b' = ['a']\n[levels.'a b'.a]\nnodes = 1\n",
    "a factor of any other name needs its levels under [levels.hardware]": "[factors]\nhardware = ['a', 'b']\n",
}


@pytest.mark.parametrize(("message", "rest"), list(CASES.items()))
def test_what_is_wrong_is_said(message: str, rest: str) -> None:
    error = wrong(rest)
    assert message in f"{error.message} {error.hint}"


def test_two_factors_that_set_one_field_contradict_each_other() -> None:
    error = wrong(HARDWARE.replace("[factors]\n", "[factors]\nsystem.heap_mb = [256, 512]\n"))
    assert error.message.startswith(
        "paper.toml:25: levels.hardware.vm-1gb.system.heap_mb = 256: contradicts system.heap_mb = 512, which sets "
        "system.heap_mb = 512; one field belongs to one factor"
    )
    assert "paper.toml:30: levels.hardware.vm-2gb.system.heap_mb = 512: contradicts" in error.message


def test_levels_in_listed_treatments_and_base_and_control() -> None:
    listed = '[design]\nkind = "listed"\ntreatments = [{ hardware = "vm-1gb" }, { hardware = "vm-3gb" }]\n'
    levels = HARDWARE.partition("]\n[levels")[2]
    assert "design.treatments.1.hardware = 'vm-3gb': no such level" in wrong(f"{listed}[levels{levels}").message
    control = '[design.control]\nhardware = "vm-3gb"\n'
    assert "design.control.hardware = 'vm-3gb': not a level of hardware" in wrong(control + HARDWARE).message


def test_levels_that_no_treatment_has_are_named() -> None:
    rest = HARDWARE + "[levels.hardware.vm-4gb]\nnode.memory_mb = 4096\nnumber = 4\n"
    found = study(rest)
    assert unused(found, treatments_of(found)) == ("hardware = vm-4gb",)


def test_names_of_named_factors_are_no_columns_of_the_analysis() -> None:
    records = [record.model_copy(update={"covariates": {"cores": 2.0}}) for record in cell([[1.0, 2.0]])]
    analysed = frame(records)
    columns = set(analysed.data.columns) - set(analysed.factors)
    assert "covariate_cores" in columns
    assert {name for name in columns if not is_reserved(name)} == set()
    assert not is_reserved("hardware")


@pytest.mark.parametrize("name", ["covariate_cores", "used", "settings", "label", "nodes", "load"])
def test_a_named_factor_with_the_name_of_something_else_is_refused(name: str) -> None:
    assert f"levels.{name}: a named factor cannot have this name" in wrong(HARDWARE.replace("hardware", name)).message


def test_a_study_with_levels_is_read_back() -> None:
    found = study(HARDWARE)
    assert Study.model_validate_json(found.model_dump_json()) == found
    assert found.model_dump()["levels"]["hardware"]["vm-1gb"] == {
        "number": 1.0, "unit": "GB", "node.memory_mb": 1024, "system.heap_mb": 256,
    }  # fmt: skip


def test_records_in_levels_are_scaled() -> None:
    sizes = "[levels.size.s]\nworkload.records = 1000\n[levels.size.l]\nworkload.records = 9000\n"
    found = study("[factors]\nsize = ['s', 'l']\n" + sizes, scale=0.5)
    assert settings(found, size="l")["workload"]["records"] == 4500


CROSSED = """\
[design]
kind = "listed"
treatments = [
  { nodes = [1, 3], load.threads = [1, 8] },
  { nodes = 5, load.threads = 8 },
]
"""


def test_lists_in_a_treatment_stand_for_every_combination() -> None:
    found = study(CROSSED)
    assert [(one["nodes"], one["load.threads"]) for one in treatments_of(found)] == [
        (1, 1), (1, 8), (3, 1), (3, 8), (5, 8),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (CROSSED.replace("nodes = 5", "nodes = 0"), "paper.toml:24: design.treatments.1: site.nodes = 0: must be"),
        (CROSSED.replace("nodes = 5", "nodes = 3"), "paper.toml:24: design.treatments.1: the same treatment is listed"),
        (CROSSED.replace("nodes = 5", "nodes = []"), "paper.toml:24: design.treatments.1.nodes = []: must be"),
        (CROSSED.replace("[1, 8]", str(list(range(1, 9000)))), "paper.toml:23: design.treatments.0: more than 10,000"),
        (CROSSED + "[factors]\nnodes = [1, 3]\n", "paper.toml:24: design.treatments.1.nodes = 5: not a level of nodes"),
    ],
)  # fmt: skip
def test_a_wrong_list_in_a_treatment_is_refused_at_its_line(rest: str, message: str) -> None:
    assert message in wrong(rest).message


LISTED = """\
[design]
kind = "listed"
treatments = [
  { nodes = [1, 2], load.schedule = "closed" },
  { nodes = 3, load.schedule = "closed" },
]
"""


def test_a_fault_of_a_control_in_a_listed_design_is_at_the_control() -> None:
    control = '[design.control]\nnodes = 1\nload.schedule = "poisson"\n'
    poisson = '[factors]\nload.schedule = ["closed", "poisson"]\n'
    error = wrong(LISTED + control + poisson)
    assert error.key.startswith("design.control")
    assert error.message.startswith("paper.toml:28: design.control: load: schedule poisson needs")


@pytest.mark.parametrize(
    ("rest", "key"),
    [
        ('[factors]\nhw = ["b", "a"]\n[levels.hw.a]\nsite = "locl"\n[levels.hw.b]\nsite = "local"\n',
         "levels.hw.a.site"),
        ('[design]\nkind = "listed"\ntreatments = [{ site = ["local", "fake"] }, { site = "locl" }]\n',
         "design.treatments.1.site"),
        ('[factors]\nsite = ["local", "locl"]\n', "factors.site"),
        ('[site]\nname = "locl"\n', "site.name"),
    ],
)  # fmt: skip
def test_a_misspelt_plug_in_is_at_the_place_that_names_it(rest: str, key: str) -> None:
    head = HEAD.replace(f'[site]\nname = "{SITE}"\n', "") if rest.startswith("[site]") else HEAD
    error = wrong(rest, head)
    assert error.key == key
    assert "unknown site 'locl'" in error.message


def test_factors_that_only_listed_treatments_name_are_tried() -> None:
    found = study(LISTED)
    assert found.factors == {}
    assert list(found.tried) == ["nodes", "load.schedule"]
    assert found.tried["nodes"] == (1, 2, 3)
    assert found.values_of(("nodes", "site.nodes"), 1) == (1, 2, 3)
