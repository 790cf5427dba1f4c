"""A cluster that exists: what of it is known before anything is asked, and what may be asked of its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.plan import part_notes, requirements
from steelyard.plan.abilities import Abilities
from steelyard.plan.expand import expand
from steelyard.plugins.find import Plugins
from steelyard.study import read
from steelyard.system.cassandra._existing import knows_tables_without_snapshots

STUDIES = Path(__file__).parents[3] / "studies"
COLUMNS = ("keyspace_name", "table_name", "allow_auto_snapshot")


@pytest.mark.parametrize(
    ("versions", "columns", "known"),
    [
        (("5.0.5", "5.0.4"), COLUMNS, True),
        (("6.0-alpha1",), COLUMNS, True),
        (("5.0.5", "4.1.3"), COLUMNS, False),
        (("5.0.5",), COLUMNS[:2], False),
        (("None",), COLUMNS, False),
    ],
)
def test_tables_without_snapshots_need_every_node(
    versions: tuple[str, ...], columns: tuple[str, ...], known: bool
) -> None:
    assert knows_tables_without_snapshots(versions, columns) is known


def test_probes_that_it_cannot_be_read_by_are_refused_before_a_start(tmp_path: Path) -> None:
    text = (STUDIES / "existing-cluster.toml").read_text(encoding="utf-8")
    path = tmp_path / "study.toml"
    path.write_text(text.replace('probes = ["os"]', 'probes = ["os", "gc", "jmx", "cassandra"]'), encoding="utf-8")
    plugins = Plugins(tmp_path)
    study = read(path)
    plan = expand(study, plugins=plugins)
    errors = list(requirements.unreadable(study, plan, Abilities(plugins)))
    assert [error.read for error in errors] == ["gc", "jmx"]
    assert "reads systems that offer the way 'gc_log'; this system offers only cql" in errors[0].message
    notes = list(part_notes.notes(study, plan, 2, Abilities(plugins)))
    assert any("nodetool clearsnapshot --all -- steelyard" in note for note in notes)
