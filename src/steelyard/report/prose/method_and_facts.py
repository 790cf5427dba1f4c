"""Methods section in prose, and machine facts as rows, ready for a paper."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import steelyard
from steelyard.analysis import dilated
from steelyard.analysis.narrative import machines
from steelyard.analysis.narrative.carried import limits_of, procedure
from steelyard.analysis.results import Results
from steelyard.analysis.statistics.derived_threshold import DerivedThreshold
from steelyard.analysis.statistics.main_effect import MainEffect
from steelyard.analysis.statistics.trials import Point
from steelyard.format import count, duration, listed, moment, number
from steelyard.judging.stopping import SIMULATED_CONFIDENCE, coverage_percent
from steelyard.model.facts import MACHINE, of_machines, of_systems, role_of
from steelyard.model.load import Load, Offered
from steelyard.model.plan import Plan
from steelyard.model.responses import label_of
from steelyard.model.responses.capacity import CAPACITY
from steelyard.model.study import ALIASES, Limits, Study
from steelyard.model.trial import ClockOffset, TrialRecord
from steelyard.model.verdict_reasons import ReasonKind
from steelyard.progress.reason_words import other_limits
from steelyard.reading.report_input import ReportInput
from steelyard.report.prose import activity_words, client_words

MS_PER_S: Final = 1000
SHARED_WORDS: Final = {
    "cpu": "processor", "memory": "memory", "disk": "disk", "network": "network", "kernel": "kernel", "clock": "clock",
}  # fmt: skip
HARDWARE: Final = {
    "cpu_model": "processor", "cores": "cores", "memory_mb": "memory (MB)", "kernel": "kernel",
    "virtualisation": "virtualisation",
    "vm_accelerator": "virtual machine by", "java": "Java", "disk": "disk", "architecture": "architecture",
}  # fmt: skip
"""Facts that readers of a paper need, with their names in the text."""
LINE: Final = 100
NO_FACTS: Final[Mapping[str, Mapping[str, str]]] = {}


@dataclass(frozen=True)
class Fact:
    """One fact and the nodes that it holds for (empty: all nodes, or the machine)."""

    name: str
    value: str
    nodes: str = ""


def paragraph(page_input: ReportInput) -> str:
    """The whole text: paragraphs with lines of at most 100 characters, ready for a methods section."""
    paragraphs = [
        *method(page_input.study, page_input.plan, page_input.records, page_input.results, page_input.facts),
        _named_levels(page_input.study),
        _hardware(page_input.machines, "machine") or _hardware(page_input.facts, "node"),
        _settings(page_input),
        _artefacts(page_input),
    ]
    return "\n\n".join(textwrap.fill(text, LINE, break_on_hyphens=False) for text in paragraphs if text) + "\n"


def _named_levels(study: Study) -> str:
    stated = [
        f"{factor} {level}{f' ({number})' if (number := named.number_in_words()) else ''}: {named.fields_in_words()}"
        for factor, levels in study.tried.items()
        for level in levels
        if (named := study.named_level(factor, level)) is not None
    ]
    return f"What each named level sets: {'; '.join(stated)}." if stated else ""


def _hardware(facts: Mapping[str, Mapping[str, str]], what: str) -> str:
    groups: dict[str, list[str]] = {}
    for name, node_facts in of_machines(facts).items():
        known = [f"{called} {node_facts[fact]}" for fact, called in HARDWARE.items() if node_facts.get(fact)]
        if known:
            groups.setdefault(", ".join(known), []).append("the machine" if name == MACHINE else f"{what} {name}")
    machines = [f"{listed(sorted(names))}: {text}" for text, names in groups.items()]
    return f"Hardware and kernel, as the nodes report them: {'; '.join(machines)}." if machines else ""


def _settings(page_input: ReportInput) -> str:
    settings = "; ".join(f"{fact.name} = {fact.value}" for fact in asked(page_input.study))
    return f"Settings that differ from the laboratory's defaults: {settings}." if settings else ""


def _artefacts(page_input: ReportInput) -> str:
    sealed = sum(bool(record.checksums) for record in page_input.records)
    return (
        f"The order was drawn with seed {page_input.study.design.seed}; each trial's operations were drawn with a seed "
        f"that its record keeps. The store holds the raw histograms, samples and facts of {count(sealed, 'attempt')} "
        f"with their SHA-256 checksums, and the study file; tables and figures were made by Steelyard "
        f"{steelyard.__version__} from it."
    )


def method(
    study: Study,
    plan: Plan | None,
    records: Sequence[TrialRecord],
    results: Results,
    facts: Mapping[str, Mapping[str, str]] = NO_FACTS,
) -> tuple[str, ...]:
    """Paragraphs: system and data, load, design and order, exclusions, analysis, dates and versions."""
    return tuple(
        paragraph
        for paragraph in (
            _system(study, records),
            _load(study, client_words.consistency(study, facts)),
            _design(study, plan, results),
            _validity(study, records, results),
            _analysis(study, results),
            _circumstances(records),
        )
        if paragraph
    )


def _system(study: Study, records: Sequence[TrialRecord]) -> str:
    version = next((record.versions["system"] for record in records if "system" in record.versions), "")
    names = [str(name) for name in study.values_of(("system", "system.name"), study.system.name)]
    named = version if study.system.name in version else f"{listed(names)} {version}".strip()
    systems = "system under test was" if len(names) == 1 else "systems under test were"
    nodes = study.values_of(("nodes", "site.nodes"), study.site.nodes)
    sizes = listed([str(level) for level in nodes])
    plural = "node" if list(nodes) == [1] else "nodes"
    sentence = f"The {systems} {named} on clusters of {sizes} {plural}, provided by the site “{study.site.name}”."
    if study.load_site.name:
        sentence += f" The load was driven from {_load_nodes(study)} of the site “{study.load_site.name}”."
    sentence += activity_words.changes_of_size(records) + activity_words.disruptions(records)
    shares = shared(records)
    if shares:
        sentence += f" All nodes shared {shares}."
    sentence += "".join(f" {text}" for text in (*_limits_in_force(records), _dilation(study)) if text)
    sentence += (
        " "
        + {
            "restore": "Each trial started from the same snapshot of the filled tables."
            if any(record.data == "restored" for record in records)
            else "Each trial found the tables as they were filled: after writes they were emptied and filled again.",
            "reload": "The tables were filled again for each trial.",
            "truncate": "Each trial started from empty tables.",
            "continue": (
                "Each start began from the snapshot of the filled tables; trials within a start followed one "
                "another on the data that the one before had left."
            ),
        }[study.data.state]
    )
    return sentence


def _limits_in_force(records: Sequence[TrialRecord]) -> list[str]:
    """A sentence on limits of processors, and one on those of disks, where trials have any."""
    nodes = [record.settings.node for record in records]
    warmed_up = any(record.server_warm_up for record in records)
    quotas = [node.cpus for node in nodes if node.cpus is not None]
    amounts = listed([f"{cpus:g}" for cpus in sorted(set(quotas))], "or")
    processors = f"Processor limits ({amounts} processors for each database node)"
    slow_disks = [node for node in nodes if node.slow_disk]
    return [
        *_sentence(processors, [node.cpus_from for node in nodes if node.cpus is not None], len(nodes), warmed_up),
        *_sentence(
            "Limits of the rates of each database node's disk",
            [node.disk_rates_from for node in slow_disks],
            len(nodes),
            warmed_up,
        ),
    ]


def _sentence(limits: str, begin: Sequence[str | None], attempts: int, warmed_up: bool) -> list[str]:
    """`LIMITS were in force in each start from ... on.`; nothing where no attempt has them. `begin`: `warm`, `start` or
    none, for each attempt that has."""
    if not begin:
        return []
    when = [
        f"once its cluster was ready{' and warm' if warmed_up else ''}: nodes started and were filled without them"
        if since == "warm"
        else "from the lease of its nodes: also while they started, were filled and warmed up"
        for since in sorted({since or "start" for since in begin}, reverse=True)
    ]
    without = attempts - len(begin)
    rest = f"; {count(without, 'attempt')} had none" if without else ""
    return [f"{limits} were in force in each start {', or '.join(when)}{rest}."]


def _load_nodes(study: Study) -> str:
    numbers = study.values_of(("load_site.nodes",), study.load_site.nodes)
    return f"{listed([str(number) for number in numbers])} {'node' if list(numbers) == [1] else 'nodes'}"


def _dilation(study: Study) -> str:
    return dilated.sentence(dilated.dilations_of_study(study))


def shared(records: Sequence[TrialRecord]) -> str:
    """Resources that the nodes share, in words."""
    known = list(SHARED_WORDS)
    shares = {share for record in records for share in record.shares}
    ordered = sorted(shares, key=lambda share: (known.index(share) if share in known else len(known), share))
    return listed([SHARED_WORDS.get(share, share) for share in ordered])


def _load(study: Study, consistency: str) -> str:
    load = study.load
    amount = (
        " or ".join(
            text
            for text in (
                f"{load.operations:,} operations" if load.operations else "",
                f"{duration(load.measured_s)}" if load.measured_s else "",
            )
            if text
        )
        or "the whole trace"
    )
    amount = "a search" if load.schedule == "search" else amount
    if load.phases:
        phases = (f"“{phase.name}” for {duration(phase.duration_s)}: {_how(load, phase)}" for phase in load.phases)
        how = f"{len(load.phases)} phases without a pause: {'; '.join(phases)}"
    else:
        how = _how(load, load)
    workloads = study.values_of(("workload", "workload.name"), study.workload.name)
    kind_word = "workload" if len(workloads) == 1 else "workloads"
    settings = {name: value for name, value in study.workload.settings.items() if name != "name"}
    data = (
        f" ({', '.join(f'{_with_spaces(name)} {_value(value)}' for name, value in settings.items())})"
        if settings
        else ""
    )
    warm = f" after {duration(load.warm_up_s)} of the same load that is not counted" if load.warm_up_s else ""
    return (
        f"One trial is {amount} of {kind_word} {listed([str(level) for level in workloads])}{data}, driven by the "
        f"engine “{load.engine}” "
        f"in {how}{warm}. {f'{consistency}; an' if consistency else 'An'} operation "
        f"without an answer after {load.timeout_ms:,} ms counts as an error."
    )


def _how(load: Load, offered: Offered) -> str:
    """Schedule of the operations of one phase, in words."""
    threads = load.threads_of(offered)
    operations = count(threads, "operation")
    if offered.schedule == "closed":
        why = "so that one client waits for each answer" if threads == 1 else "which measures saturation"
        return (
            f"a closed loop with {operations} in flight: each next operation is sent when the last is answered, {why}"
        )
    arrivals = ", Poisson arrivals" if offered.arrivals == "poisson" else ""
    if offered.schedule == "search":
        rules = load.search_rules()
        return f"an open loop (one rate after another{arrivals}, at most {operations} in flight) {procedure(rules)}"
    rate = f"{offered.rate_per_s:,g} operations per second" if offered.rate_per_s else ""
    if offered.capacity_fraction:
        rate = f"{offered.capacity_fraction:.0%} of capacity, by a closed loop in each start,"
    match offered.schedule:
        case "constant":
            kind = f"a constant rate, {rate} offered"
        case "poisson":
            kind = f"Poisson arrivals, {rate} offered"
        case "ramp":
            ends = f"from {offered.from_per_s:,g} to {offered.to_per_s:,g}"
            kind = f"{ends} operations per second within {offered.ramp_s:g} s"
        case "steps":
            rates = listed([f"{one:,g}" for one in offered.rates_per_s or ()])
            kind = f"steps of {offered.step_s:g} s at {rates} operations per second"
        case "sine":
            kind = (
                f"{offered.mean_per_s:,g} operations per second, swinging by {offered.amplitude_per_s:,g} "
                f"every {offered.period_s:g} s"
            )
        case _:
            fast = "" if offered.speed in (None, 1) else f", {offered.speed:g} times as fast"
            kind = f"at the time stamps of {offered.trace}{fast}"
    return f"an open loop ({kind}{arrivals}, at most {operations} in flight)"


def _with_spaces(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _design(study: Study, plan: Plan | None, results: Results) -> str:
    design = study.design
    kind = {
        "full-factorial": "a full factorial design",
        "fractional": "a fraction of a factorial design",
        "one-at-a-time": "a one-at-a-time design",
        "listed": "a listed set of treatments",
        "same": "a comparison of a treatment with itself, to measure noise,",
    }[design.kind]
    factors = listed(
        [f"{name} ({', '.join(str(level) for level in levels)})" for name, levels in results.factors.items()]
    )
    sentence = f"The study is {kind} over {factors}." if factors else "The study has a single treatment."
    confounded = [f"{one.factor} with {one.aliases}" for one in results.of(MainEffect) if one.aliases]
    if confounded:
        sentence += f" By design effects are confounded: {'; '.join(confounded)}."
    if results.hard:
        sentence += (
            f" Another level of {listed(list(results.hard), 'or')} needs a new cluster, so that it varies over "
            "starts, not "
            f"over trials (a split plot): each combination was planned for {count(design.starts, 'start')}, "
            f"with {count(design.trials, 'trial')} of each treatment within a start."
        )
    else:
        starts, trials = count(design.starts, "start"), count(design.trials, "trial")
        sentence += f" Each treatment was planned for {starts} with {trials} each."
    sentence += {
        "blocks": f" Starts ran in complete blocks, in an order balanced over blocks; trials were shuffled within "
        f"starts (seed {design.seed}).",
        "published": (
            " All trials of a treatment ran one after another, in the published order, so that drift and effect "
            "cannot be separated."
        ),
    }[design.order]
    if results.of(DerivedThreshold):
        sentence += (
            " Starts without a policy, whose trials gave a threshold, all ran before those that used it; order and "
            "blocks hold within each of these two phases."
        )
    if plan is not None:
        planned = len(plan.trials)
        sentence += f" The plan has {count(planned, 'trial')}."
    sentence += _until(results)
    if design.control is not None:
        when = ", in the second phase" if results.of(DerivedThreshold) else ""
        sentence += f" A control treatment ran once more in every block{when}."
    return sentence


def _until(results: Results) -> str:
    """The stopping rule, where and why the study ended, and the coverage of its intervals."""
    stopping = results.stopping
    if stopping is None:
        return ""
    rule = stopping.rule
    label = label_of(rule.response)
    hours = f", {rule.hours:g} hours at most" if rule.hours else ""
    text = (
        f" After each whole block, from {rule.least_starts} to {stopping.cap} starts{hours}, the study was to end once "
        f"{stopping.target} ({label}, Student's t over start means). It {stopping.sentence}."
    )
    if rule.confidence == SIMULATED_CONFIDENCE:
        text += (
            f" In simulations of this rule with this floor the intervals covered the truth in "
            f"{int(coverage_percent(rule.least_starts))}% or more of the studies."
        )
    return text


def _validity(study: Study, records: Sequence[TrialRecord], results: Results) -> str:
    lost = sum(record.verdict.outcome != "valid" for record in records)
    warm = sum(point.warm_up for point in results.of(Point))
    sentence = f"Of {count(results.trials, 'attempt')}, {results.used:,} {'is' if results.used == 1 else 'are'} used."
    if lost:
        sentence += f" {count(lost, 'attempt is', 'attempts are')} not valid and left out."
    if study.analysis.warm_up_trials:
        first = count(study.analysis.warm_up_trials, "trial").removeprefix("1 ")
        verb = "is" if study.analysis.warm_up_trials == 1 else "are"
        sentence += f" The first {first} of each treatment within a start {verb} dropped as warm-up, {warm} in all."
    sentence += f" A trial is invalid if {_clauses(study.limits, records)}."
    sentence += "".join(f" {other}." for other in other_limits(records, study.limits))
    notes = Counter(note for record in records for note in record.verdict.notes)
    for note, times in sorted(notes.items()):
        of = "" if times == len(records) else f"Of {times:,} of {count(len(records), 'attempt')}, "
        text = f"{of}{note}"
        sentence += f" {text[0].upper()}{text[1:]}."
    return sentence


def _clauses(limits: Limits, records: Sequence[TrialRecord]) -> str:
    fields = {name: _limit(name, value) for name, value in limits.model_dump().items()}
    by_program = any(record.moved_frames for record in records)
    kinds = [kind.about for kind in ReasonKind if kind.about.invalid_if and (by_program or not kind.about.of_link)]
    clauses = [about.invalid_if.format(**fields) for about in kinds]
    return f"{'; if '.join(clauses[:-1])}; or if {clauses[-1]}".replace("more than 0% of", "any of")


def _limit(name: str, value: float) -> str:
    if name.endswith("_fraction"):
        return f"{100 * value:g}%"
    return f"{value:g} {name.rpartition('_')[2]}"


def _analysis(study: Study, results: Results) -> str:
    return (
        f"The main response is {results.response_label}{_within(study)}. The unit of every estimate is the trial "
        "or the start, never the second or the request. "
        f"Intervals are at {100 * study.analysis.confidence:g}%. Percentiles of response time come from merged "
        "histograms, never from averaged percentiles."
    )


def _within(study: Study) -> str:
    """The limits of a search's response."""
    if study.load.schedule != "search" or study.analysis.response != CAPACITY:
        return ""
    return f", the highest rate {limits_of(study.load.search_rules())}"


