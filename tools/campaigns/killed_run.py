"""`python -m tools.campaigns.killed_run PHASE NTH DELAY_S TARGET STATE WORDS...`: `steelyard WORDS`, with a kill -9.

DELAY_S after the study has come to PHASE for the NTH time, TARGET is killed: `conductor` (this process), `agent` (a
load generator of the study), `node` (a database process), `member` (one of the first nodes), `joiner` (a node that
joins or has joined), `link` (the link program), `driver` (of a job) or `worker` (that runs executors). Other processes
are found by their lease. The last line of standard error says what was killed; if nothing was there to kill, the line
says so.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from steelyard.cli.main import main
from steelyard.events.base import Event
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
WORDS_OF = {
    AGENT: ("steelyard-agent load",),
    NODE: ("steelyard-agent sim", "CassandraDaemon"),
    MEMBER: ("steelyard-agent sim",),
    JOINER: (" --join ",),
    LINK: ("steelyard-agent link ",),
    DRIVER: (SUBMIT,),
    WORKER: (WORKER_CLASS,),
}
"""What the command line of a target holds."""
KILLED = "killed:"


class Killer:
    """Counts how often a phase was entered, and kills once."""

    def __init__(self, phase: Phase, nth: int, delay_s: float, target: str, state: Path) -> None:
        self._phase, self._left = phase, nth
        self._delay_s = delay_s
        self._target, self._state = target, state

    def came_to(self, phase: Phase) -> None:
        """The study has entered a phase."""
        if phase == self._phase:
            self._left -= 1
            if self._left == 0:
                threading.Timer(self._delay_s, self._kill).start()

    def _kill(self) -> None:
        if self._target == CONDUCTOR:
            print(f"{KILLED} conductor", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        wanted = WORDS_OF[self._target]
        # Not the supervisor of a server, in whose command line that of the server is.
        running = [(pid, words) for pid, words in processes_of(self._state).items() if " keep " not in words]
        pids = sorted(pid for pid, words in running if any(word in words for word in wanted))
        # Members are the first that were started.
        for pid in pids[:1] if self._target == MEMBER else pids[-1:]:
            os.kill(pid, signal.SIGKILL)
        print(f"{KILLED} {self._target if pids else 'nothing'}", file=sys.stderr, flush=True)


def watched(killer: Killer) -> None:
    """Let the killer see each phase of this process's study: those that are told, and the sealing of a trial."""
    tell, seal = Publisher.tell, TrialDraft.seal

    def telling(self: Publisher, event: Event) -> None:
        tell(self, event)
        if isinstance(event, PhaseEntered):
            killer.came_to(event.phase)

    def sealing(self: TrialDraft, record: TrialRecord) -> TrialRecord:
        killer.came_to(Phase.SEAL)
        return seal(self, record)

    Publisher.tell, TrialDraft.seal = telling, sealing  # type: ignore[method-assign]


def run(words: Sequence[str]) -> None:
    """The whole command; ends the process."""
    phase, nth, delay_s, target, state, *command = words
    watched(Killer(Phase(phase), int(nth), float(delay_s), target, Path(state)))
    sys.argv = ["steelyard", *command]
    main()


if __name__ == "__main__":
    run(sys.argv[1:])
