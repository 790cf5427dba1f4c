"""Comparison of two stores, or of two treatments of one: ratios with intervals, verdicts, confounders."""

from __future__ import annotations

import difflib
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from steelyard.analysis import dilated
from steelyard.analysis.comparisons import confounders, identical_systems
from steelyard.analysis.comparisons.confounders import Difference
from steelyard.analysis.comparisons.two_sided import Contrast, Pairing, Side, contrasts, pair
from steelyard.analysis.inference.multiplicity import adjusted
from steelyard.analysis.statistics import noise_floor
from steelyard.analysis.statistics.trend import Trend, trends
from steelyard.analysis.treatments import label
from steelyard.format import listed
from steelyard.heavy import pl
from steelyard.judging.looks import later
from steelyard.model.client import as_client, held
from steelyard.model.errors import StudyError
from steelyard.model.named_level import Level
from steelyard.model.responses import SHORT_NAMES
from steelyard.model.responses import every as every_response
from steelyard.model.study import Study
from steelyard.reading.opened import Opened
from steelyard.shown_text import visible
from steelyard.store.looks import number_of

MOST_NEAR = 4
"""Names that an unknown one is answered with."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Side a against side b, cell by cell."""

    a: Side
    b: Side
    response: str
    margin_percent: float | None
    pairing: Pairing
    """The cells of both sides, and those of one side only."""
    contrasts: tuple[Contrast, ...]
    """One per cell in which both sides have values."""
    differences: tuple[Difference, ...]
    """Differences between the sides: what was asked for, and settings, versions, machines, time."""
    floors: tuple[identical_systems.Floors, identical_systems.Floors]
    """The noise floor of each side."""
    floor_sentences: tuple[str, ...]
    missing: tuple[str, ...]
    """Cells that only one side has, and trials that are in both stores."""
    limits: tuple[str, ...]
    """What limits the answer, most important first: the caveats of both studies, as their pages have them."""
    designs: tuple[str, ...]
    """`10 randomised blocks, seed 7`, of each study."""

    @property
    def looks(self) -> tuple[str, ...]:
        """Which look this is, and whether a study is unfinished, in sentences; empty at the only look of finished
        studies."""
        frames = {id(side.frame): side for side in (self.a, self.b)}
        named = [(side.name, side.frame.look.sentence) for side in frames.values() if side.frame.look.sentence]
        alike = len({sentence for _, sentence in named}) == 1
        return (named[0][1],) if alike and len(named) == len(frames) else tuple(": ".join(each) for each in named)

    def __repr__(self) -> str:
        return f"Comparison({self.a.name!r}, {self.b.name!r}, {self.response}, {len(self.contrasts)} cells)"

    def _repr_html_(self) -> str:
        """A comparison alone in a cell of a notebook: its table, warnings, and what limits it."""
        limits = f"<p>What limits this answer:</p>{html_list(self.limits)}" if self.limits else ""
        return f"{self.table._repr_html_()}{html_list([one.sentence for one in self.contrasts])}{limits}"

    @property
    def table(self) -> pl.DataFrame:
        """One row per cell: its levels, the values of both sides in `unit`, the change in percent with its interval,
        the verdict, and p after Holm's correction."""
        rows = [
            {
                **{name: str(level) for name, level in one.cell.items()}, self.a.name: one.mean_a.value,
                self.b.name: one.mean_b.value, "unit": one.unit, "change_percent": one.change_percent.value,
                "low": one.change_percent.low, "high": one.change_percent.high, "verdict": one.verdict,
                "p_holm": one.p_holm,
            }
            for one in self.contrasts
        ]  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Differences that make the sides incomparable, and that a side is dilated, in sentences."""
        known = {side.name: dilated.sentence(dilated.dilations_of_frame(side.frame)) for side in (self.a, self.b)}
        stretched = [f"{name}: {sentence}" for name, sentence in known.items() if sentence]
        return (*confounders.warnings(self.differences), *stretched)


def html_list(texts: Sequence[str]) -> str:
    """Texts as a list in HTML; empty for none."""
    items = "".join(f"<li>{html.escape(visible(text))}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def at_one_look(first: Opened, second: Opened) -> tuple[Opened, Opened]:
    """Both stores at the look that they give together, with its confidence: see `store.looks.number_of`."""
    number = number_of(*{one.folder: one.store.looks for one in (first, second)}.values())
    first, second = (
        one if one.number == number else replace(one, study=later(one.study, number - one.number), number=number)
        for one in (first, second)
    )
    return first, second


def compare(
    first: Opened,
    second: Opened,
    *,
    a: Mapping[str, Level] | Sequence[str] = (),
    b: Mapping[str, Level] | Sequence[str] = (),
    response: str | None = None,
    margin_percent: float | None = None,
) -> Comparison:
    """Compare `first` with `second`, which may be the same store, by one response.

    `a`, `b`: levels that choose the trials of each side, as a mapping or as texts `nodes=1`. `response`: the study's
    own where None. `margin_percent`: changes that are counted as equivalent; the study's own where None. Raises
    StudyError for what cannot be compared.
    """
    name = response_named(response, first.study)
    return compare_each(first, second, a=a, b=b, responses=(name,), margin_percent=margin_percent)[0]


def compare_each(
    first: Opened,
    second: Opened,
    *,
    a: Mapping[str, Level] | Sequence[str] = (),
    b: Mapping[str, Level] | Sequence[str] = (),
    responses: Sequence[str] = (),
    margin_percent: float | None = None,
) -> tuple[Comparison, ...]:
    """A comparison for each response; the p-values of all their contrasts are one family of Holm's correction.

    `responses`: full or short names; all that the first study names, the main one first, if empty. Otherwise as
    `compare`. Raises StudyError, naming the response, for one that no cell has on both sides.
    """
    compared = paired_cells(first, second, a=a, b=b, responses=responses, margin_percent=margin_percent)
    empty = next((comparison for comparison in compared if not comparison.contrasts), None)
    if empty is not None:
        raise StudyError(
            f"no cell has valid trials with a value of {empty.response} on both sides, and one other than 0 on side a",
            "`steelyard status STORE` says what became of the trials; a change from 0 has no ratio",
        )
    return compared


def paired_cells(
    first: Opened,
    second: Opened,
    *,
    a: Mapping[str, Level] | Sequence[str] = (),
    b: Mapping[str, Level] | Sequence[str] = (),
    responses: Sequence[str] = (),
    margin_percent: float | None = None,
) -> tuple[Comparison, ...]:
    """The same as `compare_each`; a cell in which a side has no value has no contrast, so there may be none.
    Raises StudyError where the sides have no cell in common."""
    analysis = first.study.analysis
    first, second = at_one_look(first, second)
    names = tuple(response_named(name, first.study) for name in responses) or analysis.every_response
    margin_percent = analysis.equivalence_margin_percent if margin_percent is None else margin_percent
    sides = _sides(first, second, _texts(a), _texts(b))
    compared = [_compared(first, second, sides, name, margin_percent) for name in dict.fromkeys(names)]
    corrected = iter(adjusted([contrast for one in compared for contrast in one.contrasts]))
    return tuple(replace(one, contrasts=tuple(next(corrected) for _ in one.contrasts)) for one in compared)


def _compared(
    first: Opened, second: Opened, sides: tuple[Side, Side], name: str, margin_percent: float | None
) -> Comparison:
    """Both sides by one response, without Holm's correction."""
    confidence = first.study.analysis.confidence
    side_a, side_b = (
        replace(side, trends=_trends(opened, side, name, confidence))
        for opened, side in zip((first, second), sides, strict=True)
    )
    pairing = pair(side_a, side_b)
    floors = _floors(first, side_a, confidence), _floors(second, side_b, confidence)
    compared = contrasts(side_a, side_b, pairing, name, confidence, margin_percent, floors)
    sentences = dict.fromkeys(
        f"{opened.study.study.name}: {_floor_sentence(opened, side, name, floor)}"
        for opened, side, floor in ((first, side_a, floors[0]), (second, side_b, floors[1]))
    )
    return Comparison(
        a=side_a,
        b=side_b,
        response=name,
        margin_percent=margin_percent,
        pairing=pairing,
        contrasts=compared,
        differences=_differences(first, second, compared),
        floors=floors,
        floor_sentences=tuple(sentences),
        missing=tuple(_missing(first, second, side_a, side_b, pairing)),
        limits=limits_of(first, second),
        designs=tuple(_designs(first, second, side_a, side_b)),
    )


