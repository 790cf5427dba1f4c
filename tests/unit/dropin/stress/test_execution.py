"""What a command does and says, with a load and a server that are not there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.dropin.stress import Refused
from steelyard.dropin.stress.run.command import conduct
from steelyard.dropin.stress.run.interval_stats import Span, Uncertainty
from steelyard.model.errors import SystemFault
from steelyard.wire.tables import Histogram
from tests.unit.dropin.stress.world import World

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "cassandra-stress"
Said = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Exit code, lines of standard output, standard error."""

    def run(world: World, line: str) -> tuple[int, list[str], str]:
        code = conduct(line.split(), world.tools)
        printed = capsys.readouterr()
        return code, printed.out.splitlines(), printed.err

    return run


def shape(line: str) -> str:
    """A line without its figures."""
    return re.sub(r"\s*([\d,.]*\d|NaN)", " #", line)


def results_of(lines: list[str]) -> list[str]:
    begin = lines.index("Results:")
    return lines[begin - 2 : lines.index("END", begin) + 1]


def test_a_mixed_load_says_what_cassandra_stress_says(said: Said) -> None:
    real = (FIXTURES / "mixed-fixed-rate.txt").read_text().splitlines()
    code, ours, _ = said(World(intervals=5), "mixed ratio(write=1,read=3) n=6000 -rate threads=2 fixed=1500/s")
    assert code == 0
    assert [shape(line) for line in results_of(ours)] == [shape(line) for line in results_of(real)]
    header = next(line for line in real if line.startswith("type "))
    assert header in ours
    assert "Running [READ, WRITE] with 2 threads for 6000 iteration" in ours
    assert "Warming up READ with 1500 iterations..." in ours
    theirs = [line for line in real if line.startswith(("READ,", "WRITE,", "total,"))]
    rows = [line for line in ours if line.startswith(("READ,", "WRITE,", "total,"))]
    assert [line.split(",")[0] for line in rows] == [line.split(",")[0] for line in theirs]
    # Every column ends where it does there.
    places = {tuple(index for index, one in enumerate(row) if one == ",")[1:] for row in (*rows, *theirs)}
    assert len(places) == 1
    # `fixed=` shows the time from when an operation was due.
    assert results_of(ours)[6] == "Latency mean              :    7.0 ms [READ: 7.0 ms, WRITE: 7.0 ms]"


def test_a_script_that_parses_results_finds_them(said: Said) -> None:
    _, ours, _ = said(World(), "write n=300 no-warmup -rate threads=2")
    found = {}
    for line in ours[ours.index("Results:") + 1 :]:
        label, colon, value = line.partition(":")
        if colon and label.strip() != "":
            found[label.strip()] = value.strip().split(" ")[0]
    assert found["Op rate"] == "100"
    assert found["Latency median"] == "1.0"
    assert found["Total partitions"] == "300"
    assert found["Total errors"] == "0"
    assert found["Total operation time"] == "00:00:03"
    assert ours[0] == "Created keyspaces."
    assert ours[-1] == "END"


def test_a_write_creates_its_schema_and_others_do_not(said: Said) -> None:
    world = World()
    said(world, "write n=1 -schema replication(strategy=NetworkTopologyStrategy,dc1=3) compression=LZ4Compressor")
    keyspace, rows, counters = world.asked
    assert keyspace == (
        "CREATE KEYSPACE IF NOT EXISTS \"keyspace1\" WITH replication = {'class': "
        "'org.apache.cassandra.locator.NetworkTopologyStrategy', 'dc1': '3'} AND durable_writes = true"
    )
    assert rows.startswith('CREATE TABLE IF NOT EXISTS "keyspace1".standard1 (key blob PRIMARY KEY, "C0" blob')
    assert rows.endswith("WITH compression = {'class': 'LZ4Compressor'}")
    assert '"C4" counter' in counters
    reading = World()
    said(reading, "read n=1 -rate threads=1")
    assert reading.asked == []


