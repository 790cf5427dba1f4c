"""The shipped study of a simulated cluster, from its file to the answer: it finds the contention that it plants."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.analyse import analyse
from steelyard.analysis.statistics.law_choice import LawChoice
from steelyard.store import Store
from tests.e2e.laboratory import BUSY_MACHINE, Laboratory

pytestmark = [pytest.mark.agent, pytest.mark.quiet]

SHIPPED = Path(__file__).resolve().parents[2] / "studies" / "simulated.toml"
BRIEFER = {
    "nodes = [1, 2, 3, 4, 6, 8]": "nodes = [1, 2, 3, 5, 8]",
    "duration_s = 1.5": "duration_s = 1",
    "[analysis]": "[analysis]\nconfidence = 0.999",
}
"""The fewest sizes that a law is fitted to, two thirds of the time; at 99.9%, because a busy machine is noise too."""


def test_the_shipped_study_finds_what_it_plants(laboratory: Laboratory, tmp_path: Path) -> None:
    """By the law that its answer prefers."""
    study = tmp_path / "simulated.toml"
    text = SHIPPED.read_text()
    for shipped, briefer in BRIEFER.items():
        assert shipped in text
        text = text.replace(shipped, briefer)
    study.write_text(text + BUSY_MACHINE)
    done = laboratory.run(study)
    assert done.returncode in (0, 1), done.stderr
    store = Store(laboratory.store / "simulated")
    results = analyse(store.trials(), store.study, seed=1)
    (choice,) = results.of(LawChoice)
    assert choice.contention is not None
    assert choice.contention.low is not None
    assert choice.contention.high is not None
    assert choice.contention.low <= 0.1 <= choice.contention.high, choice.sentence
    assert choice.planted_contention == 0.1
    assert any("planted 0.1" in sentence for sentence in results.answer)
    assert not any("did not saturate" in sentence for sentence in results.caveats)
