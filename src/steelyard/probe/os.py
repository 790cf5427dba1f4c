"""OS probe, the default of every study: cores, memory, disks and network of machine and node, read by the agent.

The agent reads /proc and the node's cgroups (`docs/reference/metrics.md`); this module holds the table of its metrics,
its command, and the parser of its lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.model.errors import ProbeError
from steelyard.model.sample import Metric, Sample
from steelyard.node import agent
from steelyard.node.base import Node
from steelyard.wire import record as wire

OWN_NETWORK = Path("/proc/self/ns/net")


def _amount(name: str, unit: str, description: str) -> Metric:
    return Metric(name=name, unit=unit, description=description)


def _change(name: str, unit: str, description: str) -> Metric:
    return Metric(name=name, unit=unit, description=description, cumulative=True)


_CORES = "share of all cores' time"

METRICS = (
    _change("machine_cpu_user_fraction", "fraction", f"user code, {_CORES}"),
    _change("machine_cpu_system_fraction", "fraction", f"kernel and interrupts, {_CORES}"),
    _change("machine_cpu_interrupt_fraction", "fraction", f"of these, interrupts: no process's own, {_CORES}"),
    _change("machine_cpu_iowait_fraction", "fraction", f"idle while a disk was waited for, {_CORES}"),
    _change("machine_cpu_steal_fraction", "fraction", f"taken by other guests of the hardware, {_CORES}"),
    _change("machine_cpu_idle_fraction", "fraction", f"idle, {_CORES}"),
    _amount("machine_memory_available_bytes", "bytes", "memory that could be had without swapping"),
    _amount(
        "machine_load_average_1min", "processes", "processes running or waiting for a disk, mean of about a minute"
    ),
    _change("machine_disk_read_bytes_per_s", "bytes/s", "read from all whole physical disks"),
    _change("machine_disk_write_bytes_per_s", "bytes/s", "written to all whole physical disks"),
    _change("machine_disk_read_operations_per_s", "operations/s", "reads that physical disks completed"),
    _change("machine_disk_write_operations_per_s", "operations/s", "writes that physical disks completed"),
    _change("machine_network_receive_bytes_per_s", "bytes/s", "received where nodes share the network"),
    _change("machine_network_transmit_bytes_per_s", "bytes/s", "sent where nodes share the network"),
    _change("machine_loopback_bytes_per_s", "bytes/s", "over the loopback that nodes share"),
    _change("node_network_receive_bytes_per_s", "bytes/s", "received by the node's own interfaces"),
    _change("node_network_transmit_bytes_per_s", "bytes/s", "sent by the node's own interfaces"),
    _change("node_cpu_user_cores", "cores", "cores that the node's user code kept busy"),
    _change("node_cpu_system_cores", "cores", "cores that the kernel kept busy for the node"),
    _change("node_throttled_fraction", "fraction", "share of quota periods in which the node used up its CPU"),
    _amount("node_memory_bytes", "bytes", "memory charged to the node: its cgroup's, or resident in its processes"),
    _amount("node_memory_rss_bytes", "bytes", "anonymous memory of the node: heaps and stacks, no page cache"),
    _change("node_memory_limit_hits", "hits", "times the memory limit was hit since the previous sample"),
    _change("node_disk_read_bytes_per_s", "bytes/s", "read from the node's own disk, or for its processes"),
    _change("node_disk_write_bytes_per_s", "bytes/s", "written to the node's own disk, or dirtied by its processes"),
    _change("node_disk_read_operations_per_s", "operations/s", "reads that the node's own disk completed"),
    _change("node_disk_write_operations_per_s", "operations/s", "writes that the node's own disk completed"),
    _change("node_read_calls_per_s", "calls/s", "read-like system calls of the node's processes"),
    _change("node_write_calls_per_s", "calls/s", "write-like system calls of the node's processes"),
    _amount("node_processes", "processes", "processes of the node that live"),
)


class OsProbe:
    """Probe that runs `steelyard-agent probe`."""

    name = "os"
    metrics = METRICS

    def command(self, node: Node, interval_s: float, process_ids: Sequence[int]) -> Sequence[str]:
        """argv of the agent. A node on this kernel also gets the id of this process's network namespace; if it shares
        that namespace, the traffic is not charged to it. A node with its own disk gets the folder where that disk is
        mounted. Raises EngineError if there is no agent."""
        argv = [agent.on(node), "probe", "--interval-s", f"{interval_s:g}"]
        for folder in node.cgroups:
            argv += ["--cgroup", str(folder)]
        for process_id in process_ids:
            argv += ["--pid", str(process_id)]
        if node.own_disk:
            argv += ["--disk", str(node.folder)]
        if not node.kernel and OWN_NETWORK.exists():
            argv += ["--shared-netns", str(OWN_NETWORK.stat().st_ino)]
        return argv

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Samples in one record; none for a greeting. Raises ProbeError on any other line."""
        try:
            record = wire.parse(line)
        except wire.RecordError as error:
            raise ProbeError(f"{node}: invalid line from the probe: {error.message}", error.hint) from error
        match record:
            case wire.SampleRecord():
                return [Sample(record.t_s, node, name, value) for name, value in record.values.items()]
            case wire.Hello():
                return ()
            case wire.Failure():
                raise ProbeError(f"{node}: {record.message}", record.hint)
            case other:
                raise ProbeError(f"{node}: unexpected record {other.record!r} from the probe")


def create() -> OsProbe:
    """The probe; no side effects."""
    return OsProbe()