def test_n_0_only_creates_the_schema(said: Said) -> None:
    world = World()
    code, ours, _ = said(world, "write n=0 -rate threads=1")
    assert (code, ours[-1], world.orders) == (0, "N=0: SCHEMA CREATED, NOTHING ELSE DONE.", [])


@pytest.mark.parametrize(
    ("line", "operations"),
    [
        ("write n=1000 -node 127.0.0.1,127.0.0.2 -rate threads=300", [500, 1000]),
        ("write n=1000000 -rate threads=300", [50_000, 1_000_000]),
        ("read duration=1m -rate threads=300", [50_000, None]),
        ("write n=1000 no-warmup -rate threads=300", [1000]),
        ("write n=3 -rate threads=1", [3]),
    ],
)
def test_warm_up(said: Said, line: str, operations: list[int | None]) -> None:
    world = World()
    said(world, line)
    assert [order.stop.operations for order in world.orders] == operations
    assert all(order.schedule.threads <= 100 for order in world.orders[:-1])


def test_warm_up_is_one_operation_at_a_time_and_not_paced(said: Said) -> None:
    world = World()
    said(world, "mixed n=1000 -rate threads=300 fixed=50/s")
    names = [[one.name for one in order.work.operations] for order in world.orders]
    assert names == [["READ"], ["WRITE"], ["READ", "WRITE"]]
    assert [order.schedule.kind for order in world.orders] == ["closed", "closed", "constant"]
    assert [order.work.clustering is None for order in world.orders] == [True, True, False]


def test_an_error_ends_the_load_unless_errors_are_ignored(said: Said) -> None:
    world = World(outcomes={"READ": {"ok": 55, "not-found": 40, "invalid": 5}}, intervals=4)
    code, ours, told = said(world, "read n=400 no-warmup -rate threads=1")
    assert code == 1
    assert ours[-1] == "FAILURE"
    assert "Results:" not in ours
    assert "READ: invalid x5, READ: not-found x40" in told
    code, ours, _ = said(world, "read n=400 no-warmup -rate threads=1 -errors ignore")
    assert code == 0
    real = (FIXTURES / "read-errors-ignored.txt").read_text().splitlines()
    assert [shape(line) for line in results_of(ours)] == [shape(line) for line in results_of(real)]
    assert "Total errors              :        180 [READ: 180]" in ours
    assert "Total partitions          :        220 [READ: 220]" in ours


def test_without_validation_a_row_that_is_not_there_is_no_error(said: Said) -> None:
    world = World(outcomes={"READ": {"ok": 55, "not-found": 45}})
    code, ours, _ = said(world, "read n=300 no-warmup -rate threads=1 -errors skip-read-validation")
    assert code == 0
    assert "Total errors              :          0 [READ: 0]" in ours


def test_thread_counts_are_tried_until_the_rate_grows_no_more(said: Said) -> None:
    world = World(rate=lambda threads: min(threads, 24) * 100)
    code, ours, _ = said(world, "read n=100 no-warmup -rate auto")
    assert code == 0
    tried = [order.schedule.threads for order in world.orders]
    # Standing still is not yet shrinking: the mean growth of the last three steps is not below nothing.
    assert tried[:6] == [4, 8, 16, 24, 36, 54]
    assert "Thread count was not specified" in ours
    assert "Running with 16 threadCount" in ours
    assert "Improvement over 4 threadCount: 100%" in ours
    # One line an operation and one for all of them, for each thread count.
    table = ours[-2 * len(tried) - 2 :]
    assert table[-1] == "END"
    assert table[1].lstrip().startswith("4 threadCount, READ,")
    assert table[2].lstrip().startswith("4 threadCount, total,")
    real = (FIXTURES / "read-auto.txt").read_text().splitlines()
    begin = next(index for index, line in enumerate(real) if line.lstrip().startswith("id, type"))
    assert shape(table[0].lstrip()) == shape(real[begin].lstrip())
    assert shape(table[2].lstrip()) == shape(real[begin + 2].lstrip())
    assert real[begin].index("id,") == len("1 threadCount") - 2


