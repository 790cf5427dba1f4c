"""The campaign of kills: a study loses its conductor, its load generator, a database process, its link or a process of
its jobs in every phase.

A study of two trials per cluster is run with a kill -9 in it (`killed_run`). A killed conductor is followed by the same
command, which must end with every trial valid; a killed generator is repeated by the same run; a killed node is a
result, named, and the study goes on. Afterwards the store verifies, no trial that was sealed has changed, and nothing
is left on the machine. 74 kills on simulated clusters, 32 on real Cassandra; each phase at least five times. 22 more
on simulated nodes that the link program joins, which have disks of their own where the kernel lets them: of the
conductor in each phase, and of the link program, whose trial is void and is repeated. 60 more on simulated clusters
that grow and shrink: of the conductor, of the node that joins, and of a member, over all marks. 20 more while jobs run
on real Spark and HDFS: of the conductor, of a job's driver, which is a failed job, and of a worker, which is a result.
"""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Final

from steelyard.model.trial import Phase
from steelyard.store import Store, layout
from tools.campaigns.campaign import LIMITS_LIFTED, Case, Finding, Outcome, no_world
from tools.campaigns.command import STEELYARD, apart
from tools.campaigns.killed_run import AGENT, CONDUCTOR, DRIVER, JOINER, KILLED, LINK, MEMBER, NODE, WORKER
from tools.campaigns.leftovers import left_behind, unknown

NAME: Final = "killed"
JOBS: Final = "jobs"
STUDIES: Final[Mapping[str, str]] = {
    "simulated": """
[system]
name = "simulated"
service_us = 300
warm_up = "2:50"
[workload]
name = "ycsb-a"
records = 200
[load]
schedule = "poisson"
threads = 16
capacity_fraction = 0.5
capacity_threads = 8
capacity_s = 0.5
duration_s = 1.0
warm_up_s = 0.5
[server_warm_up]
mode = "on"
steady_s = 0.5
deadline_s = 3
[factors]
nodes = [1, 2]
[node]
cpus = 1.0
""",
    "cassandra": """
[system]
name = "cassandra"
heap_mb = 256
[workload]
name = "ycsb-a"
records = 500
[load]
threads = 4
duration_s = 2.0
warm_up_s = 0.5
[server_warm_up]
mode = "on"
steady_s = 1
deadline_s = 5
[factors]
nodes = [1]
[node]
cpus = 1.0
""",
    "linked": """
[system]
name = "simulated"
service_us = 300
[workload]
name = "ycsb-a"
records = 100
[load]
threads = 4
duration_s = 1.0
warm_up_s = 0.5
[server_warm_up]
mode = "off"
[factors]
nodes = [1]
[node]
cpus = 1.0
memory_mb = 256
disk_gb = 0.1
[link]
name = "802.11g"
""",
    "growing": """
[system]
name = "simulated"
service_us = 300
boot_s = 0.5
ring_delay_s = 0.5
data_mb = 3
stream_mb_per_s = 1
[workload]
name = "ycsb-c"
records = 100
[load]
schedule = "constant"
rate_per_s = 200
threads = 16
duration_s = 10.0
[server_warm_up]
mode = "off"
[factors]
nodes = [2]
[policy]
name = "scheduled"
times = [[1, 3], [4, 2]]
[node]
cpus = 1.0
""",
    JOBS: """
[system]
name = "spark-hdfs"
[workload]
name = "wordcount"
input_mb = 2
[load]
engine = "job"
operations = 1
timeout_ms = 120000
[factors]
nodes = [2]
[node]
cpus = 1.0
memory_mb = 1536
""",
}
FRAME: Final = """
[study]
name = "{name}"
question = "What does a kill cost?"
[site]
name = "local"
{system}
[data]
state = "{state}"
[design]
starts = 1
trials = 2
"""
LOADED: Final = (Phase.SERVER_WARM_UP, Phase.WARM_UP, Phase.MEASURE)
"""Phases in which a load generator runs for long enough to be killed."""
PHASES: Final[tuple[Phase, ...]] = tuple(one for one in Phase if one not in (Phase.IDLE, Phase.READ_BACK))
"""Of a study without an idle time."""
CONDUCTOR_KILLS: Final = {
    "simulated": (*PHASES * 4, Phase.CAPACITY),
    "cassandra": tuple(one for one in PHASES if one != Phase.CAPACITY) * 2,
    "linked": tuple(one for one in PHASES if one not in (Phase.CAPACITY, Phase.SERVER_WARM_UP)),
    "growing": (Phase.MEASURE,) * 30,
    JOBS: (Phase.DEPLOY, Phase.POPULATE, Phase.SETTLE, *(Phase.MEASURE,) * 3, Phase.COLLECT, Phase.WIPE),
}
OTHER_KILLS: Final = {
    "simulated": {AGENT: 8, NODE: 9},
    "cassandra": {AGENT: 3, NODE: 3},
    "linked": {LINK: 10},
    "growing": {JOINER: 15, MEMBER: 15},
    JOBS: {DRIVER: 6, WORKER: 6},
}
"""Kills of anything but the conductor."""
LINK_PHASES: Final = (Phase.WARM_UP, Phase.MEASURE, Phase.SETTLE, Phase.DEPLOY, Phase.WIPE)
BROKEN_LINK: Final = "the link program exited with code -9"
LONGEST_DELAY_S: Final = {Phase.MEASURE: 1.2, Phase.SERVER_WARM_UP: 1.5, Phase.DEPLOY: 1.0, Phase.POPULATE: 0.5}
"""Where in a phase is killed, at random up to this; other phases take a fraction of a second."""
LONGEST_DELAY_S_OF: Final[Mapping[str, Mapping[Phase, float]]] = {
    "growing": {Phase.MEASURE: 8.5},
    JOBS: {Phase.MEASURE: 7.0, Phase.DEPLOY: 8.0},
}
"""The same where phases are longer: over all marks of a join and of a leave; from the start of a driver to the check of
what its job has written."""
SHORT_S: Final = 0.05
RUN_LIMIT_S: Final = 240.0