def levels(texts: Sequence[str], factors: Mapping[str, Sequence[Level]], option: str) -> dict[str, Level]:
    """`nodes=1` or `nodes=1,workload=ycsb-a`, may be repeated. Raises StudyError with the known names."""
    chosen: dict[str, Level] = {}
    for text in (part for repeated in texts for part in repeated.split(",")):
        name, equals, wanted = text.partition("=")
        name, wanted = held(name.strip()), wanted.strip()
        if not equals:
            raise StudyError(f"{option} {text}", f"FACTOR=LEVEL, such as {option} nodes=3", key=option, read=text)
        if name not in factors:
            near = difflib.get_close_matches(name, factors, n=1)
            hint = f"did you mean {as_client(near[0])!r}? " if near else ""
            raise StudyError(
                f"{option} {text}: no such factor",
                f"{hint}there are: {as_client(', '.join(factors)) or 'none; nothing varies in this store'}",
                key=option,
            )
        level = next((known for known in factors[name] if is_called(known, wanted)), None)
        if level is None:
            known = ", ".join(str(known) for known in factors[name])
            raise StudyError(
                f"{option} {text}: no such level", f"{as_client(name)} has: {known}", key=option, read=wanted
            )
        fix(chosen, {name: level}, text, option)
    return chosen


