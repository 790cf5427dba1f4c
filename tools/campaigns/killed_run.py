"""`python -m tools.campaigns.killed_run PHASE NTH DELAY_S TARGET STATE WORDS...`: `steelyard WORDS`, with a kill -9.

DELAY_S after the study has come to PHASE (or `disruption`) for the NTH time, TARGET is killed: `conductor` (this
process), `agent` (a load generator of the study), `node` (a database process), `member` (one of the first nodes),
`joiner` (a node that joins or has joined), `link` (the link program), `driver` (of a job), `worker` (that runs
executors), `holder` (agents that disrupt nodes), `both` (them and this process), or `client` (through which they are
reached elsewhere). Other processes are found by their lease. `network`: the command in `STEELYARD_CAMPAIGN_CUT` is
carried out, and nothing is killed. The last line of standard error says what was killed; if nothing was there to kill,
the line says so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from steelyard.cli.main import main
from steelyard.events.base import Event
from steelyard.events.kept import ActivityBegan
from steelyard.events.shown import PhaseEntered
from steelyard.model.trial import Phase, TrialRecord
from steelyard.progress.publisher import Publisher
from steelyard.store.write import TrialDraft
from steelyard.system.spark_hdfs._configuration import SUBMIT
from steelyard.system.spark_hdfs._configuration import WORKER as WORKER_CLASS
from tools.campaigns.leftovers import processes_of

CONDUCTOR, AGENT, NODE, LINK = "conductor", "agent", "node", "link"
MEMBER, JOINER = "member", "joiner"
DRIVER, WORKER = "driver", "worker"
HOLDER, BOTH, CLIENT, NETWORK = "holder", "both", "client", "network"
CUT_VARIABLE = "STEELYARD_CAMPAIGN_CUT"
WORDS_OF = {
    AGENT: ("steelyard-agent load",),
    NODE: ("steelyard-agent sim", "CassandraDaemon"),
    MEMBER: ("steelyard-agent sim",),
    JOINER: (" --join ",),
    LINK: ("steelyard-agent link ",),
    DRIVER: (SUBMIT,),
    WORKER: (WORKER_CLASS,),
    HOLDER: (" disrupt ",),
    BOTH: (" disrupt ",),
    CLIENT: ("disrupt",),
}
"""What the command line of a target holds."""
KILLED = "killed:"


class Killer:
    """Counts how often a phase was entered, and kills once."""

    def __init__(self, phase: str, nth: int, delay_s: float, target: str, state: Path) -> None:
        self._phase, self._left = phase, nth
        self._delay_s = delay_s
        self._target, self._state = target, state

    def came_to(self, phase: str) -> None:
        """The study has entered a phase."""
        if phase == self._phase:
            self._left -= 1
            if self._left == 0:
                threading.Timer(self._delay_s, self._kill).start()

    def _kill(self) -> None:
        if self._target == NETWORK:
            subprocess.run(os.environ[CUT_VARIABLE].split(), check=True)
        pids = self._pids() if self._target in WORDS_OF else []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
        hit = pids or self._target in (CONDUCTOR, BOTH, NETWORK)
        print(f"{KILLED} {self._target if hit else 'nothing'}", file=sys.stderr, flush=True)
        if self._target in (CONDUCTOR, BOTH):
            os.kill(os.getpid(), signal.SIGKILL)

    def _pids(self) -> list[int]:
        """Of all that disrupt nodes, else of one process."""
        wanted = WORDS_OF[self._target]
        if self._target == CLIENT:  # a child of this process, without the lease in its environment
            children = [pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]
            return [int(pid) for pid in children if wanted[0] in Path(f"/proc/{pid}/cmdline").read_text()]
        running = processes_of(self._state).items()
        # Not the supervisor of a server, in whose command line that of the server is, nor a watchdog.
        named = [(pid, words) for pid, words in running if not any(word in words for word in (" keep ", " watch "))]
        pids = sorted(pid for pid, words in named if any(word in words for word in wanted))
        if self._target in (HOLDER, BOTH):
            return pids
        # Members are the first that were started.
        return pids[:1] if self._target == MEMBER else pids[-1:]


def watched(killer: Killer) -> None:
    """Let the killer see each phase of this process's study: those that are told, and the sealing of a trial."""
    tell, seal = Publisher.tell, TrialDraft.seal

    def telling(self: Publisher, event: Event) -> None:
        tell(self, event)
        if isinstance(event, PhaseEntered):
            killer.came_to(event.phase)
        if isinstance(event, ActivityBegan):
            killer.came_to(event.kind)

    def sealing(self: TrialDraft, record: TrialRecord) -> TrialRecord:
        killer.came_to(Phase.SEAL)
        return seal(self, record)

    Publisher.tell, TrialDraft.seal = telling, sealing  # type: ignore[method-assign]


def run(words: Sequence[str]) -> None:
    """The whole command; ends the process."""
    phase, nth, delay_s, target, state, *command = words
    watched(Killer(phase, int(nth), float(delay_s), target, Path(state)))
    sys.argv = ["steelyard", *command]
    main()


if __name__ == "__main__":
    run(sys.argv[1:])
