"""From settings to plug-ins: files that a site's settings name are looked for beside the study."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import StudyError
from steelyard.model.trial_settings import TrialSettings
from steelyard.plugins.find import Plugins, any_file
from steelyard.plugins.parts import Parts
from steelyard.site.base import Request
from steelyard.wire.order import Jobs

SETTINGS = TrialSettings({"site": {"name": "ssh", "nodes": 1, "load_nodes": 1, "inventory": "shelf.toml"}})
INVENTORY = "[[machine]]\nname = 'pi1'\n[[machine]]\nname = 'pi2'\n"


def test_an_inventory_is_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "shelf.toml").write_text(INVENTORY)
    site = Parts(Plugins(tmp_path), state_folder=tmp_path / "state").site(SETTINGS)
    assert site.refuse(Request("study", 1, 1), None) is None
    refusal = site.refuse(Request("study", 2, 1), None)
    assert refusal is not None
    assert "of 2 machines in the inventory 2 may be databases" in refusal


def test_one_that_is_not_there_is_named_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"inventory shelf\.toml not found") as missing:
        Parts(Plugins(tmp_path), state_folder=tmp_path / "state").site(SETTINGS)
    assert missing.value.key == "site.inventory"


def test_a_wrong_inventory_refuses_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "shelf.toml").write_text("[[machine]]\nname = 'pi1'\nport = 0\n")
    refusal = (
        Parts(Plugins(tmp_path), state_folder=tmp_path / "state").site(SETTINGS).refuse(Request("study", 1, 1), None)
    )
    assert refusal is not None
    assert "shelf.toml:3: machine.0.port = 0: must be at least 1" in refusal


def test_a_program_that_a_workload_names_is_found_next_to_the_study_and_needs_trust(tmp_path: Path) -> None:
    (tmp_path / "mine.jar").write_bytes(b"jar")
    settings = TrialSettings.model_validate({"workload": {"name": "wordcount", "program": "mine.jar"}})
    work = Parts(Plugins(tmp_path, any_file)).workload(settings).order()
    assert isinstance(work, Jobs)
    assert work.program == str(tmp_path / "mine.jar")
    with pytest.raises(StudyError, match=r"mine\.jar is the workload's code, and it is not trusted"):
        Parts(Plugins(tmp_path)).workload(settings)
    gone = TrialSettings.model_validate({"workload": {"name": "wordcount", "program": "gone.jar"}})
    with pytest.raises(StudyError, match=r"program of the job gone\.jar not found") as missing:
        Parts(Plugins(tmp_path, any_file)).workload(gone)
    assert missing.value.key == "workload.program"