class Kills:
    """A process of a study that is killed in one phase."""

    name = "kills"
    about = "kill -9 of conductor, load generator and nodes in every phase, simulated, real Cassandra and Spark"
    limit_s = 600.0

    def cases(self, seed: int) -> Sequence[Case]:
        """74 on simulated clusters, 32 on Cassandra, 22 over the link program, 60 on clusters that grow, 20 on jobs."""
        drawn = random.Random(seed)
        return [case for system in STUDIES for case in _cases(system, drawn)]

    def world(self, folder: Path) -> AbstractContextManager[None]:
        """None: every case has its own store and state."""
        return no_world(folder)

    def run(self, world: None, case: Case, folder: Path) -> Outcome:
        """Run the study with the kill in it, then what a user would do, then look at what is there."""
        return _Killed(case, folder).outcome()


def _cases(system: str, drawn: random.Random) -> list[Case]:
    targets = [(phase, CONDUCTOR) for phase in CONDUCTOR_KILLS[system]]
    for target, kills in OTHER_KILLS[system].items():
        phases = {AGENT: LOADED, NODE: LOADED, LINK: LINK_PHASES}.get(target, (Phase.MEASURE,))
        targets += [(phases[number % len(phases)], target) for number in range(kills)]
    cases = []
    for number, (phase, target) in enumerate(targets, start=1):
        longest_s = {**LONGEST_DELAY_S, **LONGEST_DELAY_S_OF.get(system, {})}.get(phase, SHORT_S)
        delay_s = drawn.uniform(0, longest_s)
        values = {"system": system, "phase": str(phase), "target": target, "delay_s": round(delay_s, 3)}
        cases.append(Case(f"{system}-{number:02}-{target}-{phase}", f"{system}: {target}", values))
    return cases


