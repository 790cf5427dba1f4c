"""Meter probe: power of nodes from meters between them and their supply, wherever these are read.

Plugs that answer over HTTP (Shelly, Tasmota), baseboard controllers (IPMI's DCMI command), and chips such as the INA219
that a driver of the kernel reads (`hwmon`). A kind of meter is a row of KINDS: how it is asked, and where its answer
has the power. A meter gives power at one moment. So a sample is the mean of two readings, over the time between them,
also where readings in between are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, model_validator

from steelyard.model.errors import ProbeError
from steelyard.model.one_of import OneOf
from steelyard.model.sample import Metric, Sample
from steelyard.model.value import Value
from steelyard.node.base import Node
from steelyard.probe.base import Placement, Watched

NAME: Final = "meter"
HWMON: Final = "/sys/class/hwmon"
NONE: Final = "-"
"""Stands for a word that a meter does not have."""
LOOP: Final = """
interval="$1" address="$2" user="$3" reference="$4" secret=
shift 4
case "$reference" in
  env:*) secret="$(printenv "${reference#env:}")" || { echo "${reference#env:} is not set" >&2; exit 1; } ;;
  file:*) secret="$(cat "${reference#file:}")" || exit 1 ;;
esac
get() {
  { [ -z "$secret" ] || printf "$1" "$user" "$(printf '%s' "$secret" | sed 's/[\\\\"]/\\\\&/g')"; } |
    curl -q -K - "$2" --globoff --noproxy '*' -sS --fail --max-time 5 --referer "$address" "$address"
}
before=
while :; do
  if now="$(READ)"; then
    case "$now" in
      *'"is_valid":false'* | *'"is_valid": false'* | *'reading state is:'*deactivated*)
        echo "the meter says that its reading is not valid" >&2 ;;
      *)
        now="$(date +%s.%N) $(printf '%s' "$now" | tr '\\n' ' ')"
        for node in "$@"; do
          [ $# -gt 1 ] || node=
          [ -z "$before" ] || printf '%s%s | %s\\n' "${node:+$node }" "$before" "$now" || exit 0
        done
        before="$now" ;;
    esac
  fi
  sleep "$interval" || exit 0
done
"""
"""Two readings per line, each behind its time, once for each node. One that the meter itself calls none is passed over
as if it had not answered, so the next line has the readings on both sides of the gap. The secret is looked up here,
where it is used, and reaches the client through a pipe: it is in no argv."""
NUMBER: Final = r"\s*(-?\d+(?:\.\d+)?)"
DIGEST: Final = r"""get 'user = "%s:%s"\n' --digest"""
BASIC: Final = r"""get 'user = "%s:%s"\n' --basic"""
IN_QUERY: Final = r"""get 'data-urlencode = "user=%s"\ndata-urlencode = "password=%s"\n' --get"""
"""Requests: what curl is given where there is a password, and how it passes that on."""


@dataclass(frozen=True)
class Kind:
    """A kind of meter."""

    read: str
    """Shell command that prints one reading."""
    power: str
    """Regular expression of the power; several matches are added up."""
    path: str = ""
    """Path and query of the request, with `{channel}`."""
    scale: float = 1.0
    """Multiplies the number, to get watts."""


KINDS: Final[Mapping[str, Kind]] = {
    # shelly-api-docs.shelly.cloud: gen2 (also Gen3 and Gen4), Switch and PM1, digest authentication; gen1, /meter/0.
    "shelly": Kind(DIGEST, f'"apower":{NUMBER}', "/rpc/Switch.GetStatus?id={channel}"),
    "shelly-pm": Kind(DIGEST, f'"apower":{NUMBER}', "/rpc/PM1.GetStatus?id={channel}"),
    "shelly-gen1": Kind(BASIC, f'"power":{NUMBER}', "/meter/{channel}"),
    # tasmota.github.io/docs: Commands, Status 8.
    "tasmota": Kind(IN_QUERY, f'"ENERGY":\\s*{{[^}}]*?"Power":{NUMBER}', "/cm?cmnd=Status%208"),
    # ipmitool(1): dcmi; -E takes the password from the environment.
    "ipmi": Kind(
        'if [ "$address" = - ]; then ipmitool dcmi power reading; else IPMI_PASSWORD="$secret" '
        'ipmitool -I lanplus -H "$address" -U "$user" -E dcmi power reading; fi',
        f"Instantaneous power reading:{NUMBER} Watts",
    ),
    # Documentation/hwmon/ina2xx.rst and sysfs-interface.rst of Linux: microwatts.
    "hwmon": Kind(
        'found=; for chip in HWMON/hwmon*; do if read -r name < "$chip/name" && [ "$name" = "$address" ]; then '
        'found=1; cat "$chip/power1_input" || exit; fi; done; '
        '[ -n "$found" ] || { echo "no chip $address in HWMON" >&2; exit 1; }',
        rf"(?:^|\s){NUMBER}(?=\s|$)",
        scale=1e-6,
    ),
}


class Meter(Value):
    """A meter: what it is, where it is, and which nodes it covers."""

    kind: Annotated[str, OneOf(lambda: tuple(KINDS))]
    """shelly: Shelly plugs and relays since the second generation; shelly-pm: those that only measure; shelly-gen1: the
    first generation; tasmota: plugs with this firmware; ipmi: a server's baseboard controller, by `ipmitool`; hwmon: a
    chip that Linux reads, such as the INA219 on a Raspberry Pi."""
    address: str = ""
    """Address of a plug or baseboard controller, with the port if it is not the usual one; of `hwmon` the chip's name,
    such as `ina219`. Without one, `ipmi` asks the node's own controller."""
    channel: int = Field(default=0, ge=0, le=99)
    """Output of a Shelly with several."""
    nodes: tuple[str, ...] = ()
    """Names of the nodes that it covers. Of several, each counts with an equal share of its power, unless each reads a
    meter of its own. Empty: all nodes, which then are on one machine, or each have a meter of their own."""
    read_from: str = ""
    """Name of the node that asks it; in a cluster that changes its size, one that stays. Empty: the conductor's
    machine; `hwmon`, and `ipmi` without an address, are read by each node itself."""
    user: str = Field(default="admin", pattern=r"^[^\s:\"\\]+$")
    """User name, if the meter wants a password."""
    password: str = ""
    """Reference to the password: `env:NAME` or `file:/path` on the conductor's machine."""

    @model_validator(mode="after")
    def _whole(self) -> Meter:
        if not self.address and self.kind != "ipmi":
            raise ValueError(f"{self.kind} needs an address" + (" (the chip's name)" if self.kind == "hwmon" else ""))
        if self.own and (self.read_from or self.password):
            raise ValueError("each node reads a meter of its own: leave read_from and password out")
        if self.password and self.read_from:
            raise ValueError("a meter with a password is read from the conductor's machine: leave read_from out")
        if self.password and not self.password.startswith(("env:", "file:/")):
            raise ValueError("the password must be a reference: env:NAME or file:/path")
        return self

    @property
    def own(self) -> bool:
        """Whether each node reads a meter of its own."""
        return self.kind == "hwmon" or not self.address

    def argv(self, interval_s: float, nodes: Sequence[str], hwmon: str) -> tuple[str, ...]:
        """Words of the command that reads it."""
        kind = KINDS[self.kind]
        url = f"http://{self.address}{kind.path.format(channel=self.channel)}" if kind.path else self.address
        words = (f"{interval_s:g}", url or NONE, self.user, self.password or NONE)
        return ("sh", "-c", LOOP.replace("READ", kind.read.replace("HWMON", hwmon)), NAME, *words, *nodes)


class Settings(Value):
    """Meters of a study's nodes."""

    meters: tuple[Meter, ...] = Field(min_length=1)
    """The meters, a table each."""

    @model_validator(mode="after")
    def _one_per_node(self) -> Settings:
        covered = [node for meter in self.meters for node in meter.nodes or ("",)]
        if "" in covered and len(covered) > 1:
            raise ValueError("a meter without nodes covers all nodes, so that others cover some again: name its nodes")
        if twice := sorted({node for node in covered if covered.count(node) > 1}):
            raise ValueError(f"{', '.join(twice)}: covered by two meters; name each node once")
        return self


NODE = Metric(name="node_power_watts", unit="watts", description="power of the node, by its meter or its share of one")
MACHINE = Metric(
    name="machine_power_watts",
    unit="watts",
    description="power of the node's machine, by a meter for all that is on it",
)


class MeterProbe:
    """Reads the meters of a study, each from where it can be reached."""

    name = NAME

    def __init__(self, settings: Settings, hwmon: str = HWMON) -> None:
        self._meters, self._hwmon = settings.meters, hwmon
        self.metrics = tuple(one for one in (NODE, MACHINE) if any(_metric(meter) == one for meter in self._meters))

    def placements(self, watched: Sequence[Watched], interval_s: float) -> Sequence[Placement]:
        """A loop for each meter that covers any of the nodes. Raises ProbeError for one meter without `nodes` over
        several machines."""
        placements: list[Placement] = []
        for meter in self._meters:
            nodes = [each.node for each in watched if not meter.nodes or each.node.name in meter.nodes]
            if meter.own:
                placements += [self._placement(meter, node, [node], interval_s) for node in nodes if node.commands]
            elif nodes:
                if not meter.nodes and len({node.kernel for node in nodes}) > 1:
                    raise ProbeError(f"{meter.address}: the nodes are on several machines", "say in `nodes` which")
                placements.append(self._placement(meter, None, nodes, interval_s))
        return placements

    def _placement(self, meter: Meter, on: Node | None, nodes: Sequence[Node], interval_s: float) -> Placement:
        names = tuple(node.name for node in nodes)
        argv = meter.argv(interval_s, names, self._hwmon)
        return Placement(on=on, on_named=meter.read_from, argv=argv, speaks_of=names)

    def parse(self, node: str, line: bytes) -> Iterable[Sample]:
        """Mean of the two readings of a line. Raises ProbeError on any other line."""
        meter = next((one for one in self._meters if node in one.nodes), self._meters[0])
        try:
            before, now = (reading.partition(" ") for reading in line.decode().strip().split(" | "))
            watts = (_watts(meter, before[2]) + _watts(meter, now[2])) / 2
            float(before[0])
            return [Sample(float(now[0]), node, _metric(meter).name, watts / _sharing(meter))]
        except ValueError as error:
            what = f"{node}: not a line of the probe {NAME} ({meter.kind} {meter.address}): {line[:200]!r}"
            raise ProbeError(what, "check the kind and the channel of the meter") from error


def _metric(meter: Meter) -> Metric:
    return NODE if meter.nodes and not meter.own else MACHINE


def _sharing(meter: Meter) -> int:
    return 1 if meter.own else max(1, len(meter.nodes))


def _watts(meter: Meter, text: str) -> float:
    numbers = re.findall(KINDS[meter.kind].power, text, re.DOTALL)
    if not numbers:
        raise ValueError(text)
    return sum(float(number) for number in numbers) * KINDS[meter.kind].scale


def create(settings: Settings) -> MeterProbe:
    """The probe; no side effects."""
    return MeterProbe(settings)
