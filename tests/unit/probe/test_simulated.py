"""The probe `simulated`: utilisation from answers of the table, its page, and the systems that it is refused for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.small_study import SMALL_STUDY

from steelyard.model.errors import ProbeError
from steelyard.node.base import Node
from steelyard.plan import expand, requirements
from steelyard.plan.abilities import Abilities
from steelyard.probe import simulated
from steelyard.probe.base import Watched
from steelyard.study import read_text

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "simulated.md"


def values(*rows: list[Any]) -> list[float]:
    answer = {"columns": ["busy_server_ns", "servers"], "rows": list(rows)}
    line = json.dumps({"t_s": 1000.0, "answers": [answer]}).encode()
    return [sample.value for sample in simulated.create().parse("n1", line)]


def test_utilisation_is_of_all_servers() -> None:
    assert values([2.5e8, 1]) == [25.0]
    assert values([2.5e8, 4]) == [6.25]
    assert values([4e9, 4]) == [100.0]
    assert values([0, 2]) == [0.0]


def test_the_first_answer_and_a_server_that_takes_no_time_give_none() -> None:
    assert values([None, 2]) == []
    assert values() == []
    assert list(simulated.create().parse("n1", b'{"t_s":1.5,"answers":[null]}')) == [], "refused by the server"


def test_it_reads_simulated_nodes_only(tmp_path: Path) -> None:
    cassandra = Watched(Node("n1", "database", "10.0.0.1", (), tmp_path), (), {"cql": "10.0.0.1:9042"})
    with pytest.raises(ProbeError, match="the way 'simulated_load'; this system offers only cql"):
        simulated.create().placements([cassandra], 1.0)


@pytest.mark.parametrize(
    ("system", "probe", "words"),
    [
        ("cassandra", "simulated", "reads systems that offer the way 'simulated_load'; this system offers only beans,"),
        ("simulated", "cassandra", "reads systems that offer the way 'cql'; this system offers only simulated_load"),
    ],
)
def test_check_refuses_a_probe_of_another_system(system: str, probe: str, words: str) -> None:
    text = SMALL_STUDY.replace('name = "simulated"', f'name = "{system}"')
    (error,) = problems(f'probes = ["os", "{probe}"]\n{text}')
    assert words in error
    assert problems(f'probes = ["os", "{system}"]\n{text}') == []


def problems(text: str) -> list[str]:
    study = read_text(text)
    return [error.message for error in requirements.unreadable(study, expand(study), Abilities())]


def test_the_page_has_its_metric() -> None:
    (metric,) = simulated.create().metrics
    assert f"| `{metric.name}` | {metric.unit} |" in PAGE.read_text(encoding="utf-8")