def test_thread_counts_stop_when_the_rate_falls(said: Said) -> None:
    world = World(rate=lambda threads: 2000 - 10 * threads if threads > 16 else threads * 100)
    said(world, "read n=100 no-warmup -rate auto")
    tried = [order.schedule.threads for order in world.orders]
    # Of the steps 16-24-36-54 the mean is the first below nothing.
    assert tried == [4, 8, 16, 24, 36, 54]


def test_thread_counts_without_auto_go_to_the_end(said: Said) -> None:
    world = World(rate=lambda threads: 1000 - threads)
    _, ours, _ = said(world, "write n=100 no-warmup -rate threads>=2 threads<=40")
    assert [order.schedule.threads for order in world.orders] == [2, 4, 8, 16, 24, 36]
    assert ours.count("Sleeping for 15s") == 5


def test_err_runs_until_the_mean_is_certain(said: Said) -> None:
    world = World(intervals=500)
    _, ours, _ = said(world, "read err<0.05 n>5 n<20 no-warmup -rate threads=1")
    assert sum(line.startswith("total,") for line in ours) == 5
    assert "Running READ with 1 threads until stderr of mean < 0.05" in ours


def test_truncate(said: Said) -> None:
    world = World()
    _, ours, _ = said(world, "write n=1 truncate=once -rate threads=1")
    assert world.asked[-2:] == ['TRUNCATE "keyspace1"."standard1"', 'TRUNCATE "keyspace1"."counter1"']
    assert "Truncated keyspace1.[standard1, counter1]." in ours
    always = World()
    said(always, "read n=1 truncate=always -rate threads>=1 threads<=4")
    assert sum("standard1" in one for one in always.asked) == 3


def test_throttle_says_what_its_times_leave_out(said: Said) -> None:
    code, ours, told = said(World(), "read n=300 no-warmup -rate threads=1 throttle=100/s")
    assert code == 0
    assert "Latency mean              :    1.0 ms [READ: 1.0 ms]" in ours
    assert "From when it was due: median 7.0 ms" in told


def test_what_was_due_and_not_sent_is_no_error(said: Said) -> None:
    world = World(unsent=2700)
    code, ours, told = said(world, "read duration=3s no-warmup -rate threads=1 fixed=1000/s")
    assert code == 0
    at = ours.index("Due and not sent          :      2,700")
    assert ours[at - 1].startswith("Total errors              :          0")
    assert (
        "stress: 2,700 of 3,000 operations were due and not sent: neither done nor failed; what was due by the " in told
    )
    assert "stress: the rate was not reached: asked 1,000/s, reached 100/s" in told
    assert "Due and not sent" not in "".join(said(World(), "read n=300 no-warmup -rate threads=1")[1])


def test_a_node_that_is_down_is_named_at_the_beginning_and_at_the_end(said: Said) -> None:
    world = World(absent=("127.0.0.9:9042 refused the connection",))
    code, _, told = said(
        world, "read n=300 no-warmup -rate threads=1 -node 127.0.0.1,127.0.0.9,nobody.invalid whitelist"
    )
    assert (code, told.count("stress: left out: 127.0.0.9:9042 refused the connection")) == (0, 2)
    assert world.orders[0].contacts == ("127.0.0.1:9042", "127.0.0.9:9042", "nobody.invalid:9042")


