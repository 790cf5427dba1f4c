"""CPU of database nodes and load nodes, from samples: percent of the cores that a node was given."""

from __future__ import annotations

from steelyard.model.measure import How, Measure, Over
from steelyard.model.response import Response

CORES = ("node_cpu_user_cores", "node_cpu_system_cores")
MACHINE_IDLE = "machine_cpu_idle_fraction"
THROTTLED = "node_throttled_fraction"
GIVEN = "percent of the cores that the node was given: its quota, or all cores of its machine if it has none"
MS_PER_S = 1e3


def _percent(
    name: str, label: str, definition: str, how: How, over: Over, order: int, *, on_page: bool = False
) -> Response:
    return Response(
        name=name,
        label=label,
        unit="%",
        definition=f"{definition}, in {GIVEN}.",
        source="samples",
        measure=Measure(metrics=CORES, how=how, over=over, per="cores", scale=100.0),
        less_is_better=True,
        on_page=on_page,
        order=order,
    )


RESPONSES = (
    _percent("cpu_percent_mean", "CPU of a database node", "CPU that the database nodes used, the mean over time and "
             "nodes", "mean", "database", 110, on_page=True),
    _percent("cpu_percent_max_30s", "highest CPU of a database node over 30 s", "Highest CPU of a database node over "
             "30 s", "max_30s", "database", 111),
    _percent("cpu_percent_max", "highest CPU of a database node", "Highest reading, of one second, of the CPU of a "
             "database node", "max", "database", 112),
    _percent("cpu_percent_busiest_node", "CPU of the busiest database node", "CPU of the database node that used most, "
             "the mean over time", "mean", "each", 113),
    Response(
        name="cpu_s_total",
        label="CPU time of the database nodes",
        unit="s",
        definition="CPU time that all database nodes used, user and system.",
        source="samples",
        measure=Measure(metrics=CORES, how="integral"),
        less_is_better=True,
        on_page=False,
        order=114,
    ),
    Response(
        name="cpu_ms_per_operation",
        label="CPU time of the database nodes per operation",
        unit="ms/operation",
        definition="CPU time that all database nodes used, over the operations answered without error.",
        source="samples",
        measure=Measure(metrics=CORES, how="integral", per="operation", scale=MS_PER_S),
        less_is_better=True,
        on_page=False,
        order=115,
    ),
    _percent("load_cpu_percent_mean", "CPU of a load node", "CPU that the load nodes used, the mean over time and "
             "nodes", "mean", "load", 116),
    _percent("load_cpu_percent_max", "highest CPU of a load node", "Highest reading, of one second, of the CPU of a "
             "load node", "max", "load", 117),
    Response(
        name="machine_cpu_percent_mean",
        label="CPU of the database nodes' machines",
        unit="%",
        definition=(
            "100 less the idle time of a database node's machine in percent of all its cores, as `sar -u` has it; the "
            "mean over time and nodes. On a machine that nodes share it covers all of them and the load generator."
        ),
        source="samples",
        measure=Measure(metrics=(MACHINE_IDLE,), scale=-100.0, shift=100.0, shared="cpu"),
        less_is_better=True,
        on_page=False,
        order=118,
    ),
    Response(
        name="cpu_throttled_percent_mean",
        label="throttled quota periods of a database node",
        unit="%",
        definition=(
            "Quota periods in which a database node used up its CPU and had to wait, in percent of those in which it "
            "ran; the mean over time and nodes."
        ),
        source="samples",
        measure=Measure(metrics=(THROTTLED,), scale=100.0),
        less_is_better=True,
        on_page=False,
        order=119,
    ),
)  # fmt: skip