def fix(chosen: dict[str, Level], added: Mapping[str, Level], text: str, option: str) -> None:
    """Add the levels that a text asks for. Raises StudyError if a factor is fixed to another level already."""
    for name, level in added.items():
        if chosen.setdefault(name, level) != level:
            raise StudyError(
                f"{option} {text}: {as_client(name)} is {chosen[name]} already", "one level of a factor", key=option
            )


def is_called(level: Level, wanted: str) -> bool:
    """Whether a level is written so, in any case of letters; of `main=builds/main` its label is enough, of 5.0 a 5."""
    if isinstance(level, float) and wanted.replace(".", "", 1).isdigit():
        return float(wanted) == level
    text = str(level).casefold()
    return wanted.casefold() in (text, text.partition("=")[0])


def response_named(name: str | None, study: Study) -> str:
    """The full name of a response; the study's own where None. Raises StudyError with all names."""
    if name is None:
        return study.analysis.response
    known, full = every_response(), SHORT_NAMES.get(name, name)
    if full in known:
        return full
    near = difflib.get_close_matches(name, [*SHORT_NAMES, *known], n=MOST_NEAR)
    hint = f"did you mean {listed(near, 'or')}? " if near else ""
    raise StudyError(
        f"--response {name}: unknown response",
        f"{hint}short names: {', '.join(SHORT_NAMES)}; docs/reference/numbers.md defines all of them",
        key="--response",
    )


def _texts(chosen: Mapping[str, Level] | Sequence[str]) -> Sequence[str]:
    if isinstance(chosen, Mapping):
        return [f"{name}={level}" for name, level in chosen.items()]
    if isinstance(chosen, str):
        return [chosen]
    return chosen


def _missing(first: Opened, second: Opened, a: Side, b: Side, pairing: Pairing) -> list[str]:
    """Cells that only one side has, and a remark on trials in both stores: a copy is not a second measurement."""
    missing = [f"only {a.name} has {label(cell)}" for cell in pairing.only_a]
    missing += [f"only {b.name} has {label(cell)}" for cell in pairing.only_b]
    if first.folder != second.folder:
        keys = ({(*record.key, record.begun_s) for record in side.records} for side in (first, second))
        same = len(next(keys) & next(keys))
        what = "trial is" if same == 1 else "trials are"
        if same:
            missing.append(f"{same} {what} in both stores and counted as independent: they cannot differ")
    return missing


def limits_of(first: Opened, second: Opened) -> tuple[str, ...]:
    """What limits an answer from these studies: the caveats of their pages, with the study's name if the other one does
    not have it."""
    of_first, of_second = first.results.caveats, second.results.caveats
    both = dict.fromkeys(text for text in of_first if text in of_second)
    apart = [
        f"{opened.study.study.name}: {text}"
        for opened, caveats in ((first, of_first), (second, of_second))
        for text in caveats
        if text not in both
    ]
    return tuple(dict.fromkeys((*both, *apart)))


