"""A number is one file: a statistic and a response that are each dropped into their folder, and nothing else, are found
everywhere. So is what a reason of a verdict says of itself."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import tools.docs.__main__ as docs
from tools.docs import numbers

from steelyard.analysis import statistics
from steelyard.analysis.statistic import Section
from steelyard.cli.commands.report import report
from steelyard.model import responses
from steelyard.model.errors import StudyError
from steelyard.model.trial import TrialRecord
from steelyard.model.verdict_reasons import ReasonKind
from steelyard.store import layout
from steelyard.store.modelled import open_store
from steelyard.study import schema
from steelyard.verify.store import verification
from tests.unit.verify import made

ROOT = Path(__file__).resolve().parents[2]

STATISTIC = '''
"""Harmonic means: an example of a statistic."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from steelyard.analysis.row import InUnit, MeasuredTreatment
from steelyard.analysis.statistic import Context, Section, Statistic
from steelyard.model.estimate import Estimate
from steelyard.model.responses import unit_of


class HarmonicMean(MeasuredTreatment):
    """Of one treatment."""

    n: int
    """Used trials."""
    harmonic_mean: InUnit
    """Reciprocal of the mean of reciprocals."""


def harmonic_means(context: Context) -> Iterator[HarmonicMean]:
    for treatment in context.frame.treatments:
        values = context.frame.values(context.response, treatment)[context.response].to_list()
        if values:
            unit = unit_of(context.response)
            mean = Estimate(value=statistics.harmonic_mean(values), n=len(values), unit=unit, method="harmonic mean")
            yield HarmonicMean(
                treatment=treatment, response=context.response, unit=unit, n=len(values), harmonic_mean=mean
            )


def sentences(rows: Sequence[HarmonicMean], response: str) -> Iterator[str]:
    yield f"There are {len(rows)} harmonic means of {response}."


STATISTIC = Statistic(
    name="harmonic",
    row=HarmonicMean,
    title="Harmonic means of {response}",
    section=Section.ANSWER,
    compute=harmonic_means,
    sentences=sentences,
)
'''

RESPONSE = '''
"""Longest service time: an example of a response."""

from __future__ import annotations

from steelyard.model.response import Direction, Response, by_quantile_ms

