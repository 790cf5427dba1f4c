"""Examples of every command, as its help shows them: a line to type, with its effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

EXAMPLES: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "": (
        ("steelyard check studies/quickstart.toml", "What would this study do, and how long would it take?"),
        ("steelyard run studies/quickstart.toml", "Measure; the same command resumes."),
        ("steelyard report store/quickstart", "Write the page that answers the question."),
    ),
    "setup": (
        ("steelyard setup cassandra", "Fetch Java and Cassandra."),
        ("steelyard setup latte", "Fetch another load generator."),
    ),
    "check": (
        ("steelyard check studies/quickstart.toml", "Treatments, order, time, memory, disk."),
        ("steelyard check studies/richardson2017.toml --scale 0.01", "The same for a small trial run of the study."),
        ("steelyard check mine.toml --without-missing", "Without levels whose part does not exist yet."),
        ("steelyard check studies/quickstart.toml --json", "Everything as JSON."),
        ("steelyard check mine.toml --trust", "Execute the Python files that it names as plug-ins."),
    ),
    "run": (
        ("steelyard run studies/quickstart.toml", "Measure what is missing, into store/quickstart."),
        ("steelyard run studies/srinadhuni2018.toml --scale 0.01", "Try a long study with 1% of its data."),
        ("steelyard run studies/simulated.toml --store /tmp/try --plain", "Another folder; log lines."),
    ),
    "load": (
        ("steelyard load ycsb-a -c 10.0.0.1 --create --populate", "Create the tables and fill them."),
        ("steelyard load ycsb-a -c 10.0.0.1 --rate 2000 -d 60", "Offer 2,000 operations per second for 60 s."),
        ("steelyard load studies/workloads/timeseries.toml --show 5", "Print five operations; send nothing."),
    ),
    "status": (
        ("steelyard status store/quickstart", "Progress, and why trials are not valid."),
        ("steelyard status store/quickstart --all", "The same with every reason in full."),
    ),
    "report": (
        ("steelyard report store/quickstart", "Write store/quickstart/report.html."),
        ("steelyard report store/quickstart --tables t --figures f", "Tables and figures as files, too."),
        ("steelyard report store/quickstart --json", "Every table as JSON on standard output."),
    ),
    "export": (
        ("steelyard export store/quickstart --parquet trials.parquet", "One row per trial, for DuckDB, R and pandas."),
        ("steelyard export store/quickstart --openmetrics load.om", "Samples and seconds, for Grafana."),
        (
            "steelyard export store/quickstart --hdr logs --markdown page.md",
            "Histogram logs, and the answer on a page.",
        ),
    ),
    "serve": (
        ("steelyard serve", "All studies below ./store; prints the address to open."),
        ("steelyard serve store/quickstart --open", "One study, opened in the browser."),
        ("steelyard serve --port 0", "On any free port."),
    ),
    "gate": (
        ("steelyard gate store/gate", "This commit against main: the two builds of studies/gate.toml."),
        ("steelyard gate store/after --against store/before --margin 5%", "Two stores; up to 5% is not a loss."),
        (
            "steelyard gate store/gate --response time,p99 --junit gate.xml",
            "Two responses, a file for a service.",
        ),
    ),
    "compare": (
        ("steelyard compare store/before store/after", "Two stores, treatment by treatment."),
        ("steelyard compare store/quickstart --a nodes=1 --b nodes=2", "Two treatments of one store."),
        ("steelyard compare store/quickstart richardson2017", "Own results against published ones."),
    ),
    "verify": (
        ("steelyard verify store/quickstart", "Checksums, plan, journal, and every number again."),
        ("steelyard verify store/quickstart --report page.html", "A page that was saved elsewhere, too."),
    ),
    "audit": (
        ("steelyard audit summary.csv", "Do the numbers of this table agree with each other?"),
        ("steelyard audit srinadhuni2018", "The same for a published study."),
    ),
    "reference": (
        ("steelyard reference list", "Every published table that is shipped."),
        ("steelyard reference show richardson2017", "The tables of one study."),
    ),
    "reference list": (
        ("steelyard reference list", "Every shipped table, and where it was published."),
        ("steelyard reference list --json", "The same as JSON."),
    ),
    "reference show": (
        ("steelyard reference show richardson2017", "The tables of one study, with source and caveats."),
        ("steelyard reference show srinadhuni2018 --json", "The same as JSON."),
    ),
    "doctor": (
        ("steelyard doctor", "What this machine can do, and how to fix what it cannot."),
        ("steelyard doctor --site shelf.toml", "Can the machines of this inventory be used? Changes nothing there."),
        ("steelyard doctor --json", "The same as JSON."),
    ),
    "calibrate": (
        ("steelyard calibrate", "Measure the load engine for 20 s, and keep the result."),
        ("steelyard calibrate --seconds 60", "The same for longer, on a machine that is not quiet."),
    ),
    "clean": (
        ("steelyard clean --dry-run", "What is left over?"),
        ("steelyard clean", "Remove it."),
    ),
    "completion": (
        ("steelyard completion bash", 'For ~/.bashrc: eval "$(steelyard completion bash)".'),
        ("steelyard completion zsh", 'For ~/.zshrc, after compinit: eval "$(steelyard completion zsh)".'),
        ("steelyard completion fish", "Save it as ~/.config/fish/completions/steelyard.fish."),
    ),
    "selftest": (("steelyard selftest stall", "Is a stalled server in the figures?"),),
    "selftest stall": (
        ("steelyard selftest stall", "1,000 operations per second for 20 s; the server stops for 2 s."),
        ("steelyard selftest stall --seconds 40 --stall 4 --json", "Longer, and as JSON."),
    ),
}
"""By the words after `steelyard`. Commands whose arguments go through unchanged print the help of the tool that they
stand in for."""
