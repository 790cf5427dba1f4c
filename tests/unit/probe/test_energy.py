"""The probe `energy`: its script on made-up counters, its parser, and a machine without any."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from steelyard.model.errors import ProbeError
from steelyard.node.base import Node
from steelyard.plugins import find
from steelyard.probe import energy

ROOT = Path(__file__).parents[3]
NODE = Node(name="n1", role="database", address="127.0.0.1", prefix=(), folder=Path("/tmp/n1"))
COUNTERS, PACKAGE, MEMORY = (metric.name for metric in energy.EnergyProbe.metrics)


def zone(folder: Path, place: str, name: str, energy_uj: int, most: int = 262_143_328_850) -> Path:
    found = folder / place
    found.mkdir(parents=True)
    for file, content in (("name", name), ("energy_uj", energy_uj), ("max_energy_range_uj", most)):
        (found / file).write_text(f"{content}\n")
    return found


def parsed(line: str) -> dict[str, float]:
    return {one.metric: one.value for one in energy.create().parse("n1", line.encode())}


def test_is_found_by_name_and_every_metric_is_on_its_page() -> None:
    probe = find.find("probe", "energy").create()
    assert probe.name == "energy"
    page = (ROOT / "docs" / "reference" / "energy.md").read_text()
    for metric in probe.metrics:
        assert f"| `{metric.name}` | {metric.unit} |" in page


def test_power_is_energy_over_the_time_that_passed() -> None:
    line = (
        "100.0 a/package-0=5000000/9000000 a:0/core=1/9 a:2/dram=100/9000000 | "
        "102.0 a/package-0=7000000/9000000 a:0/core=5/9 a:2/dram=500100/9000000"
    )
    assert parsed(line) == {COUNTERS: 2.0, PACKAGE: 1.0, MEMORY: 0.25}
    two = "0 a/package-0=0/9 b/package-1=0/9 | 1 a/package-0=3/9 b/package-1=4/9"
    assert parsed(two) == {COUNTERS: 2.0, PACKAGE: pytest.approx(7e-6)}


def test_a_counter_that_began_anew_went_on_from_its_range() -> None:
    assert parsed("1 a/package-0=8000000/9000000 | 2 a/package-0=500000/9000000")[PACKAGE] == pytest.approx(1.5)


def test_none_is_a_reading_and_no_failure() -> None:
    assert parsed("1.5 | 2.5") == {COUNTERS: 0.0}
    assert parsed("2.5 | 2.5") == {}
    assert parsed("1 | 2 a/package-0=5/9") == {COUNTERS: 0.0}, "the first reading of a counter has no rate"


@pytest.mark.parametrize("line", ["", "1 2 3", "1 | x", "1 a/package-0=z/9 | 2 a/package-0=1/9", "1 | 2 | 3", "\xff"])
def test_a_line_that_is_not_its_own(line: str) -> None:
    with pytest.raises(ProbeError, match="n1: not a line of the energy probe"):
        list(energy.create().parse("n1", line.encode("latin-1")))


def lines_of(folder: Path, count: int) -> list[bytes]:
    probe = energy.EnergyProbe(str(folder))
    process = subprocess.Popen(probe.command(NODE, 0.05, ()), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        return [process.stdout.readline() for _ in range(count)]
    finally:
        process.kill()
        process.wait()


def test_the_script_reads_packages_and_memory_but_no_unreadable_zone(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 10)
    zone(tmp_path, "intel-rapl:0:1", "dram", 20)
    (tmp_path / "intel-rapl:1").mkdir()
    begun = time.time()
    line = lines_of(tmp_path, 2)[1]
    found = {one.metric: one for one in energy.create().parse("n1", line)}
    assert {name: one.value for name, one in found.items()} == {COUNTERS: 2.0, PACKAGE: 0.0, MEMORY: 0.0}
    assert begun <= found[COUNTERS].t_s <= time.time()


def test_the_script_goes_on_without_counters(tmp_path: Path) -> None:
    for line in lines_of(tmp_path / "none", 2):
        assert [(one.metric, one.value) for one in energy.create().parse("n1", line)] == [(COUNTERS, 0.0)]
