"""Parts that do not exist yet: named as missing and planned; misspelt names are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.commands.check import EXIT_DONE, EXIT_MISSING, EXIT_WRONG, check
from steelyard.model.errors import StudyError
from steelyard.plan import expand, preflight
from steelyard.plugins import find
from steelyard.plugins.find import Plugins
from steelyard.study import settings_of
from steelyard.study.missing import missing_parts
from tests.unit.cli.screen import Printed, printed
from tests.unit.study.paper import HEAD, SITE, read_text, text

SITES = f"""\
[factors]
site = ["{SITE}", "moon"]
load.threads = [1, 8]
"""
"""Lines 20 to 22."""
SETTINGS = f"""\
[site."{SITE}"]
most_nodes = 5
[site.moon]
network = "host"
"""
HARDWARE = """\
[factors]
hardware = ["vm", "board"]
[levels.hardware.vm]
node.memory_mb = 1024
[levels.hardware.board]
node.profile = "beaglebone-black"
link = "zigbee"
"""


def checked(folder: Path, rest: str, **options: Any) -> Printed:
    path = folder / "paper.toml"
    path.write_text(HEAD + rest)
    return printed(lambda: check(path, store=folder / "store", trust=True, **options), width=400)


def test_a_site_that_does_not_exist_is_named_and_the_plan_printed(tmp_path: Path) -> None:
    answer = checked(tmp_path, SITES)
    assert answer.code == EXIT_MISSING == 5
    assert "4 treatments, full-factorial" in answer.out
    assert "time, memory and disk are those of 12 of 24 trials" in answer.out
    assert (
        "paper.toml:21: factors.site: site moon does not exist yet (there is only "
        f"{', '.join(find.names('site'))}); 12 of 24 trials need it" in answer.err
    )
    assert "--without-missing leaves out every level that needs it; to add one: docs/howto/add-a-site.md" in answer.err


def test_link_and_profile_of_a_named_level_are_named_at_its_line(tmp_path: Path) -> None:
    answer = checked(tmp_path, HARDWARE)
    assert answer.code == EXIT_MISSING
    assert (
        "paper.toml:25: levels.hardware.board.node.profile: profile beaglebone-black does not exist yet" in answer.err
    )
    assert (
        "paper.toml:26: levels.hardware.board.link: link zigbee does not exist yet (there is only 802.11b" in answer.err
    )
    assert "to add one: docs/howto/measure-over-other-links.md" in answer.err


def test_json_names_what_is_missing(tmp_path: Path) -> None:
    answer = checked(tmp_path, HARDWARE, as_json=True)
    data = json.loads(answer.out)
    assert answer.code == EXIT_MISSING
    assert [part["line"] for part in data["missing"]] == [26, 25]
    assert data["errors"] == []
    assert len(data["plan"]["trials"]) == 12
    assert data["estimate"]["trials"] == 6


def test_a_study_of_which_nothing_exists_is_planned_without_an_estimate(tmp_path: Path) -> None:
    head = HEAD.replace(f'name = "{SITE}"', 'name = "moon"\ninventory = "pis.toml"')
    path = tmp_path / "paper.toml"
    path.write_text(head + "[factors]\nload.threads = [1, 8]\n")
    answer = printed(lambda: check(path, store=tmp_path / "store"), width=400)
    assert answer.code == EXIT_MISSING
    assert "2 treatments, full-factorial" in answer.out
    assert "Costs" not in answer.out
    assert "none: no part of this study can be run yet" in answer.out
    assert "paper.toml:9: site.name: site moon does not exist yet" in answer.err


def test_what_is_wrong_besides_weighs_more(tmp_path: Path) -> None:
    answer = checked(tmp_path, SITES.replace("[1, 8]", "[1, 8]\nsystem.replication_factor = [1, 3]"))
    assert answer.code == EXIT_WRONG
    assert "site moon does not exist yet" in answer.err
    assert "more copies than nodes" in answer.err


def test_without_missing_the_rest_is_an_ordinary_study(tmp_path: Path) -> None:
    answer = checked(tmp_path, SITES, leave_out_missing=True)
    assert (answer.code, answer.err) == (EXIT_DONE, "")
    assert "2 treatments, full-factorial" in answer.out
    rest, whole = (read_text(text(SITES), leave_out_missing=left_out) for left_out in (True, False))
    assert rest.factors["site"] == (SITE,)
    assert {trial.id for trial in expand(rest).trials} < {trial.id for trial in expand(whole).trials}


def test_without_missing_listed_treatments_go_too() -> None:
    listed = """[design]
