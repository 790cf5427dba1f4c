"""Design notes: limits of an allowed plan that its author should know, printed by `check` and in the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.format import count, duration
from steelyard.judging import load_response
from steelyard.judging.background_load import INTERVAL_S, LEAST_READINGS
from steelyard.judging.design import Treatment
from steelyard.judging.fractional_design import Fraction
from steelyard.judging.t_interval import FEWEST_STARTS
from steelyard.model.named_level import level_key
from steelyard.model.plan import Plan
from steelyard.model.study import Study
from steelyard.plan.expand import determines
from steelyard.plan.start_order import MOST_SHARE, share_of_places
from steelyard.plugins.find import Plugins
from steelyard.study.levels import unused
from steelyard.study.treatments import treatments_and_fraction

LEAST_SIZES_FOR_LAWS = 5
MOST_ALIASES = 20


def warnings(study: Study, plan: Plan, plugins: Plugins | None = None) -> tuple[str, ...]:
    """One sentence for each limitation of the design."""
    treatments, fraction = treatments_and_fraction(study, plugins)
    return (
        *_told_time(study, treatments),
        *_unseen_programs(study, plan),
        *_filled_later(plan),
        *_aliases(fraction),
        *_one_level(plan),
        *_few(study, plan),
        *_order(study, plan),
        *_entangled(plan, treatments),
        *_unused_levels(study, treatments),
    )


def _told_time(study: Study, treatments: Sequence[Treatment]) -> Iterator[str]:
    """A sentence where trials last as long as the study says, and that is the response."""
    if sentence := load_response.told_time(study, treatments):
        yield f"{sentence[0].lower()}{sentence[1:]}"


def _unseen_programs(study: Study, plan: Plan) -> Iterator[str]:
    """A sentence where trials are too short to see what other programs do meanwhile."""
    least_s = (LEAST_READINGS + 1) * INTERVAL_S
    lengths_s = [trial.settings.load.measured_s for trial in plan.trials]
    short = [length_s for length_s in lengths_s if length_s is not None and length_s < least_s]
    if short and study.limits.background_cpu_fraction < 1:
        yield (
            f"background load may stay unknown in {len(short):,} of {count(len(plan.trials), 'trial')}, which measure "
            f"{duration(min(short))}: it needs {LEAST_READINGS} whole seconds; load.duration_s = {least_s:g} or more "
            "lets verdicts see other programs"
        )


def _filled_later(plan: Plan) -> Iterator[str]:
    """A sentence where tables are filled before each trial, and rates of disks are lifted for the first one only."""
    if any(trial.settings.data.state == "reload" and trial.settings.node.disks_from_warm for trial in plan.trials):
        yield (
            'node.disk_rates_from = "warm" lifts the rates of disks for the first fill of a start only: '
            'data.state = "reload" refills the tables, at these rates, before each further trial'
        )


def _unused_levels(study: Study, treatments: Sequence[Treatment]) -> Iterator[str]:
    """Named levels that are defined and belong to no treatment."""
    if left := unused(study, treatments):
        yield f"defined under [levels], but in no treatment: {', '.join(left)}"


def _aliases(fraction: Fraction | None) -> Iterator[str]:
    """Aliases of a fractional design, one sentence each."""
    if fraction is None:
        return
    sentences = fraction.sentences()
    yield (
        f"a fraction, 1 in {2 ** len(fraction.generators)} of the combinations of {len(fraction.factors)} factors of "
        f"two levels, resolution {fraction.resolution}: "
        f"{sentences[0] if sentences else 'no short effect is confounded'}"
    )
    yield from sentences[1:MOST_ALIASES]
    if len(sentences) > MOST_ALIASES:
        yield f"and {len(sentences) - MOST_ALIASES} more that cannot be separated (--json lists them)"


def _one_level(plan: Plan) -> Iterator[str]:
    """Factors that do not vary."""
    for factor, levels in plan.factors.items():
        if len(levels) == 1:
            yield f"the factor {factor} has one level, {level_key(levels[0])}: it is set, and nothing is compared by it"


def _few(study: Study, plan: Plan) -> Iterator[str]:
    varied = [factor for factor, levels in plan.factors.items() if len(levels) > 1]
    for factor in (name for name in varied if name in plan.hard):
        if study.design.starts == 1:
            yield (
                f"no error term for {factor}: each of its levels is started once, so all its trials are repeated "
                "measures of one cluster; give design.starts = 3 or more"
            )
        elif study.design.starts < FEWEST_STARTS:
            yield (
                f"no interval and no verdict for {factor}: each of its levels has {study.design.starts} starts, and "
                f"an interval needs {FEWEST_STARTS}; set design.starts to 3 or more"
            )
    kept = study.design.trials - study.analysis.warm_up_trials
    if kept == 1 and any(factor not in plan.hard for factor in varied):
        yield "one trial of each treatment is kept within a start: its spread within a start cannot be seen"
    sizes = plan.factors.get("nodes", ())
    if 1 < len(sizes) < LEAST_SIZES_FOR_LAWS:
        yield (
            f"{len(sizes)} cluster sizes: enough for a slope, too few for a scalability law "
            f"({LEAST_SIZES_FOR_LAWS} or more)"
        )


def _order(study: Study, plan: Plan) -> Iterator[str]:
    if study.design.order == "published":
        yield (
            "published order: combinations come as listed in each block, and the trials of a treatment follow one "
            "another within a start, so drift is confounded with treatment; "
            'order = "blocks" would separate them'
        )
    for factor, share in share_of_places(plan).items():
        if study.design.starts > 1 and share > MOST_SHARE:
            yield (
                f"{factor} varies with the place of a start within its block: its levels account for {share:.0%} of "
                "the differences in place, so what an earlier start leaves behind would look like an effect of "
                f"{factor}"
            )
    if study.data.state == "continue":
        yield "data continues: what a trial writes is there for the next one, so trials of a start are not alike"


def _entangled(plan: Plan, treatments: Sequence[Treatment]) -> Iterator[str]:
    varied = [factor for factor, levels in plan.factors.items() if len(levels) > 1]
    for first in varied:
        for second in varied:
            if first != second and determines(first, second, treatments):
                yield f"{first} fixes {second}: the effect of {second} is seen only between levels of {first}"
