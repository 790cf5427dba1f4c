"""Machines of several laboratories: which blocks each measured, and what that says of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.format import listed
from steelyard.model.trial import TrialRecord


def in_words(records: Sequence[TrialRecord]) -> str:
    """` on 2 machines: 1b2c (blocks 1 and 3) and 4d5e (block 2)`; empty if all trials were measured on one."""
    blocks = _blocks(records)
    if len(blocks) < 2:
        return ""
    named = [
        f"{machine} (block{'s' if len(of) > 1 else ''} {listed([str(block) for block in sorted(of)])})"
        for machine, of in blocks.items()
    ]
    return f" on {len(blocks)} machines: {listed(named)}"


def limits(records: Sequence[TrialRecord]) -> list[str]:
    """A sentence on what is compared on one machine, and what is not; empty if there is only one."""
    named = in_words(records)
    if not named:
        return []
    once = [machine for machine, of in _blocks(records).items() if len(of) == 1]
    with_one = (
        f" Only one block was measured on {listed(once)}: it cannot be separated from its machine." if once else ""
    )
    return [
        f"Blocks were measured{named}. Levels are compared within blocks, that is, by one laboratory where a block has "
        "one machine: a difference between machines is one between blocks. Means of a level are over all machines, and "
        f"their intervals with them.{with_one}"
    ]


def _blocks(records: Sequence[TrialRecord]) -> dict[str, set[int]]:
    """The blocks that each machine measured."""
    blocks: dict[str, set[int]] = {}
    for record in sorted(records, key=lambda record: record.block):
        if record.verdict.final:
            blocks.setdefault(record.machine_id or "not known", set()).add(record.block)
    return blocks