def test_logs_histograms_and_graph(said: Said, tmp_path: Path) -> None:
    log, histograms, page = tmp_path / "new" / "a.log", tmp_path / "a.hdr", tmp_path / "a.html"
    line = f"read n=300 -rate threads=1 fixed=100/s -log file={log} hdrfile={histograms} -graph file={page} title=T"
    _, ours, _ = said(World(), f"{line} revision=one -mode native cql3 user=u password=hidden")
    assert log.read_text().splitlines() == ours
    tags = [one.split(",")[0] for one in histograms.read_text().splitlines() if one.startswith("Tag=")]
    assert tags == ["Tag=READ-st", "Tag=READ-rt", "Tag=READ-wt"] * 3
    said(World(), f"{line} revision=</script>two")
    text = page.read_text()
    stats = json.loads(text.split("stats = ", 1)[1].split(";\n/* stats end */")[0])
    assert [load["revision"] for load in stats["stats"]] == ["one", "</script>two"]
    assert stats["stats"][0]["op rate"] == "100 op/s  [READ: 100 op/s]"
    assert len(stats["stats"][0]["intervals"]) == 3
    assert "hidden" not in text
    assert text.count("</script>") == 1
    assert text.count("<polyline") == 6
    # What cannot be written is known before the load.
    page.write_text("something else")
    for bad, why in (
        (page, "not a page of -graph"),
        (tmp_path, "cannot be written"),
        (page / "x", "cannot be written"),
    ):
        world = World()
        with pytest.raises(Refused, match=why):
            said(world, f"read n=3 -rate threads=1 -graph file={bad}")
        assert world.orders == []
    world = World()
    with pytest.raises(Refused, match="-log hdrfile="):
        said(world, f"read n=3 -rate threads=1 -log hdrfile={tmp_path}")
    assert world.orders == []


def test_a_signal_prints_the_results_so_far(said: Said) -> None:
    code, ours, _ = said(World(signalled=True), "read n=300 no-warmup -rate threads=1")
    assert code == 130
    assert "Results:" in ours


def test_who_logs_in_stands_in_the_environment_only(said: Said) -> None:
    world = World()
    said(world, "write n=4 -rate threads=1 -mode native cql3 user=u password=hidden")
    assert sorted(world.variables.values()) == ["hidden", "u"]
    assert "hidden" not in "".join(order.text for order in world.orders)


def test_other_nodes_are_found_unless_only_the_named_are_wanted(said: Said) -> None:
    world = World(others=("127.0.0.2:9042",), missing=("127.0.0.3:9042",))
    _, _, told = said(world, "read n=1 -rate threads=1 -node 127.0.0.1")
    assert world.orders[-1].contacts == ("127.0.0.1:9042", "127.0.0.2:9042")
    assert "127.0.0.3:9042 belongs to the cluster, but cannot be reached" in told
    said(world, "read n=1 -rate threads=1 -node 127.0.0.1 whitelist")
    assert world.orders[-1].contacts == ("127.0.0.1:9042",)
    with pytest.raises(Refused, match="no address is known"):
        said(world, "read n=1 -rate threads=1 -node no.such.name.invalid")


def test_the_data_centre_must_be_that_of_the_first_node(said: Said) -> None:
    with pytest.raises(Refused, match="dc1"):
        said(World(), "read n=1 -rate threads=1 -node datacenter=other 127.0.0.1")
    code, _, _ = said(World(), "read n=1 -rate threads=1 -node datacenter=dc1 127.0.0.1")
    assert code == 0


def test_a_server_that_refuses_the_schema_is_said(said: Said) -> None:
    class Refusing(World):
        async def cql(self, *_: object, **__: object) -> object:
            raise SystemFault("no such strategy")

    with pytest.raises(SystemFault, match="no such strategy"):
        said(Refusing(), "write n=1")


def test_an_operation_longer_than_its_interval_makes_no_negative_rate() -> None:
    long = Span(seconds=1.0, operations=10, rows=10, times=Histogram(((1_500_000_000, 1_600_000_000, 10),)))
    short = Span(seconds=1.0, operations=10, rows=10, times=Histogram(((400_000_000, 500_000_000, 10),)))
    assert (long.settled_rows_per_s, short.settled_rows_per_s) == (10.0, 20.0)
    uncertainty = Uncertainty()
    for rate in (100.0, 110.0, 90.0):
        uncertainty.feed(rate)
    # Standard deviation (of all, as there) over the root of their number, over the mean.
    assert uncertainty.share == pytest.approx((200 / 3) ** 0.5 / 3**0.5 / 100)
    assert not uncertainty.settled(0.01, 1, 200)
    assert uncertainty.settled(0.01, 1, 3)
