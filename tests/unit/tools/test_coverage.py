"""The coverage report in short: few studies, one seed, and the tolerance that their number deserves."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from tools.coverage import energy, models, planted, sides, single
from tools.coverage.__main__ import every_case, main
from tools.coverage.page import FIGURES, figures, page, table, words
from tools.coverage.tally import Case, Line, count, held

from steelyard.model.estimate import Estimate

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "explanation" / "coverage.md"
STUDIES = 150
DEAR = (models.LAWS,)
"""Each fit is bootstrapped: its own tests draw some."""


def one_of_each() -> list[Case]:
    """Of every method the case with five units, else the first, where the truth is the house's."""
    found: dict[tuple[str, str], Case] = {}
    for case in every_case():
        key = (case.family, case.method)
        if case.family not in DEAR and (key not in found or (case.n in ("5", "5 x 3") and found[key].n != case.n)):
            found[key] = case
    return list(found.values())


@pytest.mark.parametrize("case", one_of_each(), ids=lambda case: f"{case.family}: {case.method}, {case.n}")
def test_what_the_report_prints_as_its_own_keeps_its_promise(case):
    """Four standard errors of a true 94%: a wrong interval is far beyond, a right one almost never is."""
    for line in count(case, STUDIES, 7):
        if line.use != "ours" or line.rate is None:
            continue
        kept = 1 - line.rate if case.promise == "errs" else line.rate
        assert kept >= 0.94 - 4 * (0.94 * 0.06 / line.given) ** 0.5, f"{line.method}: {kept:.3f} of {line.given}"


def test_every_case_of_the_full_run_draws_a_study():
    """The full run takes half an hour: a case that falls over, or draws nothing, is seen here."""
    empty = [case.key for case in every_case() if not list(itertools.islice(case.draw(np.random.default_rng(1), 2), 2))]
    assert empty == []


def test_what_is_too_narrow_is_seen_to_be():
    wanted = {
        ("z (chekkilla2016)", "2"): 0.8,
        ("t over trials, counted as independent", "2 x 5"): 0.8,
        ("percentile bootstrap", "3"): 0.88,
    }
    lines = {
        (line.method, case.n): line
        for case in every_case()
        if case.family in (single.MEANS, sides.RATIOS)
        and ((case.method, case.n) in wanted or any((name, case.n) in wanted for name, _ in case.beside))
        for line in count(case, STUDIES, 7)
    }
    for key, most in wanted.items():
        assert lines[key].rate < most
        assert lines[key].verdict == "narrow"
        assert lines[key].use != "ours"


def test_a_planted_split_plot_has_the_spreads_that_it_says():
    plot = planted.Plot("lognormal", 0.2, 0.1, 4)
    drawn = plot.values(np.random.default_rng(1), 4000, 3)
    assert drawn.mean() == pytest.approx(planted.MEAN_MS, rel=0.01)
    within = drawn.std(axis=2, ddof=1) / drawn.mean(axis=2)
    assert np.sqrt((within**2).mean()) == pytest.approx(0.1, rel=0.05)
    between = plot.starts(np.random.default_rng(1), 20_000, 1)
    assert between.std() / between.mean() == pytest.approx(0.2, rel=0.03)


def test_the_frame_of_a_planted_study_is_one_of_the_analysis():
    values = np.arange(24.0).reshape(4, 3, 2)
    made = planted.frame_of(values, ((1, "A"), (1, "B"), (3, "A"), (3, "B")))
    rows = made.values(planted.RESPONSE, {"nodes": 3, "workload": "A"})
    assert rows[planted.RESPONSE].to_list() == [12, 13, 14, 15, 16, 17]
    assert rows["start"].to_list() == ["b0-n3", "b0-n3", "b1-n3", "b1-n3", "b2-n3", "b2-n3"]
    shared = made.values(planted.RESPONSE, {"nodes": 3, "workload": "B"})
    assert shared["start"].unique().sort().to_list() == rows["start"].unique().sort().to_list()
    assert made.hard == ("nodes",)


def fixed(*outcomes: bool | None, promise: str = "covers") -> Line:
    case = Case("f", "m", "t", "5", lambda rng, studies: outcomes, promise)
    return count(case, 1, 1)[0]


def test_cells_are_named_by_what_was_counted():
    assert fixed(*[True] * 950, *[False] * 50).verdict == "holds"
    assert fixed(*[True] * 900, *[False] * 100).verdict == "narrow"
    assert fixed(*[True] * 1000).verdict == "wide"
    assert fixed(None, None).verdict == "none given"
    assert fixed(*[True] * 900, *[False] * 100, promise="errs").verdict == "errs too often"
    assert fixed(*[True] * 1000, promise="errs").verdict == "cautious"
    some = fixed(True, None, False, True)
    assert (some.studies, some.given, some.held) == (4, 3, 2)
    without = Estimate(value=1.0, n=2, unit="", method="none")
    assert held(without, 1.0) is None
    assert held(None, 1.0) is None


def test_figures_stay_when_a_case_is_added():
    cases = [case for case in every_case() if case.family == single.MEANS][:2]
    alone = count(cases[1], 60, 3)
    count(cases[0], 60, 3)
    assert count(cases[1], 60, 3)[0].held == alone[0].held


def test_a_page_of_few_studies_is_whole():
    lines = [line for case in every_case() if case.family in (sides.SAME, sides.RATIOS) for line in fake(case)]
    made = page(lines, 100, 1)
    assert "| Welch on logarithms of start means: the verdict |" in made
    assert "no ends" in made
    for svg, name in zip(figures(lines), FIGURES, strict=True):
        assert svg.startswith("<svg")
        assert name in made
    assert set(words()) - {""} >= {case.family for case in every_case()}
    assert table(lines[:1]).count("\n") == 2


def fake(case: Case) -> list[Line]:
    methods = ((case.method, case.use), *case.beside)
    given = 0 if case.n == "2" else 90
    return [Line(case, method, use, 100, given, given - 5 if given else 0) for method, use in methods]


def test_every_own_method_of_the_kept_page_gives_an_interval_or_a_p_at_some_n():
    """A row of which every cell is *no ends* simulates nothing."""
    rows = [one.strip("| ").split(" | ") for one in PAGE.read_text(encoding="utf-8").splitlines() if "no ends" in one]
    silent = [cells[0] for cells in rows if len(cells) > 3 and not any("±" in cell for cell in cells)]
    assert silent == []


def test_the_kept_page_is_of_these_cases():
    """The page is kept, not made in the tests: every method and truth of today must stand in it."""
    kept = PAGE.read_text(encoding="utf-8")
    for case in every_case():
        for method in (case.method, *(name for name, _ in case.beside)):
            assert f"| {method} | {case.truth} |" in kept, f"write docs/explanation/coverage.md again: {method}"
    for name in FIGURES:
        assert (ROOT / "docs" / "figures" / name).is_file()


def test_the_command_refuses_what_makes_no_page(capsys):
    for wrong in (["--family", "nonsense"], ["--studies", "0"], ["--write", "x.md", "--family", "mean"]):
        with pytest.raises(SystemExit) as stopped:
            main(wrong)
        assert stopped.value.code == 2
    assert "there are: Mean" in capsys.readouterr().err


def test_an_interval_of_energy_with_a_planted_gain_of_2_percent_covers_95_percent():
    """Five starts: 96.7%, within two points of what it promises, and without the gain error far below."""
    (case, *_) = [case for case in energy.cases() if case.n == "5 x 3"]
    metered, alone = count(case, 40_000, 11)
    assert metered.rate == pytest.approx(0.95, abs=0.02)
    assert alone.rate < 0.85
