"""Provenance of a page: hardware in one line, commands that reproduce it, raw data, citation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

import steelyard
from steelyard.analysis.wording import capital
from steelyard.format import count, data_size, listed, moment
from steelyard.model.facts import CONTAINER_ENGINE, isolation, of_machines, role_of
from steelyard.model.named_level import Level
from steelyard.model.plausible import number_in
from steelyard.model.trial import TrialRecord
from steelyard.model.trial_settings import TrialSettings
from steelyard.reading.report_input import ReportInput
from steelyard.report.tables import latex
from steelyard.wire.order import POSTGRESQL

MIB: Final = 1024 * 1024
ROOT: Final = "store"
"""Default folder of studies in the commands."""
TITLE: Final = "Steelyard: a laboratory that weighs distributed databases"
AUTHORS: Final = "The Steelyard developers"
LICENCE: Final = "Apache-2.0"
"""Title, authors and licence, as in CITATION.cff."""
STORE: Final = "STORE"
"""Placeholder for the study's folder in commands: a page does not know its own location, and the folder may be
moved."""
ONE_MACHINE: Final = "cpu"
"""Resources that nodes on one machine share."""
SPELLED: Final = {POSTGRESQL: "PostgreSQL"}
"""Systems with the name of their protocol that more than a capital first letter spells."""


@dataclass(frozen=True)
class Provenance:
    """A term and its text, with code between backticks."""

    term: str
    text: str
    code: str = ""
    """Lines to copy."""


def hardware(page_input: ReportInput) -> str:
    """Hardware, site and systems in one line: `2 CPUs (AMD EPYC), 23.5 GiB of memory, all nodes on one machine;
    database nodes in Docker containers, network host; 0.5 CPUs, 1.5 GiB of memory for each node; Cassandra 5.0.5, heap
    256 MB per node`. Empty if no facts are known."""
    enclosure = enclosed(page_input.records, page_input.site_facts)
    parts = (_machines(page_input), enclosure, _limits(page_input.records), *_systems(page_input.records))
    return "; ".join(part for part in parts if part)


def _limits(records: Sequence[TrialRecord]) -> str:
    """Limits of each database node that are the same in all trials: `0.5 CPUs, 1.5 GiB of memory for each node`."""
    settings = [record.settings for record in records]
    cpus = _shared(f"{asked:g} CPUs" if isinstance(asked := one.at("node.cpus"), float) else "" for one in settings)
    memory = _shared(
        f"{data_size(asked * MIB)} of memory" if isinstance(asked := one.at("node.memory_mb"), int) else ""
        for one in settings
    )
    limits = ", ".join(filter(None, (cpus, memory)))
    return f"{limits} for each node" if limits else ""


def enclosed(records: Sequence[TrialRecord], site_facts: Mapping[str, Mapping[str, str]]) -> str:
    """How the database nodes of each site are isolated, by the facts of one of them, and the network of containers:
    `database nodes in Docker containers, network host`. Empty for plain processes."""
    return listed(
        [
            f"database nodes{f' of site {site}' if len(site_facts) > 1 else ''} {words}{_networks(records, site)}"
            for site, facts in sorted(site_facts.items())
            if (words := _enclosure(facts))
        ]
    )


def _enclosure(node_facts: Mapping[str, str]) -> str:
    """Isolation by a node's facts: `in Docker containers`, `in virtual machines`, or empty."""
    isolated_by = isolation(node_facts)
    if isolated_by == "container":
        return f"in {node_facts[CONTAINER_ENGINE].split(' ', 1)[0]} containers"
    return "in virtual machines" if isolated_by else ""


def _networks(records: Sequence[TrialRecord], site: str) -> str:
    """Networks that a site gave its nodes: `, network host`. Empty if the site has no such setting."""
    of_site = [one.settings for one in records if one.settings.at("site.name") == site]
    networks = sorted({str(network) for one in of_site if (network := one.at("site.network"))})
    return f", network {' or '.join(networks)}" if networks else ""


