"""Disk of database nodes, from samples: what was read and written, by the node and by its machine's disks."""

from __future__ import annotations

from steelyard.model.measure import KIB, MIB, How, Measure
from steelyard.model.response import Response

HOWS: dict[How, str] = {"mean": "mean over time and nodes", "max_30s": "highest mean of a node over 30 s"}
SHARED = "On a disk that nodes share it covers all of them."


def _of(
    name: str, label: str, what: str, metric: str, order: int, how: How = "mean", *, unit: str = "KiB/s",
    scale: float = 1 / KIB, more: str = "", shared: str = "", on_page: bool = False,
) -> Response:  # fmt: skip
    return Response(
        name=name,
        label=label,
        unit=unit,
        definition=f"{what}, the {HOWS[how]}.{f' {more}' if more else ''}",
        source="samples",
        measure=Measure(metrics=(metric,), how=how, scale=scale, shared=shared),
        less_is_better=True,
        on_page=on_page,
        order=order,
    )


def _total(name: str, label: str, definition: str, metric: str, order: int) -> Response:
    return Response(
        name=name,
        label=label,
        unit="MiB",
        definition=definition,
        source="samples",
        measure=Measure(metrics=(metric,), how="integral", scale=1 / MIB),
        less_is_better=True,
        on_page=False,
        order=order,
    )


READ = "Read from a database node's own disk, or from storage for its processes where it has none"
WRITTEN = "Written to a database node's own disk, or by its processes, to be stored, where it has none"
DEVICES = "disks of a database node's machine"

RESPONSES = (
    _of("disk_read_kb_per_s_mean", "disk reads of a database node", READ, "node_disk_read_bytes_per_s", 120),
    _of("disk_read_kb_per_s_max_30s", "highest disk reads of a database node over 30 s", READ,
        "node_disk_read_bytes_per_s", 121, "max_30s"),
    _of("disk_written_kb_per_s_mean", "disk writes of a database node", WRITTEN, "node_disk_write_bytes_per_s", 122,
        on_page=True),
    _of("disk_written_kb_per_s_max_30s", "highest disk writes of a database node over 30 s", WRITTEN,
        "node_disk_write_bytes_per_s", 123, "max_30s"),
    _total("disk_read_mb_total", "disk reads of all database nodes", "Read from the own disks of all database "
           "nodes, or from storage for their processes.", "node_disk_read_bytes_per_s", 124),
    _total("disk_written_mb_total", "disk writes of all database nodes", "Written to the own disks of all database "
           "nodes, or by their processes, to be stored.", "node_disk_write_bytes_per_s", 125),
    _of("machine_disk_read_kb_per_s_mean", "reads of a database node's disks", f"Read from the {DEVICES}, as "
        "`iostat -d` has it", "machine_disk_read_bytes_per_s", 126, more=SHARED, shared="disk"),
    _of("machine_disk_written_kb_per_s_mean", "writes of a database node's disks", f"Written to the {DEVICES}, as "
        "`iostat -d` has it", "machine_disk_write_bytes_per_s", 127, more=SHARED, shared="disk"),
    _of("machine_disk_written_kb_per_s_max_30s", "highest writes of a database node's disks over 30 s",
        f"Written to the {DEVICES}", "machine_disk_write_bytes_per_s", 128, "max_30s", more=SHARED, shared="disk"),
    _of("machine_disk_reads_per_s_mean", "read operations of a database node's disks",
        f"Reads that the {DEVICES} completed", "machine_disk_read_operations_per_s", 129, unit="reads/s", scale=1.0,
        more=SHARED, shared="disk"),
    _of("machine_disk_writes_per_s_mean", "write operations of a database node's disks",
        f"Writes that the {DEVICES} completed", "machine_disk_write_operations_per_s", 130, unit="writes/s", scale=1.0,
        more=SHARED, shared="disk"),
)  # fmt: skip