def _circumstances(records: Sequence[TrialRecord]) -> str:
    if not records:
        return ""
    begun, ended = min(one.begun_s for one in records), max(one.ended_s or one.begun_s for one in records)
    versions: dict[str, set[str]] = {}
    for record in records:
        for name, version in record.versions.items():
            versions.setdefault(name, set()).add(version)
    mixed = [name for name, found in versions.items() if len(found) > 1]
    named = listed([_version(name, " and ".join(sorted(found))) for name, found in versions.items()])
    where = machines.in_words(records)
    sentence = f"Measured from {moment(begun)} to {moment(ended)} ({duration(ended - begun)}){where} with {named}."
    if mixed:
        sentence += f" The trials do not all have the same version of {listed(mixed)}."
    return f"{sentence}{_clocks(records)}"


def _clocks(records: Sequence[TrialRecord]) -> str:
    """Corrections of times from nodes with their own clocks; empty if there are none."""
    by_node: dict[str, list[ClockOffset]] = {}
    for record in records:
        for clock in record.clocks:
            by_node.setdefault(clock.node, []).append(clock)
    corrections = listed([f"{node} by {_span_of_offsets(clocks)}" for node, clocks in sorted(by_node.items())])
    if not corrections:
        return ""
    left_s = max(clock.worst_s for clocks in by_node.values() for clock in clocks)
    return (
        f" Times from nodes with their own clock were put on the conductor’s: {corrections}; the error left in "
        f"them is at most {number(MS_PER_S * left_s, digits=2)} ms."
    )