class _Killed:
    """One kill, and what came of it."""

    def __init__(self, case: Case, folder: Path) -> None:
        self._values = case.values
        self._folder = folder
        self._state = folder / "state"
        self._store = folder / "store" / NAME
        self._study = folder / f"{NAME}.toml"
        filled = case.values["phase"] == Phase.POPULATE and case.values["system"] != JOBS
        state = "reload" if filled else "restore"
        self._study.write_text(
            FRAME.format(name=NAME, system=STUDIES[case.values["system"]], state=state) + LIMITS_LIFTED
        )
        self._findings: list[Finding] = []
        self._facts: dict[str, object] = {}

    def outcome(self) -> Outcome:
        target = str(self._values["target"])
        words = ("run", str(self._study), "--store", str(self._store.parent), "--plain")
        where = (str(self._values["phase"]), "1", str(self._values["delay_s"]), target, str(self._state))
        code, printed = self._call(sys.executable, "-m", "tools.campaigns.killed_run", *where, *words)
        happened = [line for line in printed.splitlines() if line.startswith(KILLED)]
        if not happened:
            self._fault("campaign", f"the study never came to {self._values['phase']}: exit {code}: {printed[-300:]}")
        self._facts |= {"killed": happened[-1:], "exit": code}
        sealed = self._sealed()
        if target == CONDUCTOR:
            self._expect(code, (-signal.SIGKILL,), "the killed run", printed)
            code, printed = self._call(*STEELYARD, *words)
            self._expect(code, (0,), "the same command again", printed)
        else:
            # 1: a lost node or job is a result; a lost generator or link is repeated.
            lost = (0,) if target in (AGENT, LINK) else (0, 1)
            self._expect(code, lost, f"the run that lost a {target}", printed)
        if target == LINK and self._values["phase"] in (Phase.WARM_UP, Phase.MEASURE):
            self._void_by_its_link()
        self._unchanged(sealed, happened)
        verified, differences = self._call(*STEELYARD, "verify", str(self._store))
        self._expect(verified, (0,), "verify", differences)
        for name in [*left_behind(self._state), *unknown(self._state), *self._drafts()]:
            self._fault("leftover", f"{name}: {printed[-600:]}")
        if any(finding.kind == "late" for finding in self._findings):
            # What a command that was ended at its limit holds would outlive this case's folder.
            self._call(*STEELYARD, "clean")
        return Outcome(tuple(self._findings), self._facts)

    def _call(self, *argv: str) -> tuple[int | None, str]:
        """Exit code, None if it was ended at its limit, and what it printed."""
        code, printed = apart(argv, self._state, RUN_LIMIT_S)
        if code is None:
            self._fault("late", f"{' '.join(argv[1:4])}: longer than {RUN_LIMIT_S:g} s")
        return code, printed

    def _expect(self, code: int | None, wanted: Sequence[int], what: str, printed: str) -> None:
        if "Traceback (most recent call last)" in printed or "this was not foreseen" in printed:
            self._fault("traceback", f"{what}: {printed[-600:]}")
        if code is not None and code not in wanted:
            self._fault("unlike", f"{what}: exit {code}: {printed[-600:]}")

    def _sealed(self) -> dict[str, str]:
        """Each sealed trial's record by its folder, as a checksum."""
        paths = self._store.glob(f"trials/[!.]*/{layout.TRIAL_JSON}")
        return {path.parent.name: sha256(path.read_bytes()).hexdigest() for path in paths}

    def _unchanged(self, before: Mapping[str, str], happened: Sequence[str]) -> None:
        after = self._sealed()
        for name, checksum in before.items():
            if after.get(name) != checksum:
                self._fault(
                    "lost", f"trial {name} was sealed before the kill and is {'changed' if name in after else 'gone'}"
                )
        records = Store(self._store).trials() if self._store.is_dir() else ()
        names = [(record.id, record.attempt) for record in records]
        if len(names) != len(set(names)):
            self._fault("silently-wrong", "a trial is there twice")
        counts = [(record.responses.operations, record.responses.errors) for record in records]
        if self._values["system"] == JOBS and any(sum(count) > 1 for count in counts):
            self._fault("silently-wrong", f"a job counts twice: {counts} operations and errors")
        if "killed: driver" in happened and sum(errors for _, errors in counts) != 1:
            self._fault("silently-wrong", f"the killed driver is not one failed job: {counts} operations and errors")
        self._facts["outcomes"] = [str(record.verdict.outcome) for record in records]
        activities = [activity for record in records for activity in record.activities]
        self._facts["activities"] = [f"{one.kind} {one.outcome}" for one in activities]
        if self._values["target"] == CONDUCTOR and any(one.outcome == "failed" for one in activities):
            self._fault("silently-wrong", "a change of size that was interrupted counts as one that failed by itself")

    def _void_by_its_link(self) -> None:
        """The trial that lost its link says so and is void; another attempt of it is valid."""
        records = Store(self._store).trials()
        void = [record for record in records if any(BROKEN_LINK in reason.detail for reason in record.verdict.reasons)]
        valid = {record.id for record in records if record.verdict.outcome == "valid"}
        if len(void) != 1 or void[0].verdict.outcome != "invalid" or void[0].id not in valid:
            reasons = [(str(record.verdict.outcome), record.verdict.reasons) for record in records]
            self._fault("silently-wrong", f"no trial is void by its link and repeated: {reasons}")

    def _drafts(self) -> list[str]:
        return [f"draft {path.name}" for path in self._store.glob("trials/.*")]

    def _fault(self, kind: str, text: str) -> None:
        self._findings.append(Finding(kind, text))


CAMPAIGN: Final = Kills()
