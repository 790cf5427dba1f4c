"""What the agent would refuse is said by `check`, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import StudyError
from steelyard.plan import expand
from steelyard.plan.abilities import Abilities
from steelyard.plan.engines import refused_by_agent
from steelyard.plugins.find import Plugins
from steelyard.study import read

WORKLOAD = """
name = "w"
[tables.t]
primary_key = "id"
columns.id = "int"
columns.small = { type = "tinyint", number = "uniform(0..100)" }
[statements]
put = "INSERT INTO t (id, small) VALUES (?, ?)"
[[operations]]
name = "put"
keys = "new"
statement = "put"
"""
STUDY = """
[study]
name = "s"
question = "?"
[system]
name = "simulated"
[workload]
name = "w.toml"
[load]
operations = 10
"""


def refused(folder: Path) -> tuple[StudyError, ...]:
    plugins = Plugins(folder)
    return refused_by_agent(expand(read(folder / "s.toml", plugins=plugins), plugins), Abilities(plugins))


@pytest.mark.agent
def test_a_number_that_its_type_cannot_hold(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(STUDY)
    (tmp_path / "w.toml").write_text(WORKLOAD)
    assert refused(tmp_path) == ()
    (tmp_path / "w.toml").write_text(WORKLOAD.replace("0..100", "0..1000"))
    first, *_ = refused(tmp_path)
    assert first.key == "workload.name"
    assert first.message.startswith("workload w.toml:8: ")
    assert "allowed: -128 to 127" in first.message


def test_nothing_is_asked_where_there_is_no_agent(tmp_path: Path, no_agent: list[Path]) -> None:
    (tmp_path / "s.toml").write_text(STUDY)
    (tmp_path / "w.toml").write_text(WORKLOAD.replace("0..100", "0..1000"))
    assert refused(tmp_path) == ()
