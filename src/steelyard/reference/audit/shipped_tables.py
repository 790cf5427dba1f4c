"""Audit of the shipped tables: which numbers belong together, and what their studies' designs imply."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from steelyard.reference.audit import pooled_rows, regression_rows, single_cell, two_groups
from steelyard.reference.audit.finding import Audit, Ledger, Place
from steelyard.reference.audit.regression_rows import Group, Line
from steelyard.reference.audit.single_cell import FRACTIONS, Cell, Conventions
from steelyard.reference.audit.two_groups import Side
from steelyard.reference.printed import Printed, parse
from steelyard.reference.rounding import Interval
from steelyard.reference.tables import Row, Table, named, tables

RICHARDSON = Conventions(quartiles="linear", sd_divisors=(1,), design_count=21)
"""Summaries by pandas' describe; 30 trials per treatment, the first 9 dropped."""
CELL_LABELS = {"sd": "std", "q1": "25%", "median": "50%", "q3": "75%"}
LINE_LABELS = {"r": "r_value", "p": "p_value"}
SCALED_OUT_S = Interval(300, 900)
"""Range of the time of scaling out: CPU is above the threshold for 300 s first, and a run takes 900 s."""
JOINING_S = Interval(70, 100)
ON_AIR_MS = 10_000 * 2 * 0.028


OVERALL = "overall"
"""Size of a cell that pools all sizes."""


class CellKey(NamedTuple):
    """Key of a cell in richardson2017, with the files' names of levels."""

    workload: str
    platform: str
    ram_gb: str
    link: str
    cluster_size: str

    def words(self) -> str:
        """The levels in words, without the workload, which a table has in common."""
        return " ".join(self[1:])


def key_of(levels: Mapping[str, str]) -> CellKey:
    """The cell with these levels."""
    return CellKey(*(levels[name] for name in CellKey._fields))


def cells_behind(table: Table, row: Row) -> list[tuple[float, CellKey]]:
    """The cells that a row was computed from, each with its x in a regression."""
    behind = table.form.cells_behind(row.key) if table.form is not None else ()
    return [(x, key_of(levels)) for x, levels in behind]


def audit(name: str) -> Audit:
    """Audit a shipped table, all tables of a study, or `all`. Raises UnknownReference."""
    ledger = Ledger()
    for table in named(name):
        _AUDITS[table.name](table, ledger)
    return ledger.audit(name)


def place_of(table: Table, row: Row) -> Place:
    """Place of a row; its name includes the number of the printed table if the file gives it."""
    name = f"{table.name}, table {row.key['table']}" if "table" in row.key else table.name
    return Place(name, row.line, {column: text for column, text in row.key.items() if column != "table"})


def richardson_cells() -> dict[CellKey, Cell]:
    """Every cell of the summaries by its key."""
    table = tables()["trial_time_summary"]
    cells = {}
    names = {label: name for name, label in CELL_LABELS.items()}
    for row in table.wide():
        numbers = {names.get(label, label): printed for label, printed in row.numbers.items()}
        cell = Cell(place_of(table, row), numbers, CELL_LABELS, row.key["cluster_size"] == OVERALL)
        cells[key_of(row.key)] = cell
    return cells


def _summaries(_: Table, ledger: Ledger) -> None:
    cells = richardson_cells()
    for key, cell in cells.items():
        if not cell.pooled:
            single_cell.check(cell, RICHARDSON, ledger)
            _on_air(key, cell, ledger)
            continue
        parts = [other for name, other in cells.items() if name[:-1] == key[:-1] and not other.pooled]
        pooled_rows.check(cell, parts, RICHARDSON, ledger, complete=True)
        single_cell.check(cell._replace(counted=_count_of(cells, key)), RICHARDSON, ledger)


def _on_air(key: CellKey, cell: Cell, ledger: Ledger) -> None:
    """Lower bound of the time for 10,000 sequential operations over wireless: each has a request and an answer.

    Before each frame a station waits DIFS = 10 + 2 x 9 us (IEEE 802.11-2012, clause 19). The largest order statistic
    below the bound gives the number of trials that cannot have been complete.
    """
    if key.link != "802.11":
        return
    ledger.holds("bounds")
    for name, share in reversed(FRACTIONS.items()):
        value = cell.get(name)
        if value is not None and value.high < ON_AIR_MS:
            because = (
                f"10,000 operations by one client thread, two frames each with 28 us before either: {ON_AIR_MS:g} ms "
                f"at least. {'Some' if share == 0 else f'At least {share:.0%} of the'} trials cannot have done them"
            )
            should = Interval(ON_AIR_MS, math.inf)
            ledger.add("bounds", "remark", cell.place, cell.label(name), cell.numbers[name], should, because)
            return


