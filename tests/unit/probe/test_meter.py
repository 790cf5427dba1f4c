"""The probe `meter`: recorded answers of each kind of meter, its settings, and a made-up meter with a known curve."""

from __future__ import annotations

import json
import math
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import ValidationError
from tests.unit.analysis import made

from steelyard.judging.measures import measures_of, readings_of_samples
from steelyard.model.errors import ProbeError
from steelyard.model.sample import Sample
from steelyard.model.trial import Phase, PhaseTime, Responses
from steelyard.node.base import Node
from steelyard.probe import meter
from steelyard.probe.base import Watched

ANSWERS = {
    # shelly-api-docs.shelly.cloud/gen2/ComponentsAndServices/Switch and PM1: the answer of GetStatus.
    "shelly": (
        '{"id":0,"source":"HTTP","output":true,"apower":47.11,"voltage":232.0,"current":0.203,"pf":0.98,"aenergy":'
        '{"total":5.125,"by_minute":[0.0,0.0,0.0],"minute_ts":1675718520},"temperature":{"tC":25.3,"tF":77.5}}',
        47.11,
    ),
    "shelly-pm": ('{"id":0,"voltage":231.2,"current":0.211,"apower":12.6,"freq":50,"aenergy":{"total":98.2}}', 12.6),
    # shelly-api-docs.shelly.cloud/gen1: the answer of /meter/0.
    "shelly-gen1": (
        '{"power":70.24,"overpower":0.00,"is_valid":true,"timestamp":1739294619,"counters":[71.380,72.397,71.324],'
        '"total":18013}',
        70.24,
    ),
    # tasmota.github.io/docs/Commands: the answer of Status 8.
    "tasmota": (
        '{"StatusSNS":{"Time":"2023-02-05T20:31:48","ENERGY":{"TotalStartTime":"2023-02-05T11:04:13","Total":1290.396,'
        '"Yesterday":0.854,"Today":0.173,"Power":47.11,"ApparentPower":50.2,"ReactivePower":3.1,"Factor":0.94,'
        '"Voltage":233,"Current":0.215}}}',
        47.11,
    ),
    # ipmitool 1.8.19, lib/ipmi_dcmi.c: what `dcmi power reading` prints.
    "ipmi": (
        "\n    Instantaneous power reading:                   214 Watts\n"
        "    Minimum during sampling period:                  2 Watts\n"
        "    Maximum during sampling period:                468 Watts\n"
        "    Average power reading over sample period:      184 Watts\n"
        "    IPMI timestamp:                           Sun May  5 13:06:44 2024\n"
        "    Sampling period:                          00001000 Milliseconds.\n"
        "    Power reading state is:                   activated\n\n",
        214.0,
    ),
    # Documentation/hwmon/ina2xx.rst of Linux: power1_input, in microwatts; here of two chips.
    "hwmon": ("2140000\n560000\n", 2.7),
}


def probe(*meters: dict[str, Any]) -> meter.MeterProbe:
    return meter.create(meter.Settings.model_validate({"meters": meters}))


def chips(folder: Path, name: str) -> meter.MeterProbe:
    """The probe of chips of that name, which are below the folder."""
    settings = meter.Settings.model_validate({"meters": [{"kind": "hwmon", "address": name}]})
    return meter.MeterProbe(settings, str(folder))


def one_of(kind: str, **more: Any) -> dict[str, Any]:
    address = {} if kind == "ipmi" else {"address": "ina219" if kind == "hwmon" else "10.0.0.9"}
    return {"kind": kind, **address, **more}


def line_of(*readings: str) -> bytes:
    """As the command prints them, the first at 10 s, the second at 12 s."""
    timed = zip((10.0, 12.0), readings, strict=True)
    return (" | ".join(f"{t_s} {' '.join(text.splitlines())} " for t_s, text in timed) + "\n").encode()


@pytest.mark.parametrize("kind", ANSWERS)
def test_each_kind_of_meter_is_read_from_its_recorded_answer(kind: str) -> None:
    answer, watts = ANSWERS[kind]
    (sample,) = probe(one_of(kind)).parse("n1", line_of(answer, answer))
    assert sample == Sample(12.0, "n1", "machine_power_watts", pytest.approx(watts))
    assert set(ANSWERS) == set(meter.KINDS)