def _machines(page_input: ReportInput) -> str:
    facts = page_input.facts
    nodes = {name: one for name, one in of_machines(facts).items() if role_of(name, facts) != "load"}
    described = [_machine(one) for one in nodes.values() if _machine(one)]
    shares = {share for record in page_input.records for share in record.shares}
    if page_input.machines:
        known = Counter(_machine(one) for one in page_input.machines.values())
        each = " and ".join(f"{count(times, 'machine')}, each {text}" for text, times in known.items())
        return f"{each}; each block on one of them"
    if ONE_MACHINE in shares:
        single = all(record.settings.at("site.nodes") == 1 for record in page_input.records)
        return ", ".join([*described[:1], f"{'node and load' if single else 'all nodes'} on one machine"])
    groups = {text: described.count(text) for text in described}
    return " and ".join(f"{count(amount, 'node')}, each {text}" for text, amount in groups.items())


def _machine(node_facts: Mapping[str, str]) -> str:
    model = node_facts.get("board") or node_facts.get("cpu_model") or ""
    cores, memory_mb = (number_in(node_facts.get(name, "")) for name in ("cores", "memory_mb"))
    size = f"{data_size(memory_mb * MIB)} of memory" if memory_mb is not None else ""
    processors = f"{count(int(cores), 'CPU')} ({model})" if cores is not None and model else model
    return ", ".join(part for part in (processors, size) if part)


def _systems(records: Sequence[TrialRecord]) -> tuple[str, ...]:
    """Each system under test with its versions as measured, and its heap if it is the same in all of its trials."""
    of: dict[str, list[TrialRecord]] = {}
    for record in records:
        of.setdefault(record.settings.system.name, []).append(record)
    return tuple(_system(name, of[name]) for name in sorted(of))


def _system(name: str, records: Sequence[TrialRecord]) -> str:
    simulated = records[-1].settings.planted_contention is not None
    written = (version for one in records for key, version in one.versions.items() if key in (name, "system"))
    versions = sorted({version.removeprefix(f"{name} ") for version in written}, key=_numbers)
    called = "simulated cluster" if simulated else SPELLED.get(name, capital(name))
    heaps = {_heap_mb(one.settings.system.settings) for one in records}
    heap = next(iter(heaps)) if len(heaps) == 1 else ""
    plain = [version for version in versions if version[:1].isdigit()]
    shown = f"{called} {listed(plain)}" if plain and not simulated else called
    return f"{shown}, heap {heap} MB per node" if heap else shown


def _numbers(version: str) -> tuple[list[int], str]:
    """By which versions are in order: 9.6 before 15.14."""
    return [int(number) for number in re.findall(r"\d+", version)], version


def _heap_mb(settings: Mapping[str, object]) -> str:
    """Heap in MB that the laboratory gave a node; empty for an existing cluster, which configures its own."""
    return "" if settings.get("managed") is False else str(settings.get("heap_mb") or "")


def one_trial(records: Sequence[TrialRecord]) -> str:
    """What all trials have in common: `Each trial: ycsb-c, 2,000 operations, 1 thread, 5,000 records`. Empty if
    nothing."""
    settings = [record.settings for record in records]
    parts = (
        _shared(str(one.at("workload.name") or "") for one in settings),
        _shared(_amount(one.at("load.operations"), "operation") for one in settings),
        _shared(_seconds(one.at("load.duration_s")) for one in settings),
        _shared(_amount(_closed_threads(one), "thread") for one in settings),
        _shared(_amount(one.at("workload.records"), "record") for one in settings),
        _shared(_copies(one.at("system.replication_factor")) for one in settings),
    )
    known = ", ".join(part for part in parts if part)
    return f"Each trial: {known}" if known else ""


def _amount(amount: Level | None, noun: str) -> str:
    return count(amount, noun) if isinstance(amount, int) else ""


def _seconds(duration_s: Level | None) -> str:
    return f"{duration_s:g} s of load" if isinstance(duration_s, int | float) else ""


def _closed_threads(settings: TrialSettings) -> Level | None:
    """Threads of a closed loop; None for an open one, whose threads only limit what is in flight."""
    return settings.at("load.threads") if settings.at("load.schedule") == "closed" else None