kind = "listed"
treatments = [
  { hardware = "vm", nodes = 1 }, { hardware = "vm", nodes = 3 },
  { hardware = "board", nodes = 1 }, { hardware = "board", nodes = 6 },
]
"""
    study = read_text(
        text(listed + HARDWARE.replace("[factors]\n", "[factors]\nnodes = [1, 3, 6]\n")), leave_out_missing=True
    )
    assert [treatment["nodes"] for treatment in study.design.treatments] == [1, 3]
    assert study.factors == {"nodes": (1, 3), "hardware": ("vm",)}
    assert list(study.levels["hardware"]) == ["vm"]


def test_nothing_is_left_of_a_study_that_needs_what_is_missing_throughout() -> None:
    with pytest.raises(StudyError, match=r"factors\.site: a factor needs at least one level"):
        read_text(text('[factors]\nsite = ["moon"]\n'), leave_out_missing=True)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ('[factors]\nsite = ["locl"]\n', "factors.site = 'locl': unknown site 'locl'; did you mean 'local'?"),
        ('[factors]\nlink = ["nodall"]\n', "link.name = 'nodall': unknown link; did you mean 'nodal'?"),
        ('[factors]\nlink = ["802.11"]\n', "link.name = '802.11': unknown link; did you mean '802.11"),
        ('[factors]\nworkload = ["tpcc"]\n', "unknown workload 'tpcc'"),
    ],
)
def test_a_misspelt_name_is_refused(rest: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_text(text(rest))
    assert message in caught.value.message


def test_run_refuses_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "paper.toml"
    path.write_text(text(SITES))
    study, plan = preflight.read_and_expand(path, Plugins(tmp_path))
    with pytest.raises(StudyError, match=r"paper\.toml:21: factors\.site: site moon does not exist yet"):
        preflight.refuse(preflight.runnable(path, study, plan)[1])


def test_a_sub_table_holds_the_settings_of_one_plug_in() -> None:
    study = read_text(text(SITES + SETTINGS))
    here, missing = (settings_of(study, {"site": name})["site"] for name in (SITE, "moon"))
    assert (here["most_nodes"], "network" in here, "moon" in here) == (5, False, False)
    assert missing == {"name": "moon", "nodes": 1, "load_nodes": 1, "network": "host"}


def test_a_level_overrides_the_sub_table_of_its_plug_in() -> None:
    study = read_text(text(SITES + '"site.most_nodes" = [7, 8]\n' + SETTINGS.partition("[site.moon]")[0]))
    assert settings_of(study, {"site": SITE, "site.most_nodes": 7})["site"]["most_nodes"] == 7


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (SITES + SETTINGS.replace("most_nodes", "most"), f"paper.toml:24: site.{SITE}.most = 5: no such key"),
        (SITES + SETTINGS.replace("= 5", '= "many"'), f"paper.toml:24: site.{SITE}.most_nodes = 'many': must be"),
        (SITES + '[site.moon]\nnodes = 3\n', "paper.toml:24: site.moon.nodes = 3: belongs in [site]"),
        ('[site.moon]\nnetwork = "host"\n', "paper.toml:20: site.moon: no such key"),
    ],
)  # fmt: skip
def test_a_sub_table_is_checked(rest: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_text(text(rest), "paper.toml")
    assert message in caught.value.message


def test_settings_of_existing_parts_lack_nothing() -> None:
    plan = expand(read_text(text(HARDWARE), leave_out_missing=True))
    assert set(missing_parts(trial.settings for trial in plan.trials)) == {()}


def test_a_site_that_cannot_limit_nodes_is_refused_for_a_study_that_does(tmp_path: Path) -> None:
    answer = checked(tmp_path, "[node]\nmemory_mb = 1024\ncpus = 1.5\n")
    assert answer.code == EXIT_WRONG
    assert "it does not enforce node.cpus = 1.5" in answer.err


def test_an_error_without_missing_has_its_line_in_the_file() -> None:
    listed = """[design]
kind = "listed"
treatments = [
  { hardware = "board", nodes = [1, 3] },
  { hardware = "vm", nodes = [1, 0] },
]
"""
    with pytest.raises(StudyError, match=r"paper\.toml:24: design\.treatments\.1: site\.nodes = 0: must be at least 1"):
        read_text(text(listed + HARDWARE), "paper.toml", leave_out_missing=True)


def test_without_missing_the_settings_of_a_missing_plug_in_go_too() -> None:
    study = read_text(text(SITES + SETTINGS), leave_out_missing=True)
    assert study.site.settings == {SITE: {"most_nodes": 5}}
    assert expand(study).trials[0].settings.root["site"]["most_nodes"] == 5


def test_a_missing_part_that_only_a_listed_treatment_names_is_there(tmp_path: Path) -> None:
    listed = f'[design]\nkind = "listed"\ntreatments = [{{ site = "{SITE}" }}, {{ site = "moon" }}]\n'
    answer = checked(tmp_path, listed)
    assert answer.code == EXIT_MISSING
    assert "paper.toml:22: design.treatments: site moon does not exist yet" in answer.err