def _span_of_offsets(clocks: Sequence[ClockOffset]) -> str:
    low_s, high_s = min(clock.before_s for clock in clocks), max(clock.before_s for clock in clocks)
    error_s = max(clock.error_s for clock in clocks)
    low, high = number(low_s, spread=error_s), number(high_s, spread=error_s)
    return f"{low} s" if low == high else f"{low} s to {high} s"


def _version(name: str, version: str) -> str:
    return version if name == "system" else f"{name} {version}"


def asked(study: Study) -> tuple[Fact, ...]:
    """Settings that differ from the defaults, by dotted name, without the factors."""
    every = (study.fields_of({factor: level}) for factor, levels in study.tried.items() for level in levels)
    varied = {ALIASES.get(name, name) for sets in every for name in sets}
    changed = study.model_dump(mode="json", exclude_defaults=True)
    for name in ("study", "factors", "levels", "format"):
        changed.pop(name, None)
    return tuple(Fact(name, value) for name, value in _flat("", changed) if name not in varied)


def _flat(prefix: str, tree: Mapping[str, Any]) -> list[tuple[str, str]]:
    settings: list[tuple[str, str]] = []
    for name, value in tree.items():
        dotted = f"{prefix}.{name}" if prefix else name
        if isinstance(value, Mapping):
            settings += _flat(dotted, value)
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value, start=1):
                settings += _flat(f"{dotted}[{index}]", item)
        else:
            settings.append((dotted, ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return settings


def grouped(
    facts: Mapping[str, Mapping[str, str]], *, system: bool, by_level: Collection[str] = ()
) -> tuple[Fact, ...]:
    """Facts of nodes (`system`: of the system under test on them), each value once, with its nodes if they differ.
    `by_level`: names that are shown by level, so here only where database nodes differ, and of the others."""
    chosen = of_systems(facts) if system else of_machines(facts)
    wanted = {name: node_facts for name, node_facts in chosen.items() if name != MACHINE}
    databases = {node for node in wanted if role_of(node, facts) == "database"}
    values: dict[str, dict[str, list[str]]] = {}
    for node, node_facts in wanted.items():
        for name, value in node_facts.items():
            values.setdefault(name, {}).setdefault(str(value), []).append(node)
    rows = []
    for name in sorted(values):
        shown = {value: set(nodes) & databases for value, nodes in values[name].items()}
        by_level_alone = name in by_level and sum(map(bool, shown.values())) == 1
        for value, named in values[name].items():
            nodes = [node for node in named if not (by_level_alone and node in databases)]
            if not nodes:
                continue
            rows.append(Fact(name, value, "" if len(nodes) == len(wanted) else ", ".join(sorted(nodes))))
    return tuple(rows)
