"""Arguments and options of `steelyard load`, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli import completion

WorkloadName = Annotated[
    str | None,
    typer.Argument(
        metavar="WORKLOAD",
        help="A workload file (TOML) or a name such as ycsb-a; needed unless --order is given.",
        autocompletion=completion.workloads,
    ),
]
Contact = Annotated[
    list[str] | None,
    typer.Option(
        "--contact",
        "-c",
        metavar="ADDRESS[:PORT]",
        help="A node; several with commas. The default port is the protocol's. Token-aware routing needs all nodes.",
    ),
]
Create = Annotated[bool, typer.Option("--create", help="Create keyspace and tables where they are missing.")]
Populate = Annotated[
    bool,
    typer.Option("--populate", help="Fill the tables first, then stop unless --duration or --operations is given."),
]
ShowCount = Annotated[
    int | None, typer.Option("--show", min=1, metavar="N", help="Print the first N operations; send nothing.")
]
OrderFile = Annotated[
    Path | None, typer.Option("--order", metavar="FILE", help="Run an order (JSON) instead of a workload.")
]
Threads = Annotated[
    int | None, typer.Option("--threads", "-t", min=1, metavar="N", help="At most N operations in flight.")
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", metavar="RATE", help="Offer this many operations per second, however slow the answers are."),
]
Schedule = Annotated[
    str | None,
    typer.Option(
        "--schedule", metavar="NAME", help="When operations are due: closed, constant, poisson, ramp, steps, sine."
    ),
]
Duration = Annotated[
    float | None,
    typer.Option(
        "--duration",
        "-d",
        metavar="SECONDS",
        help="Drive load for this long; 10 s by default, unless --operations is given.",
    ),
]
Operations = Annotated[
    int | None, typer.Option("--operations", "-n", min=1, metavar="N", help="Stop after N operations.")
]
WarmUp = Annotated[
    float | None,
    typer.Option("--warm-up", metavar="SECONDS", help="Drive load for this long first; counted separately."),
]
Consistency = Annotated[
    str | None,
    typer.Option("--consistency", metavar="LEVEL", help="Consistency of reads and writes, such as ONE or QUORUM."),
]
Protocol = Annotated[
    str | None,
    typer.Option("--protocol", metavar="NAME", help="What servers speak: cql, resp, http, etcd or postgresql."),
]
ReplicationFactor = Annotated[
    int,
    typer.Option(
        "--replication-factor", min=1, metavar="N", help="Copies of each row in the keyspace that --create makes."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Change a setting of the workload (records=1000), or load.NAME as in a study's [load].",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of the random operations.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, metavar="N", help="Threads of the load generator.")]