def test_a_sample_is_the_mean_of_both_ends_and_each_node_has_its_share() -> None:
    strip = probe(one_of("shelly", nodes=("n1", "n2")), one_of("hwmon", nodes=("n3",)))
    line = line_of('{"apower":40.0}', '{"apower": 60}')
    assert [(one.metric, one.value) for one in strip.parse("n2", line)] == [("node_power_watts", 25.0)]
    assert [(one.metric, one.value) for one in strip.parse("n3", line_of("4000000", "6000000"))] == [
        ("machine_power_watts", 5.0)
    ]
    assert [one.name for one in strip.metrics] == ["node_power_watts", "machine_power_watts"]


def test_an_answer_of_another_kind_of_meter_is_an_error() -> None:
    valid, _ = ANSWERS["shelly-gen1"]
    with pytest.raises(ProbeError, match=r"n1: not a line of the probe meter \(tasmota 10.0.0.9\)") as refused:
        list(probe(one_of("tasmota")).parse("n1", line_of(valid, valid)))
    assert refused.value.hint == "check the kind and the channel of the meter"


@pytest.mark.parametrize(
    ("meters", "what"),
    [
        ([], "at least 1"),
        ([{"kind": "watt-o-meter", "address": "x"}], "'shelly', 'shelly-pm'"),
        ([{"kind": "shelly"}], "shelly needs an address"),
        ([{"kind": "hwmon"}], r"needs an address \(the chip's name\)"),
        ([one_of("hwmon", read_from="n1")], "leave read_from and password out"),
        ([one_of("shelly", password="env:PLUG", read_from="n1")], "read from the conductor's machine"),
        ([one_of("shelly", password="hunter2")], "must be a reference"),
        ([one_of("shelly", user='a"b')], "pattern"),
        ([one_of("shelly", nodes=("n1",)), one_of("tasmota", nodes=("n2", "n1"))], "n1: covered by two meters"),
        ([one_of("shelly"), one_of("tasmota", nodes=("n1",))], "name its nodes"),
    ],
)
def test_settings_that_mean_nothing(meters: list[dict[str, Any]], what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        probe(*meters)


def watched(*names: str, kernel: str = "") -> list[Watched]:
    return [Watched(Node(name, "database", "127.0.0.1", (), Path("/nowhere"), kernel=kernel)) for name in names]


def test_a_meter_may_stand_at_another_machine_than_its_nodes() -> None:
    there = watched("n1", "n2", "n3")
    for read_from in ("", "n3"):
        (placed,) = probe(one_of("shelly", nodes=("n1", "n2"), read_from=read_from)).placements(there, 1.0)
        assert (placed.on, placed.on_named, placed.speaks_of) == (None, read_from, ("n1", "n2"))
    own = probe(one_of("hwmon", nodes=("n1", "n3"))).placements(there, 1.0)
    assert [(one.on and one.on.name, one.speaks_of) for one in own] == [("n1", ("n1",)), ("n3", ("n3",))]
    with pytest.raises(ProbeError, match="several machines"):
        probe(one_of("shelly")).placements([*there, *watched("n4", kernel="pi")], 1.0)
    assert probe(one_of("shelly", nodes=("n9",))).placements(there, 1.0) == []


class Plug(ThreadingHTTPServer):
    """A plug that answers as a Shelly does, with a power that the time decides, or with a text; None: it does not
    answer."""

    def __init__(self, watts: Callable[[float], float | str | None], *, wants: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.watts, self.wants = watts, wants
        self.asked: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    server: Plug

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        self.server.asked.append((self.path, given))
        watts = self.server.watts(time.time())
        if watts is None or (self.server.wants and not given.startswith(self.server.wants)):
            self.send_response(503 if watts is None else 401)
            challenge = 'realm="shellyplugus-0", nonce="61dc7f5a", qop="auth", algorithm=SHA-256'
            self.send_header("WWW-Authenticate", f"{self.server.wants} {challenge}")
            self.end_headers()
            return
        values = {"id": 0, "output": True, "power" if self.path == "/meter/0" else "apower": watts}
        answer = (watts if isinstance(watts, str) else json.dumps(values)).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def plug(watts: Callable[[float], float | str | None], *, wants: str = "") -> Iterator[Plug]:
    server = Plug(watts, wants=wants)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def lines(argv: tuple[str, ...], variables: dict[str, str] | None = None) -> Iterator[Any]:
    process = Popen(argv, stdout=PIPE, stderr=PIPE, env={**os.environ, **(variables or {})})
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_energy_of_a_planted_curve_is_within_1_percent_with_gaps_and_without() -> None:
    """40 W of idle, then, a warm-up before the measured phase, a load of 90 W that swings by 20 W every 6 s; for 1 s
    the plug does not answer."""

    def watts(t_s: float) -> float:
        return 40.0 if t_s < begun_s - 0.4 else 90.0 + 20.0 * math.sin(2 * math.pi * (t_s - begun_s) / 6.0)

    begun_s = time.time() + 2.5
    ended_s = begun_s + 6.0
    samples: list[Sample] = []
    with plug(lambda t_s: None if begun_s + 2.0 < t_s < begun_s + 3.0 else watts(t_s)) as server:
        asked = probe(one_of("shelly") | {"address": server.address, "nodes": ("n1",)})
        (placed,) = asked.placements(watched("n1"), 0.1)
        with lines(placed.argv) as process:
            while not samples or samples[-1].t_s < ended_s:
                samples += asked.parse("n1", process.stdout.readline())
    phases = (
        PhaseTime(phase=Phase.IDLE, entered_s=begun_s - 1.6, left_s=begun_s - 0.6),
        PhaseTime(phase=Phase.MEASURE, entered_s=begun_s, left_s=ended_s),
    )
    record = made.record(1.0).model_copy(update={"phases": phases, "responses": Responses(operations=60)})
    whole = measures_of(record, readings_of_samples({"n1": samples}), {"system:n1": {}})
    steps = [begun_s + (place + 0.5) / 1000 for place in range(6000)]
    planted_j = math.fsum(watts(t_s) for t_s in steps) / 1000
    assert whole["power_reading_s_longest"] > 0.9
    assert whole["energy_j_total"] == pytest.approx(planted_j, rel=0.01)
    assert whole["idle_power_watts"] == pytest.approx(40.0)
    assert whole["energy_j_above_idle"] == pytest.approx(planted_j - 40.0 * 6, rel=0.01)
    assert whole["energy_j_per_operation"] == pytest.approx(planted_j / 60, rel=0.01)
    assert whole["energy_j_above_idle_per_operation"] == pytest.approx((planted_j - 240.0) / 60, rel=0.01)
    assert whole["power_watts_mean"] == pytest.approx(planted_j / 6, rel=0.01)


def of_power(kind: str, *readings: tuple[str, bool]) -> list[str]:
    """Recorded answers with other powers, some of which the meter calls invalid."""
    answer, watts = ANSWERS[kind]
    invalid = (" activated", " deactivated") if kind == "ipmi" else ("true", "false")
    changed = [(answer.replace(f"{watts:g}", power, 1), valid) for power, valid in readings]
    return [one if valid else one.replace(*invalid) for one, valid in changed]


GAP = (("10", True), ("90", False), ("90", False), ("20", True))
"""Of a gap, the power at its sides is known; what a meter says within is none."""


@pytest.mark.parametrize("spaced", [False, True])
def test_a_gap_of_readings_that_a_meter_calls_invalid_has_the_mean_of_both_its_sides(*, spaced: bool) -> None:
    answers = [one.replace(":", ": ") if spaced else one for one in of_power("shelly-gen1", *GAP)]
    with plug(lambda _: answers.pop(0) if answers else None) as server:
        asked = probe(one_of("shelly-gen1") | {"address": server.address, "nodes": ("n1",)})
        with lines(asked.placements(watched("n1"), 0.05)[0].argv) as process:
            (sample,) = asked.parse("n1", process.stdout.readline())
            assert process.stderr.readline() == b"the meter says that its reading is not valid\n"
    assert sample.value == 15.0


@pytest.mark.parametrize(("kind", "scheme"), [("shelly", "Digest"), ("shelly-gen1", "Basic"), ("tasmota", "")])
@pytest.mark.parametrize("place", ["env", "file"])
def test_a_password_reaches_the_plug_and_no_argv(kind: str, scheme: str, place: str, tmp_path: Path) -> None:
    secret = 'p"a\\s & s'
    (tmp_path / "secret").write_text(secret + "\n")
    reference = "env:PLUG_SECRET" if place == "env" else f"file:{tmp_path}/secret"
    with plug(lambda _: 1.0, wants=scheme) as server:
        asked = probe(one_of(kind, password=reference) | {"address": server.address, "nodes": ("n1", "n2")})
        (placed,) = asked.placements(watched("n1", "n2"), 0.05)
        assert not any(secret in word for word in placed.argv)
        with lines(placed.argv, {"PLUG_SECRET": secret}) as process:
            assert [process.stdout.readline().split()[0] for _ in range(2)] == [b"n1", b"n2"]
        path, given = server.asked[-1]
    if kind == "tasmota":
        assert parse_qs(urlsplit(path).query) == {"cmnd": ["Status 8"], "user": ["admin"], "password": [secret]}
    elif kind == "shelly":
        assert 'username="admin"' in given
        assert "algorithm=SHA-256" in given
    else:
        assert given == "Basic YWRtaW46cCJhXHMgJiBz"


def test_a_plug_that_refuses_and_a_secret_that_is_missing_say_so() -> None:
    with plug(lambda _: 1.0, wants="Digest") as server:
        bare = one_of("shelly") | {"address": server.address}
        with lines(probe(bare).placements(watched("n1"), 0.05)[0].argv) as process:
            assert b"error: 401" in process.stderr.readline()
        argv = probe({**bare, "password": "env:NO_SUCH_SECRET"}).placements(watched("n1"), 0.05)[0].argv
        with lines(argv) as process:
            assert process.stderr.readline() == b"NO_SUCH_SECRET is not set\n"
            assert process.wait(10) == 1


def test_a_chip_is_found_by_its_name(tmp_path: Path) -> None:
    for place, (name, power) in enumerate([("cpu_thermal", ""), ("ina219", "2140000\n"), ("ina219", "560000\n")]):
        chip = tmp_path / f"hwmon{place}"
        chip.mkdir()
        (chip / "name").write_text(f"{name}\n")
        if power:
            (chip / "power1_input").write_text(power)
    asked = chips(tmp_path, "ina219")
    with lines(asked.placements(watched("n1"), 0.05)[0].argv) as process:
        (sample,) = asked.parse("n1", process.stdout.readline())
    assert sample.value == pytest.approx(2.7)
    with lines(chips(tmp_path, "ina226").placements(watched("n1"), 0.05)[0].argv) as process:
        assert process.stderr.readline() == f"no chip ina226 in {tmp_path}\n".encode()


def test_a_baseboard_controller_is_asked_by_ipmitool(tmp_path: Path) -> None:
    """The program is one that prints a recorded answer behind its words and the password in its environment."""
    program = tmp_path / "ipmitool"
    program.write_text(
        f"#!/bin/sh\necho \"$* $IPMI_PASSWORD\" >> {tmp_path}/asked\ncat << 'END'\n{ANSWERS['ipmi'][0]}END\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "BMC_SECRET": "s3cret"}
    remote = one_of("ipmi", address="10.0.0.7", user="root", password="env:BMC_SECRET")
    for settings in (one_of("ipmi"), remote):
        asked = probe(settings)
        with lines(asked.placements(watched("n1"), 0.05)[0].argv, variables) as process:
            (sample,) = asked.parse("n1", process.stdout.readline())
        assert sample.value == 214.0
    asked_with = (tmp_path / "asked").read_text().splitlines()
    for place, answer in enumerate(of_power("ipmi", *GAP)):
        (tmp_path / f"answer{place}").write_text(answer)
    program.write_text(f'#!/bin/sh\ncd {tmp_path}; for one in answer*; do cat "$one"; rm "$one"; exit; done\n')
    with lines(probe(one_of("ipmi")).placements(watched("n1"), 0.05)[0].argv, variables) as process:
        (sample,) = asked.parse("n1", process.stdout.readline())
    assert sample.value == 15.0
    assert asked_with[0] == "dcmi power reading "
    assert asked_with[-1] == "-I lanplus -H 10.0.0.7 -U root -E dcmi power reading s3cret"
