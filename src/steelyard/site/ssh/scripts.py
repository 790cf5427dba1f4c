"""Commands for a machine before the agent is there: scripts of plain sh, and the meaning of their lines.

Each script takes arguments, never text put into it, and touches nothing outside Steelyard's own folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

BUSY = 4
"""Exit code of CLAIM: another lease has the machine."""
SAME_MACHINE = 5
"""Exit code of CLAIM: this lease has the machine already, under another name."""
NO_AGENT = 6
"""Exit code of RELEASE: there are files of the lease, and no agent that runs and could remove them."""
CHANGED = 7
"""Exit code of HAND_ON: the machine was restarted, or is no longer the lease's."""
BUSY_LINE = "busy_"
"""Prefix of IDENTIFY's lines about the machine's holder."""

IDENTIFY = r"""
case $1 in
  "~/"*) folder=$HOME/${1#"~/"} ;;
  *) folder=$1 ;;
esac
say() { printf '%s %s\n' "$1" "$2"; }
say folder "$folder"
say architecture "$(uname -m)"
say kernel "$(cat /proc/sys/kernel/random/boot_id)"
say user "$(id -un)"
say now "$(date +%s)"
if [ -f "$folder/busy" ]; then
  while read -r word rest; do say "busy_$word" "$rest"; done < "$folder/busy"
fi
for place in $(grep -l -a '[s]teelyard-agent' /proc/[0-9]*/cmdline 2> /dev/null); do
  process=${place%/cmdline}
  owner=$(stat -c %U "$process" 2> /dev/null) && say agent_of "$owner ${process#/proc/}"
done
if command -v ip > /dev/null; then
  ip -o address show 2> /dev/null | while read -r number device family at rest; do say address "${at%%/*}"; done
fi
"""
"""Argument: the folder as in the inventory. Changes nothing."""

CLAIM = r"""
set -u
folder=$1 lease=$2 node=$3 seconds=$4 note=$5
umask 077
mkdir -p "$folder/bin" "$folder/nodes" || exit 1
mine=$folder/busy.$lease.$node
until=$(( $(date +%s) + seconds ))
printf 'lease %s\nuntil %s\nnote %s\n' "$lease" "$until" "$note" > "$mine" || exit 1
if ! ln "$mine" "$folder/busy" 2> /dev/null; then
  holder= end=0
  while read -r word rest; do
    case $word in lease) holder=$rest ;; until) end=$rest ;; esac
  done < "$folder/busy"
  if [ "$holder" = "$lease" ]; then rm -f "$mine"; exit 5; fi
  if [ "$end" -ge "$(date +%s)" ]; then cat "$folder/busy"; rm -f "$mine"; exit 4; fi
  mv "$folder/busy" "$mine.before" && grep -q -x "lease $holder" "$mine.before" && ln "$mine" "$folder/busy" || {
    cat "$folder/busy" 2> /dev/null
    rm -f "$mine" "$mine.before"
    exit 4
  }
  rm -f "$mine.before"
  printf 'expired %s\n' "$holder"
fi
rm -f "$mine"
mkdir -p -m 700 "$folder/nodes/$lease" && mkdir -m 700 "$folder/nodes/$lease/$node"
"""
"""Arguments: folder, lease, node, seconds until the lease ends, who has it. Takes the machine for the lease, also from
an expired lease (`expired ID`), and creates the node's folder, which only its user enters."""

BRING = r"""
set -eu
target=$1 bytes=$2 sum=$3
draft=$target.$$
trap 'rm -f "$draft"' EXIT
cat > "$draft"
[ "$(wc -c < "$draft")" -eq "$bytes" ] || { echo "only $(wc -c < "$draft") of $bytes bytes arrived" >&2; exit 1; }
if command -v sha256sum > /dev/null; then
  [ "$(sha256sum < "$draft")" = "$sum  -" ] || { echo "it arrived damaged" >&2; exit 1; }
fi
chmod 755 "$draft"
mv "$draft" "$target"
"""
"""Arguments: path, bytes, SHA-256; the file itself on stdin. It becomes visible only when complete."""

HAND_ON = r"""
set -u
folder=$1 lease=$2 node=$3 seconds=$4 note=$5 kernel=$6 agent=$7
[ -z "$kernel" ] || [ "$(cat /proc/sys/kernel/random/boot_id)" = "$kernel" ] || exit 7
grep -q -x "lease $lease" "$folder/busy" 2> /dev/null || exit 7
umask 077
mine=$folder/busy.$lease.$node
until=$(( $(date +%s) + seconds ))
printf 'lease %s\nuntil %s\nnote %s\n' "$lease" "$until" "$note" > "$mine" && mv "$mine" "$folder/busy" || exit 1
"$agent" sweep --lease "$lease" > /dev/null || exit 1
"$agent" files remove --below "$folder/nodes/$lease" "$folder/nodes/$lease/$node" || exit 1
mkdir -m 700 "$folder/nodes/$lease/$node"
"""
"""Arguments: folder, lease, node, seconds until the lease ends, who has it, the boot id that the lease knows (or none),
path of the agent. Makes the machine of a lease as it was when it was lent: nothing runs, the node's folder is empty."""

