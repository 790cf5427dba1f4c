"""Output of the commands without a load: `help`, `print` and `version`."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard import __version__
from steelyard.dropin.stress.parse import distributions, sections
from steelyard.dropin.stress.parse.distributions import Distribution
from steelyard.dropin.stress.parse.refusal import Refused, unknown

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


def overview() -> list[str]:
    """All commands and options."""
    lines = ["Usage:      steelyard stress <command> [options]", "Help usage: steelyard stress help <command>", ""]
    lines.append("---Commands---")
    lines += [f"{one.name:<20} : {one.help}" for one in sections.COMMANDS]
    lines += [f"{name:<20} : {text}" for name, text in sections.SPECIAL.items()]
    lines += ["", "---Options---"]
    lines += [f"{one.name:<21} : {one.help}" for one in sections.OPTIONS]
    return lines


def about(words: Sequence[str]) -> list[str]:
    """Help for a command or an option; all help if none is named. Raises Refused."""
    if not words:
        return overview()
    name = words[0]
    section = sections.command(name) or sections.option(name)
    if name.lower() == "print":
        section = sections.PRINT
    if section is not None:
        return section.help_lines()
    if name.lower() in sections.SPECIAL:
        return ["", f"Usage: {name.lower()}", "", f"  {sections.SPECIAL[name.lower()]}"]
    listed = [*(one.name for one in (*sections.COMMANDS, *sections.OPTIONS)), *sections.SPECIAL]
    raise unknown("help", name, "there is no such command or option", listed)


def table(distribution: Distribution) -> list[str]:
    """Quantiles of a distribution, as lines."""
    lines = ["% of samples    Range       % of total"]
    most = distribution.inverse(1.0) / 100
    for share in SHARES:
        bound = distribution.inverse(share)
        lines.append(f"{share * 100:<16.1f}{bound:<12d}{bound / most if most else 0.0:12.1f}")
    return lines


def special(words: Sequence[str]) -> list[str] | None:
    """The output of a command without a load; None for any other command. Raises Refused."""
    if not words:
        return None
    name = words[0].lower()
    if name in ("help", "-?", "-h", "--help"):
        return about(words[1:])
    if len(words) == 2 and words[1].lower() in ("-?", "help"):
        return about(words[:1])
    if name == "version":
        return [f"Version: steelyard {__version__}"]
    if name == "legacy":
        why = "command lines from before 2.1 are not read; `-o INSERT -n 1000 -t 50 -d IP` is now "
        raise Refused("legacy", " ".join(words), why + "`write n=1000 -rate threads=50 -node IP`")
    if name == "print":
        given = sections.PRINT.read(words[1:])
        return table(distributions.parse(given["dist="], "print dist="))
    return None