def _count_of(cells: Mapping[CellKey, Cell], key: CellKey) -> int:
    """The cell's count; for an overall row, whose count was rounded, the sum of its cells' counts."""
    count = cells[key].n
    if count is None:
        count = sum(cell.n or 0 for name, cell in cells.items() if name[:-1] == key[:-1] and not cell.pooled)
    return count


def _regressions(table: Table, ledger: Ledger) -> None:
    cells = richardson_cells()
    for row in table.rows:
        numbers = {
            "slope": row.numbers["slope"],
            "intercept": row.numbers["intercept"],
            "r": row.numbers["r_value"],
            "p": row.numbers["p_value"],
            "std_err": row.numbers["std_err"],
        }
        line = Line(place_of(table, row), numbers, LINE_LABELS)
        keys = cells_behind(table, row)
        missing = [key for _, key in keys if key not in cells]
        if not _data(line.place, "slope", numbers["slope"], bool(missing), ledger):
            regression_rows.check_bounds(line, ledger)
            continue
        groups = [_group(cells, key, x) for x, key in keys]
        regression_rows.check_cells(line, groups, RICHARDSON, ledger)
        regression_rows.check_itself(line, sum(group.n for group in groups), ledger)


def _group(cells: Mapping[CellKey, Cell], key: CellKey, x: float) -> Group:
    cell = cells[key]
    mean, sd = cell.numbers["mean"].interval, cell.numbers["sd"].interval
    if mean is None or sd is None:
        raise ValueError(f"{key} has no mean or standard deviation")
    return Group(x, _count_of(cells, key), mean, sd, key.words())


def _data(place: Place, column: str, printed: Printed, missing: bool, ledger: Ledger) -> bool:
    """Whether there are data and a result; adds a finding if only one of the two exists."""
    ledger.holds("no data")
    if missing != (printed.interval is None):
        because = "a cell of it was not measured" if missing else "all its cells were measured"
        should = "no number" if missing else "a number"
        ledger.add("no data", "contradiction", place, column, printed, should, because)
    return not missing and printed.interval is not None


RATIOS = {
    "ratio_max_to_min": ("max", "min"),
    "ratio_min_to_max": ("min", "max"),
    "ratio_of_the_means": ("mean", "mean"),
    "ratio_of_the_medians": ("median", "median"),
    "ratio_of_the_stddevs": ("sd", "sd"),
}
"""Definition to the baseline's statistic and the treatment's."""


def _speedups(table: Table, ledger: Ledger) -> None:
    cells = richardson_cells()
    for row in table.rows:
        place, printed = place_of(table, row), row.numbers["value"]
        keys = [key for _, key in cells_behind(table, row)]
        if not _data(place, "value", printed, any(key not in cells for key in keys), ledger):
            continue
        over, under = RATIOS[row.key["definition"]]
        two_groups.check_ratio(
            place, "value", printed, cells[keys[0]].numbers[over], cells[keys[1]].numbers[under], ledger
        )


EC2_KEY = ("nodes_before", "nodes_after", "replication_factor", "consistency")


def _by(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[str, ...], Row]:
    return {tuple(row.key[name] for name in names): row for row in rows}


def _ec2_cpu(table: Table, ledger: Ledger) -> None:
    for row in table.rows:
        mean, sd = row.numbers["mean_percent"], row.numbers["std_percent"]
        two_groups.check_percent(place_of(table, row), ("mean_percent", mean), ("std_percent", sd), ledger)


def _ec2_effects(table: Table, ledger: Ledger) -> None:
    cpu = _by(tables()["ec2_cpu_utilization"].rows, (*EC2_KEY, "phase"))
    for row in table.rows:
        key = tuple(row.key[name] for name in EC2_KEY)
        before, after = (
            Side(cpu[*key, phase].numbers["mean_percent"], cpu[*key, phase].numbers["std_percent"])
            for phase in ("before", "after")
        )
        column = "cohens_d_reported"
        printed = row.numbers[column]
        two_groups.check_effect(
            place_of(table, row), column, printed, (before, after), "root mean square", (1,), ledger
        )