def _trends(opened: Opened, side: Side, response: str, confidence: float) -> tuple[Trend, ...]:
    """Trends of the whole study, as its report has them: its tests are one family."""
    return trends(side.frame, response, confidence, opened.seconds_of(response))


def _floors(opened: Opened, side: Side, confidence: float) -> identical_systems.Floors:
    return identical_systems.floors_of(side.frame, opened.floor, confidence, opened.study)


def _floor_sentence(opened: Opened, side: Side, response: str, floors: identical_systems.Floors) -> str:
    differing = identical_systems.settings_unlike(opened.records, floors)
    return noise_floor.noise_floor(side.frame, response, floors, opened.study, differing).sentence


def _designs(first: Opened, second: Opened, a: Side, b: Side) -> list[str]:
    designs = []
    for opened, side in ((first, a), (second, b)):
        blocks, design = side.frame.data["block"].n_unique(), opened.study.design
        order = "randomised" if design.order == "blocks" else "published-order"
        designs.append(f"{blocks} {order} block{'' if blocks == 1 else 's'}, seed {design.seed}")
    return list(dict.fromkeys(designs))


def _sides(first: Opened, second: Opened, texts_a: Sequence[str], texts_b: Sequence[str]) -> tuple[Side, Side]:
    """Both sides with distinct names. Raises StudyError where both are the same trials."""
    frame_a = replace(first.frame, look=first.look)
    alone = first.folder == second.folder
    frame_b = frame_a if alone else replace(second.frame, look=second.look)
    names = dict.fromkeys([*frame_a.names, *frame_b.names])
    fixed_a = levels(texts_a, frame_a.factors, "--a")
    fixed_b = levels(texts_b, frame_b.factors, "--b")
    if alone and (fixed_a == fixed_b or not fixed_a or not fixed_b):
        several = {name: known for name, known in frame_a.factors.items() if len(known) > 1}
        name, known = next(iter(several.items()), (next(iter(names), "FACTOR"), ()))
        listed = "; ".join(f"{name}: {', '.join(str(level) for level in known)}" for name, known in several.items())
        ends = (known[0], known[-1]) if known else ("LEVEL", "LEVEL")
        missing = " and ".join(f"no {name}" for name, fixed in (("--a", fixed_a), ("--b", fixed_b)) if not fixed)
        raise StudyError(
            f"{missing}: within one store, say which treatment is which"
            if missing
            else "both sides are the same trials: say which treatment is which",
            f"such as --a {name}={ends[0]} --b {name}={ends[1]}; factors: {listed or 'none varies'}",
        )
    if alone:
        return Side(label(fixed_a), frame_a, fixed_a), Side(label(fixed_b), frame_a, fixed_b)
    called = [_called(opened, fixed) for opened, fixed in ((first, fixed_a), (second, fixed_b))]
    folders = [first.folder, second.folder]
    if called[0] == called[1]:
        called = ["/".join(folder.parts[-2:]) for folder in folders]
    if called[0] == called[1]:
        called = [str(folder) for folder in folders]
    return Side(called[0], frame_a, fixed_a), Side(called[1], frame_b, fixed_b)


def _called(opened: Opened, fixed: dict[str, Level]) -> str:
    return opened.study.study.name + (f" ({label(fixed)})" if fixed else "")


def _differences(first: Opened, second: Opened, compared: Sequence[Contrast]) -> tuple[Difference, ...]:
    asked = {
        name
        for contrast in compared
        for name in {**contrast.a, **contrast.b}
        if contrast.a.get(name) != contrast.b.get(name)
    }
    asked |= {field for opened in (first, second) for name in asked for field in opened.study.fields_under(name)}
    sides = []
    for opened, treatments in (
        (first, [contrast.a for contrast in compared]),
        (second, [contrast.b for contrast in compared]),
    ):
        records = [
            record for record in opened.records if record.verdict.outcome == "valid" and record.treatment in treatments
        ]
        starts = {record.start: record for record in reversed(records)}
        sides.append((records, [opened.store.facts(record) for record in starts.values()]))
    (records_a, facts_a), (records_b, facts_b) = sides
    return confounders.apart(records_a, records_b, facts_a, facts_b, asked)
