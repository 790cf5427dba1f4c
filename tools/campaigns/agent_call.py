"""One call of the agent's program, bounded in time, and what must never be said of it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.node import agent
from tools.campaigns.campaign import Finding

ROOT: Final = Path(__file__).resolve().parents[2]
PANIC_CODE: Final = 101
EXAMPLES: Final = ("order.example.json", "phased-order.example.json", "program-order.example.json")


def example(name: str, contact: str) -> dict[str, Any]:
    """An order of the schema's examples, to be carried out against one server, for a second at most."""
    order: dict[str, Any] = json.loads((ROOT / "schema" / name).read_text(encoding="utf-8"))
    order["contacts"] = [contact]
    order["timeout_ms"] = 1000
    return order


@dataclass(frozen=True)
class AgentCall:
    """How a call ended."""

    words: tuple[str, ...]
    code: int | None
    """Exit code; None if it was killed at its limit."""
    out: str
    err: str
    seconds: float

    def findings(self, codes: Sequence[int]) -> list[Finding]:
        """Panics, waits over the limit, other exit codes than these, a failure without a word."""
        what = " ".join(self.words[:1])
        said = (self.err + self.out).strip()
        if self.code is None:
            return [Finding("late", f"{what} was killed after {self.seconds:.0f} s")]
        if "panicked at" in said or self.code == PANIC_CODE or self.code < 0:
            return [Finding("traceback", f"{what}: {self.code}: {said[:300]}")]
        if self.code not in codes:
            return [Finding("unlike", f"{what}: exit code {self.code}: {said[-200:]}")]
        if self.code and not said:
            return [Finding("unlike", f"{what}: exit code {self.code} without a word")]
        return []

    def facts(self) -> list[object]:
        """For a record."""
        return [self.words[0], self.code, round(self.seconds, 2), (self.err + self.out).strip()[-300:]]


def call_agent(order: Mapping[str, Any] | bytes, folder: Path, *words: str, limit_s: float) -> AgentCall:
    """`steelyard-agent WORDS --order FILE`."""
    path = folder / "order.json"
    path.write_bytes(order if isinstance(order, bytes) else json.dumps(order).encode())
    argv = [str(agent.find()), words[0], "--order", str(path), *words[1:]]
    begun_s = time.monotonic()
    try:
        done = subprocess.run(argv, capture_output=True, timeout=limit_s, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        return AgentCall(words, None, _text(late.stdout), _text(late.stderr), time.monotonic() - begun_s)
    return AgentCall(words, done.returncode, _text(done.stdout), _text(done.stderr), time.monotonic() - begun_s)


def _text(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace")
