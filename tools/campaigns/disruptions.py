"""The campaign of disruptions: whoever is killed while nodes are disrupted, nothing stays.

A study of one trial that is disrupted for `FOR_S` is run, and killed, `KILLS` times at a random moment from the
beginning of the disruption to its end: its conductor, the agents that hold the disruption, both, the client through
which an agent is reached (docker, ssh), or the network between (ssh). `FOR_S` + 5 s after the kill, without any
command, no process stands still, no packet filter, record, holder or watchdog of it is left. Then the same command must
end with the trial valid, `verify` must find nothing, and nothing of a lease may be left. 44 cases of 5 kills each: 120
on this machine, 50 in containers and 50 on machines behind sshd, over the kinds of disruption.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.contract import shelf as shelves

from steelyard.node.folders import STATE_VARIABLE
from steelyard.store import Store
from tools.campaigns.campaign import LIMITS_LIFTED, Case, Finding, Outcome
from tools.campaigns.command import STEELYARD, apart
from tools.campaigns.killed_run import BOTH, CLIENT, CONDUCTOR, CUT_VARIABLE, HOLDER, KILLED, NETWORK
from tools.campaigns.leftovers import left_behind, processes_of, unknown

NAME: Final = "disrupted"
AT_S, FOR_S, HEALS_WITHIN_S = 10.0, 2.0, 5.0
KILLS: Final = 5
NODE_KINDS: Final = ("pause", "kill", "partition")
SETTINGS: Final[Mapping[str, str]] = {
    "packet": "loss_percent = 20",
    "stress-memory": "mb = 16",
    "disk-full": "free_mb = 2",
}
SITES: Final[Mapping[str, str]] = {
    "local": 'name = "local"\nmode = "namespaces"',
    "docker": 'name = "docker"\ndaemon = "own"\nnetwork = "bridge"',
    "ssh": 'name = "ssh"\ninventory = "shelf.toml"',
}
KINDS: Final[Mapping[str, Sequence[str]]] = {
    "local": (*NODE_KINDS, "packet", "stress-cpu", "stress-memory", "disk-full", "noop") * 3,
    "docker": (*NODE_KINDS, "stress-cpu", "stress-memory") * 2,
    "ssh": (*NODE_KINDS, "packet", "partition") * 2,
}
"""A case each."""
LAST: Final[Mapping[str, Sequence[str]]] = {
    "local": (HOLDER,),
    "docker": (HOLDER, CLIENT),
    "ssh": (HOLDER, CLIENT, NETWORK),
}
"""The last kill of a case leaves the conductor, which repeats the trial; those before it do not."""
STUDY: Final = """
[study]
name = "{name}"
question = "What does a kill leave?"
[site]
{site}
nodes = 3
[system]
name = "simulated"
service_us = 500
[workload]
name = "ycsb-c"
records = 100
[load]
schedule = "constant"
rate_per_s = 100
threads = 64
timeout_ms = 1000
duration_s = 16
[disruption]
name = "{kind}"
at_s = {at_s}
for_s = {for_s}
recover_s = 3
{settings}
{node}
[server_warm_up]
mode = "off"
[design]
starts = 1
trials = 1
"""
RUN_LIMIT_S: Final = 120.0


class Disruptions:
    """Kills of one study while its nodes are disrupted, and what stays."""

    name = "disruptions"
    about = "kill -9 of conductors, holders and connections while nodes are disrupted: this machine, containers, sshd"
    limit_s = 900.0

    def cases(self, seed: int) -> Sequence[Case]:
        """24 on this machine, 10 in containers, 10 behind sshd."""
        drawn = random.Random(seed)
        return [
            Case(
                f"{site}-{number:02}-{kind}", f"{site}: {kind}",
                {"site": site, "kind": kind, "seed": drawn.random(), "last": LAST[site][number % len(LAST[site])]},
            )
            for site, kinds in KINDS.items()
            for number, kind in enumerate(kinds, start=1)
        ]  # fmt: skip

    @contextlib.contextmanager
    def world(self, folder: Path) -> Iterator[shelves.Shelf | None]:
        """Machines behind sshd, where this one can make them."""
        del folder
        try:
            with shelves.running(4) as shelf:
                yield shelf
        except FileNotFoundError:
            yield None

    def run(self, world: shelves.Shelf | None, case: Case, folder: Path) -> Outcome:
        """Kill it again and again, then let it end."""
        return _Disrupted(world, case, folder).outcome()


class _Disrupted:
    """One study, and what came of its kills."""

    def __init__(self, shelf: shelves.Shelf | None, case: Case, folder: Path) -> None:
        self._site, kind = str(case.values["site"]), str(case.values["kind"])
        self._drawn, self._last = random.Random(case.values["seed"]), str(case.values["last"])
        self._state, self._folder, self._shelf = folder / "state", folder, shelf
        self._study = folder / f"{NAME}.toml"
        node = "" if self._site == "ssh" else "[node]\ncpus = 0.5\nmemory_mb = 256"
        node += "\ndisk_gb = 0.1" if kind == "disk-full" else ""
        text = STUDY.format(
            name=NAME,
            site=SITES[self._site],
            kind=kind,
            at_s=AT_S,
            for_s=FOR_S,
            settings=SETTINGS.get(kind, ""),
            node=node,
        )
        self._study.write_text(text + LIMITS_LIFTED)
        if self._site == "ssh" and shelf is not None:
            inventory = shelf.inventory().read_text().replace('"ssh_config"', f'"{shelf.ssh_config}"')
            (folder / "shelf.toml").write_text(inventory)
        self._findings: list[Finding] = []

    def outcome(self) -> Outcome:
        if self._site == "ssh" and self._shelf is None:
            return Outcome((Finding("campaign", "no machines behind sshd can be made here"),))
        targets = [self._drawn.choice((CONDUCTOR, BOTH)) for _ in range(KILLS - 1)]
        targets.append(self._last)
        happened = [self._killed(target) for target in targets]
        code, printed = self._call("run", *self._words())
        if code != 0:
            self._fault("unlike", f"the same command again: exit {code}: {printed[-600:]}")
        code, printed = self._call("verify", str(self._folder / "store" / NAME))
        if code != 0:
            self._fault("unlike", f"verify: exit {code}: {printed[-600:]}")
        outcomes = [str(record.verdict.outcome) for record in Store(self._folder / "store" / NAME).trials()]
        if outcomes.count("valid") != 1:
            self._fault("lost", f"trials: {outcomes}")
        for name in [*left_behind(self._state), *unknown(self._state)]:
            self._fault("leftover", name)
        return Outcome(tuple(self._findings), {"kills": happened, "outcomes": outcomes})

    def _killed(self, target: str) -> str:
        """A run with a kill in it, and a look at what stays."""
        delay_s = self._drawn.uniform(*((0.0, FOR_S + 1.0) if target in (CONDUCTOR, BOTH) else (0.7, FOR_S)))
        cut = self._cut("down") if target == NETWORK and self._shelf else ()
        environment = {**os.environ, STATE_VARIABLE: str(self._state), "NO_COLOR": "1", CUT_VARIABLE: " ".join(cut)}
        words = ("disruption", "1", f"{delay_s:.3f}", target, str(self._state), "run", *self._words())
        argv = (sys.executable, "-m", "tools.campaigns.killed_run", *words)
        said = self._folder / "said.txt"
        with said.open("w") as out:
            process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        deadline_s = time.monotonic() + RUN_LIMIT_S
        while KILLED not in said.read_text() and process.poll() is None and time.monotonic() < deadline_s:
            time.sleep(0.02)
        lines = [line for line in said.read_text().splitlines() if line.startswith(KILLED)]
        if not lines:
            process.kill()
            self._fault("campaign", f"{target}: never came to it: {said.read_text()[-600:]}")
            return f"{target}: never"
        # A conductor that lives disrupts the next attempt.
        ours, lives = held(self._state), target not in (CONDUCTOR, BOTH)
        time.sleep(FOR_S + HEALS_WITHIN_S)
        stays = held(self._state)
        for name in sorted(stays & ours if lives else stays):
            self._fault("leftover", f"{FOR_S + HEALS_WITHIN_S:g} s after {lines[-1]} at {delay_s:.2f} s: {name}")
        if target == NETWORK and self._shelf:
            subprocess.run(self._cut("up"), check=True)
        try:
            code = process.wait(RUN_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
            self._fault("late", f"{lines[-1]}: the run is not over after {RUN_LIMIT_S:g} s")
        if (code == -signal.SIGKILL) == lives or "Traceback" in said.read_text():
            self._fault("unlike", f"{lines[-1]}: exit {code}: {said.read_text()[-600:]}")
        return f"{lines[-1]} at {delay_s:.2f} s, exit {code}, {len(ours)} held"

    def _cut(self, way: str) -> tuple[str, ...]:
        """The command that takes this machine's line to the shelf down, or up."""
        assert self._shelf is not None
        assert self._shelf.switch is not None
        pid = str(self._shelf.switch.pid)
        return ("nsenter", "--target", pid, "--net", "ip", "link", "set", "uplink", way)

    def _words(self) -> tuple[str, ...]:
        return (str(self._study), "--store", str(self._folder / "store"), "--plain")

    def _call(self, *words: str) -> tuple[int | None, str]:
        return apart((*STEELYARD, *words), self._state, RUN_LIMIT_S)

    def _fault(self, kind: str, text: str) -> None:
        self._findings.append(Finding(kind, text))