RESPONSES = (
    Response(
        name="service_ms_max",
        label="longest service time",
        unit="ms",
        definition="Longest time from the sending of an operation to its answer.",
        compute=by_quantile_ms(1.0, "service"),
        direction=Direction.LESS_IS_FASTER,
        head="service max",
    ),
)
'''


def forget() -> None:
    """What was found in the folders before."""
    for cached in (statistics.every, statistics.by_row, responses.every):
        cached.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is part of both packages while the test runs."""
    dropped = tmp_path / "dropped"
    for package in (statistics, responses):
        own = dropped / package.__name__
        own.mkdir(parents=True)
        # A file that is dropped into the package, without writing there.
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(own)])
    forget()
    yield dropped
    monkeypatch.undo()
    forget()
    for package in (statistics, responses):
        for path in (dropped / package.__name__).glob("*.py"):
            sys.modules.pop(f"{package.__name__}.{path.stem}", None)
            package.__dict__.pop(path.stem, None)


def add_statistic(folder: Path, text: str = STATISTIC) -> None:
    (folder / statistics.__name__ / "harmonic.py").write_text(text, encoding="utf-8")


def add_response(folder: Path) -> None:
    (folder / responses.__name__ / "longest_service.py").write_text(RESPONSE, encoding="utf-8")


def reported(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, Path, dict]:
    """Page, folder of tables, and what `--json` prints."""
    page, tables = tmp_path / "page.html", tmp_path / "tables"
    report(store, output=page, tables=tables, as_json=True)
    return page.read_text(encoding="utf-8"), tables, json.loads(capsys.readouterr().out)


def test_a_statistic_is_one_file(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_statistic(folder)
    page, tables, found = reported(made.store(tmp_path), tmp_path, capsys)
    assert "Harmonic means of execution time" in page
    assert 'id="table-harmonic"' in page
    assert "There are 2 harmonic means of execution_time_ms." in page
    assert found["harmonic"]["columns"][:5] == ["nodes", "response", "unit", "n", "harmonic_mean"]
    about = found["harmonic"]["about"]
    assert about["harmonic_mean"] == "Reciprocal of the mean of reciprocals, in the unit of column `unit`."
    assert about["harmonic_mean_low"] == "Low end of the interval of harmonic_mean, in its unit."
    mean = found["summary"]["rows"][0][found["summary"]["columns"].index("mean")]
    harmonic = found["harmonic"]["rows"][0][4]
    assert harmonic == pytest.approx(mean, rel=0.05)
    assert harmonic < mean
    assert pl.read_csv(tables / "harmonic.csv")["harmonic_mean"][0] == harmonic
    for suffix in ("md", "tex"):
        assert "harmonic mean" in (tables / f"harmonic.{suffix}").read_text(encoding="utf-8")


def test_a_statistic_is_shown_in_its_section(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One in each section, all on one page."""
    names = {section: f"harmonic{number}" for number, section in enumerate(Section)}
    for section, name in names.items():
        text = STATISTIC.replace("Section.ANSWER", f"Section.{section.name}").replace('"harmonic"', f'"{name}"')
        row = f"HarmonicMean{section.name}"  # a row's class names its statistic
        (folder / statistics.__name__ / f"{name}.py").write_text(text.replace("HarmonicMean", row), encoding="utf-8")
    page, _, _ = reported(made.store(tmp_path), tmp_path, capsys)
    for section in Section:
        anchor = "effects" if section is Section.ANSWER else section.value  # the answer itself is one table
        inside = page.partition(f'<section id="{anchor}"')[2].partition("</section>")[0]
        assert f'id="table-{names[section]}"' in inside, section


def test_the_reference_is_out_of_date_until_it_has_the_new_numbers(folder: Path) -> None:
    assert docs.out_of_date(ROOT) == []
    add_statistic(folder)
    add_response(folder)
    forget()
    assert "docs/reference/numbers.md" in docs.out_of_date(ROOT)
    text = "".join(numbers.page(name) for name in numbers.PAGES)
    assert "### `harmonic`" in text
    assert "| `harmonic_mean` | Reciprocal of the mean of reciprocals. | in the unit of column `unit` |" in text
    assert "| `service_ms_max` | Longest time from the sending of an operation to its answer. | ms |" in text


def test_a_response_is_one_file(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = made.store(tmp_path / "old")
    add_response(folder)
    forget()
    store = made.store(tmp_path)
    records = open_store(store).trials()
    assert all((record.responses.of("service_ms_max") or 0) > 0.5 for record in records)
    page, tables, found = reported(store, tmp_path, capsys)
    rows = pl.read_csv(tables / "summary.csv").filter(response="service_ms_max")
    assert rows["unit"].unique().to_list() == ["ms"]
    assert rows.height == 2
    assert any("service_ms_max" in row for row in found["summary"]["rows"])
    assert "service max" in page
    meaning = "Longest time from the sending of an operation to its answer."
    assert re.search(rf"<dt>[^<]*longest service time[^<]*</dt><dd>{meaning}</dd>", page)
    assert verification(open_store(store)).sound
    earlier = open_store(old).trials()
    assert all(record.responses.of("service_ms_max") is None for record in earlier)
    assert verification(open_store(old)).sound, (
        "a store that was measured before has no such response, which is no difference"
    )


def test_a_response_that_was_changed_is_found(folder: Path, tmp_path: Path) -> None:
    add_response(folder)
    forget()
    store = made.store(tmp_path)
    path = next(store.rglob(layout.TRIAL_JSON))
    record = TrialRecord.model_validate_json(path.read_text(encoding="utf-8"))
    changed = record.responses.model_copy(update={"service_ms_max": 1234.5})
    path.write_text(record.model_copy(update={"responses": changed}).model_dump_json(), encoding="utf-8")
    assert any("service_ms_max" in one.words() for one in verification(open_store(store)).findings)


def test_a_study_may_ask_for_the_new_response(folder: Path) -> None:
    asked = made.STUDY + '[analysis]\nresponse = "service_ms_max"\n'
    with pytest.raises(StudyError, match=r"not allowed; did you mean 'service_ms_mean'"):
        made.study(asked)
    add_response(folder)
    forget()
    assert made.study(asked).analysis.response == "service_ms_max"
    assert "service_ms_max" in schema.text()


def test_a_record_keeps_its_form(tmp_path: Path) -> None:
    path = next(made.store(tmp_path).rglob(layout.TRIAL_JSON))
    text = path.read_text(encoding="utf-8")
    told = json.loads(text)["responses"]
    assert list(told) == [name for name, defined in responses.every().items() if defined.source == "records"]
    assert json.loads(TrialRecord.model_validate_json(text).model_dump_json())["responses"] == told


def test_two_of_one_name_are_refused(folder: Path) -> None:
    add_statistic(folder, STATISTIC.replace('name="harmonic"', 'name="summary"'))
    forget()
    with pytest.raises(ValueError, match="two statistics have summary"):
        statistics.every()


def test_a_column_without_a_meaning_or_a_unit_is_refused(folder: Path) -> None:
    from steelyard.analysis.row import Row, columns_of

    class Bare(Row):
        n: int

    class Unitless(Row):
        n: float
        """A number."""

    with pytest.raises(ValueError, match="what the column means"):
        columns_of(Bare)
    with pytest.raises(ValueError, match="needs a unit"):
        columns_of(Unitless)


def test_every_reason_says_what_is_measured_and_names_a_limit_that_there_is() -> None:
    limits = made.study().limits
    for kind in ReasonKind:
        assert kind.about.measured
        assert not kind.about.limit or hasattr(limits, kind.about.limit)
    assert ReasonKind("a probe gap") is ReasonKind.PROBE_GAP