RELEASE = r"""
set -u
folder=$1 lease=$2 agent=$3
tree=$folder/nodes/$lease
status=0
looks=0
while [ $looks -lt 50 ] && grep -q -a "[s]teelyard-claim-$lease" /proc/[0-9]*/cmdline 2> /dev/null; do
  sleep 0.1
  looks=$((looks + 1))
done
if "$agent" --version > /dev/null 2>&1; then
  "$agent" sweep --lease "$lease" > /dev/null || status=1
  "$agent" files remove --below "$folder/nodes" "$tree" || status=1
elif [ -d "$tree" ]; then
  rmdir "$tree"/* "$tree" 2> /dev/null
  [ ! -d "$tree" ] || exit 6
fi
rm -f "$folder/busy.$lease".*
if [ $status -eq 0 ] && [ -f "$folder/busy" ] && grep -q -x "lease $lease" "$folder/busy"; then
  rm -f "$folder/busy" || status=1
fi
exit $status
"""
"""Arguments: folder, lease, path of the agent. Ends the lease's processes, removes its files, then frees the machine.
Idempotent. It first waits for a CLAIM of a conductor that was killed meanwhile."""
CLAIM_NAME = "steelyard-claim-{lease}"
"""Name of CLAIM in the table of processes."""

SURVEY = r"""
free() { df -P -k "$1" 2> /dev/null | tail -n 1; }
at=$folder
while [ ! -d "$at" ] && [ "$at" != / ]; do at=$(dirname "$at"); done
say disk "$(free "$at")"
[ -w "$at" ] && say writable "$at"
say release "$(uname -r)"
say cores "$(grep -c '^processor' /proc/cpuinfo)"
say load "$(cut -d ' ' -f 1 /proc/loadavg)"
while read -r key value unit; do
  case $key in MemTotal:|MemAvailable:|SwapTotal:) say "${key%:}" "$value" ;; esac
done < /proc/meminfo
[ -r /proc/device-tree/model ] && say model "$(tr -d '\0' < /proc/device-tree/model)"
say clock_source "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2> /dev/null)"
say governor "$(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2> /dev/null)"
say throttled "$({ cat /sys/devices/platform/soc/soc:firmware/get_throttled || vcgencmd get_throttled; } 2> /dev/null)"
if [ "$(id -u)" -eq 0 ]; then say privileges root
elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then say privileges sudo
else say privileges none; fi
for java in "$(command -v java)" /usr/lib/jvm/*/bin/java; do
  [ -x "$java" ] && say java "$java $("$java" -version 2>&1 | head -n 1)"
done
true
"""
"""Follows IDENTIFY: further needs of a study. Changes nothing."""


class Holder(NamedTuple):
    """The lease that has a machine, as it is written there."""

    lease: str
    until_s: float
    """By the machine's own clock."""
    note: str
    """Whose it is, in words."""


@dataclass(frozen=True)
class Identity:
    """A machine's report on itself."""

    folder: str
    """Steelyard's folder, absolute."""
    architecture: str
    kernel: str
    """Id of its current boot: the same for all that run on one kernel."""
    user: str
    now_s: float
    addresses: frozenset[str] = frozenset()
    """Its IP addresses; empty if they are unknown."""
    holder: Holder | None = None
    agents_of: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """User to the processes of agents that run there."""
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Every line by its first word."""

    def get(self, word: str) -> str:
        """The last text after a word; empty if there is none."""
        return next(reversed(self.more.get(word, ("",))), "")


def parse(text: str) -> Identity:
    """Output of IDENTIFY, and anything that followed. Raises ValueError if it has another form."""
    lines: dict[str, list[str]] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        lines.setdefault(word, []).append(rest.strip())
    missing = [word for word in ("folder", "architecture", "kernel", "user", "now") if not lines.get(word, [""])[-1]]
    if missing:
        raise ValueError(f"it did not report its {', '.join(missing)}")
    agents: dict[str, list[int]] = {}
    for line in lines.get("agent_of", ()):
        owner, _, process = line.partition(" ")
        agents.setdefault(owner, []).append(int(process))
    return Identity(
        folder=lines["folder"][-1],
        architecture=lines["architecture"][-1],
        kernel=lines["kernel"][-1],
        user=lines["user"][-1],
        now_s=float(lines["now"][-1]),
        addresses=frozenset(address.partition("%")[0] for address in lines.get("address", ())),
        holder=holder(
            {word[len(BUSY_LINE) :]: texts[-1] for word, texts in lines.items() if word.startswith(BUSY_LINE)}
        ),
        agents_of={owner: tuple(processes) for owner, processes in agents.items()},
        more=lines,
    )


def holder(texts: Mapping[str, str]) -> Holder | None:
    """The lease in the lines of a machine's file `busy`; None without one."""
    if not texts.get("lease"):
        return None
    until = texts.get("until", "")
    return Holder(texts["lease"], float(until) if until.isdigit() else 0.0, texts.get("note", ""))


def holder_of(text: str) -> Holder | None:
    """The same from the file's text."""
    return holder(dict(line.partition(" ")[::2] for line in text.splitlines()))


def busy_users(machine: Identity) -> str:
    """Other users whose agents run on a machine, in words; empty if there are none."""
    others = {user: processes for user, processes in machine.agents_of.items() if user != machine.user}
    return "; ".join(f"user {user} runs an agent there (process {items[0]})" for user, items in sorted(others.items()))


def held_by(holder: Holder | None) -> str:
    """Holder of a machine, in words."""
    return f"lease {holder.lease}, {holder.note}" if holder else "another lease"
