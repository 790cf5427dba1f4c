"""`python -m tools.campaigns NAME`: carry out a campaign, resume it, and print its summary."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.node.signals import as_keyboard_interrupt
from tools.campaigns import damage, disruptions, full_disk, hostile_stores, kills, orders, servers, studies
from tools.campaigns.campaign import Campaign
from tools.campaigns.runner import carry_out, table

CAMPAIGNS: dict[str, Campaign[Any]] = {
    one.name: one
    for one in (
        damage.CAMPAIGN,
        studies.CAMPAIGN,
        orders.CAMPAIGN,
        servers.CAMPAIGN,
        full_disk.CAMPAIGN,
        hostile_stores.CAMPAIGN,
        kills.CAMPAIGN,
        disruptions.CAMPAIGN,
    )
}
SEED = 20261122


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 if a case has a finding."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.campaigns",
        description=__doc__,
        epilog="; ".join(f"{name}: {campaign.about}" for name, campaign in CAMPAIGNS.items()),
    )
    parser.add_argument("name", choices=sorted(CAMPAIGNS), help="which campaign")
    parser.add_argument("--file", type=Path, help="outcomes, JSON lines (default: target/campaigns/NAME.jsonl)")
    parser.add_argument("--scratch", type=Path, help="where cases are carried out (default: the temporary folder)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--anew", action="store_true", help="do every case again; else those done with this seed stay")
    parser.add_argument("--only", default="", help="only cases whose name or stratum holds this")
    parser.add_argument("--list", action="store_true", help="print the cases, run nothing")
    asked = parser.parse_args(arguments)
    campaign = CAMPAIGNS[asked.name]
    cases = [case for case in campaign.cases(asked.seed) if asked.only in case.name or asked.only in case.stratum]
    if asked.list:
        for case in cases:
            print(f"{case.stratum:24} {case.name}")
        return 0
    if not cases:
        parser.error(f"no case of {campaign.name} holds {asked.only!r}: --list prints all")
    path = asked.file or _file(campaign.name)
    if asked.anew:
        path.unlink(missing_ok=True)
    lines = list(carry_out(campaign, cases, path, asked.scratch, seed=asked.seed).values())
    print(table(lines))
    for line in lines:
        for finding in line["findings"]:
            print(f"{line['case']}: {finding['kind']}: {finding['text']}")
    return 1 if any(line["findings"] for line in lines) else 0


def _file(name: str) -> Path:
    return Path("target") / "campaigns" / f"{name}.jsonl"


if __name__ == "__main__":
    # Ended from outside, a campaign takes off what it mounted and started, as after ctrl-C.
    with as_keyboard_interrupt():
        sys.exit(main())
