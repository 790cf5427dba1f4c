"""The site of docs/howto/add-a-site.md carries a study, exactly as it is printed there."""

from __future__ import annotations

import shutil
from pathlib import Path

from steelyard.store import Store
from tests.contract.howto import Printed
from tests.e2e.laboratory import BUSY_MACHINE, COLD, Laboratory

STUDY = f"""
[study]
name = "on-a-shelf"
question = "does a site that is one file carry a study?"
[site]
name = "./shelf.py"
rack = 2
[system]
name = "simulated"
service_us = 500
[workload]
name = "ycsb-c"
records = 200
[load]
operations = 500
threads = 4
[design]
starts = 1
trials = 2
[factors]
nodes = [1, 2]
{BUSY_MACHINE}{COLD}"""


def test_the_printed_site_carries_a_study(tmp_path: Path) -> None:
    page = Printed("add-a-site.md")
    shutil.copyfile(page.file("shelf.py"), tmp_path / "shelf.py")
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    laboratory = Laboratory(tmp_path)
    done = laboratory.run(study, "--trust")
    assert done.returncode == 0, done.stderr
    trials = Store(laboratory.store / "on-a-shelf").trials()
    assert [record.verdict.outcome for record in trials] == ["valid"] * 4
    assert list((tmp_path / "state" / "leases").glob("*.json")) == [], "everything was given back"
    assert "once the cluster is stopped and its nodes are given back" in done.stderr