def _copies(factor: Level | None) -> str:
    return f"replication factor {factor}" if factor else ""


def _shared(texts: Iterable[str]) -> str:
    """The text if all are equal, otherwise empty."""
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


def provenance(page_input: ReportInput) -> tuple[Provenance, ...]:
    """Terms with their texts: reproduce, raw data, cite, published values."""
    return tuple(_rows(page_input))


def _rows(page_input: ReportInput) -> Iterator[Provenance]:
    about = page_input.study.study
    folder = f"{ROOT}/{about.name}"
    yield Provenance(
        "Reproduce",
        f"Replace `{STORE}` with this study's folder (`{folder}`, unless `--store` named another). "
        f"`steelyard run {STORE}/study.toml --store again` repeats all measurements; `steelyard report {STORE}` "
        f"regenerates this page from the stored data, and `steelyard verify {STORE}` recomputes its numbers.",
    )
    attempts = count(len(page_input.records), "attempt")
    yield Provenance(
        "Raw data",
        f"The folder `{folder}` (`{ROOT}` unless `--store` named another): `study.toml`, the journal `events.jsonl`, "
        f"and {attempts} in `trials/`, each with its record `trial.json`, per-second histograms "
        "(`intervals/*.parquet`), readings of the nodes (`samples/*.parquet`), facts and logs. "
        "The tables of this page are available as CSV or JSON at its end.",
    )
    begun = min((record.begun_s for record in page_input.records), default=None)
    yield Provenance(
        "Cite",
        f"{AUTHORS}. {TITLE}. Version {steelyard.__version__}, {LICENCE} (`CITATION.cff`). For the data: study "
        f"“{about.name}”, seed {page_input.study.design.seed}, measured {moment(begun)}.",
        _bibtex(page_input, moment(begun)),
    )
    if about.source:
        yield Provenance("Source", " ".join(about.source.split()))
    published = _published(page_input, STORE)
    if published:
        yield Provenance("Published numbers", published)


def _bibtex(page_input: ReportInput, measured: str) -> str:
    """BibTeX entries of the program and of the data."""
    about, year = page_input.study.study, measured[:4]
    name, title = (latex.escaped(" ".join(text.split())) for text in (about.name, about.title or about.name))
    key = "".join(letter for letter in about.name if letter.isalnum() or letter == "-")
    version, seed = steelyard.__version__, page_input.study.design.seed
    return (
        f"@software{{steelyard,\n  author = {{{{{AUTHORS}}}}},\n  title = {{{{{TITLE}}}}},\n"
        f"  version = {{{version}}},\n  note = {{{LICENCE}}}\n}}\n"
        f"@misc{{steelyard-{key},\n  title = {{{{{title}}}}},\n  year = {{{year}}},\n"
        f"  note = {{Measured with Steelyard {version}: study {name}, seed {seed}, {measured}}}\n}}"
    )


def _published(page_input: ReportInput, folder: str) -> str:
    """How many published values agree, differ or are not comparable."""
    rows = page_input.published
    if not rows:
        return ""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    verdicts = listed([f"{amount} {verdict}" for verdict, amount in counts.items()])
    reasons = tuple(dict.fromkeys(reason for row in rows for reason in row.reasons))
    why = f" Not comparable, because {'; '.join(reasons[:3])}." if counts.get("not comparable") and reasons else ""
    total = count(len(rows), "published number")
    return f"Of {total}: {verdicts}.{why} All of them: `steelyard compare {folder} {page_input.published_name}`."


def coded_parts(text: str) -> list[tuple[bool, str]]:
    """The parts of a text between backticks, and whether each is code. A text with an unpaired backtick is one part."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [(False, text)]
    return [(index % 2 == 1, part) for index, part in enumerate(parts) if part]


def coded(text: str) -> Markup:
    """A text with its parts between backticks as code; everything else is escaped."""
    if "`" not in text:
        return escape(text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if code else escape(part) for code, part in coded_parts(text)
    )