def held(state: Path) -> set[str]:
    """What disrupts nodes of this state's leases: processes that stand still, packet filters, records, and the
    processes that hold or watch."""
    leases = [path.stem for path in state.glob("leases/*.json")]
    found: set[str] = set()
    networks: dict[int, Path] = {}
    for pid, words in processes_of(state).items():
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text()
            if stat.rpartition(")")[2].split()[0] == "T":
                found.add(f"process {pid} stands still: {words[:80]}")
            network = Path(f"/proc/{pid}/ns/net")
            networks.setdefault(network.stat().st_ino, network)
            found |= {f"record {path.name}" for lease in leases for path in _records(Path(f"/proc/{pid}/root"), lease)}
        if " disrupt " in words:
            found.add(f"process {pid}: {words[:80]}")
    for path in Path("/run/netns").glob("*"):
        if any(lease in path.name for lease in leases):
            networks.setdefault(path.stat().st_ino, path)
    for number, network in networks.items():
        listed = ("nsenter", f"--net={network}", "nft", "list", "tables")
        tables = subprocess.run(listed, capture_output=True, text=True, check=False).stdout
        found |= {f"filter {line} of network {number}" for line in tables.splitlines() if "steelyard" in line}
    return found | {f"record {path.name}" for lease in leases for path in _records(Path("/"), lease)}


def _records(root: Path, lease: str) -> list[Path]:
    return list(root.glob(f"dev/shm/steelyard-disruptions-*/{lease}.*"))


CAMPAIGN: Final = Disruptions()