def _ec2_times(table: Table, ledger: Ledger) -> None:
    for row in table.rows:
        place = place_of(table, row)
        for column, should, because in (
            ("scaled_out_at_s", SCALED_OUT_S, "the threshold is held for 300 s first, and a run takes 900 s"),
            ("joining_s", JOINING_S, "the text says 70 to 100 s"),
        ):
            ledger.weigh("bounds", place, column, row.numbers[column], should, because)


def _bare_metal(table: Table, ledger: Ledger) -> None:
    rows = _by(table.rows, ("workload", "load_percent", "metric"))
    blocks: dict[str, list[tuple[Place, str, Printed]]] = {}
    for row in table.rows:
        place = place_of(table, row)
        for column, printed in row.numbers.items():
            if row.key["unit"] == "percent":
                two_groups.check_percent(place, (column, printed), None, ledger)
            greatest = rows.get((row.key["workload"], row.key["load_percent"], f"{row.key['metric']}_max"))
            most = None if greatest is None else greatest.numbers[column].interval
            if greatest is not None and most is not None:
                because = f"{greatest.key['metric']} {greatest.numbers[column].text}: a mean is not above the largest"
                ledger.weigh("mean", place, column, printed, Interval(0.0, most.high), because)
            blocks.setdefault(row.key["workload"], []).append((place, column, printed))
    two_groups.check_copies(blocks, ledger)


def _spark(table: Table, ledger: Ledger) -> None:
    """Check the text's claim that Docker costs 5 to 6% of job time at 6 GB."""
    rows = _by(table.rows, ("environment", "job", "input_gb"))
    stated = Printed(text="5 to 6", value=5.5, low=4.5, high=6.5)
    for job in ("WordCount", "Sort"):
        native, docker = (rows[where, job, "6"] for where in ("native", "docker"))
        column = "overhead of Docker in percent, in the text"
        before, after = native.numbers["seconds"], docker.numbers["seconds"]
        should = two_groups.changes(before, after)[f"100 ({after.text} / {before.text} - 1)"]
        because = f"{job}: {after.text} s instead of {before.text} s"
        ledger.weigh("percentage", place_of(table, docker), column, stated, should, because)


def _http(table: Table, ledger: Ledger) -> None:
    """Check the text's claim that 65.9% of throughput is lost at 1 KB.

    Network rate = requests x document size, KB and Mbit as powers of ten."""
    rows = _by(table.rows, ("environment", "document_kb"))
    native, docker = (rows[where, "1"].numbers["requests_per_s"] for where in ("native", "docker"))
    column = "overhead of Docker in percent, in the text"
    place = place_of(table, rows["docker", "1"])
    should = two_groups.changes(native, docker)[f"100 (1 - {docker.text} / {native.text})"]
    because = f"{docker.text} requests/s instead of {native.text}"
    ledger.weigh("percentage", place, column, parse("65.9"), should, because)
    for row in table.rows:
        requests, place = row.numbers["requests_per_s"], place_of(table, row)
        column, share = "network_mbit_per_s", row.numbers["cpu_percent"]
        if requests.interval is not None:
            kilobytes = float(row.key["document_kb"])
            because = f"{requests.text} requests/s x {kilobytes:g} KB x 8 / 1000"
            should = requests.interval.times(kilobytes * 8 / 1000)
            ledger.weigh("product", place, column, row.numbers[column], should, because)
        ledger.weigh("bounds", place, "cpu_percent", share, Interval(0, 100), "a share lies within 0 and 100%")


def _abramova(_: Table, ledger: Ledger) -> None:
    ledger.skip("abramova2014_runtime: one number a cell, from which nothing else follows")


_AUDITS = {
    "trial_time_summary": _summaries,
    "regression": _regressions,
    "speedup": _speedups,
    "abramova2014_runtime": _abramova,
    "ec2_cpu_utilization": _ec2_cpu,
    "ec2_effect_size": _ec2_effects,
    "ec2_latency": _ec2_times,
    "bare_metal_docker": _bare_metal,
    "spark_job_time": _spark,
    "http_server": _http,
}
