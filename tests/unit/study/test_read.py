from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import StudyError
from steelyard.study import (
    canonical,
    control_of,
    is_hard,
    located,
    read,
    settings_hash,
    settings_of,
    treatments_of,
)
from tests.unit.study.paper import HEAD, OTHER, WORKLOAD, read_text, study, text


def wrong(rest: str, head: str = HEAD) -> StudyError:
    with pytest.raises(StudyError) as caught:
        read_text(text(rest, head), "paper.toml")
    return caught.value


def test_defaults_of_plug_ins_are_filled_in() -> None:
    settings = settings_of(study("threads = 4\n"), {})
    assert settings["system"]["heap_mb"] == 256
    assert settings["workload"] == {"name": WORKLOAD, "records": 5000, "request_distribution": "zipfian"}
    assert settings["site"]["nodes"] == 1
    assert settings["load"]["threads"] == 4
    assert settings["data"]["state"] == "restore"


@pytest.mark.parametrize("name", ["duration_s", "operations"])
def test_a_factor_alone_may_say_when_the_load_ends(name: str) -> None:
    head = HEAD.replace("operations = 1000\n", "threads = 4\n")
    assert head != HEAD
    found = read_text(text(f'[factors]\n"load.{name}" = [20, 40]\n', head), "paper.toml")
    assert [settings_of(found, each)["load"][name] for each in treatments_of(found)] == [20, 40]
    assert "to know when to stop" in wrong('[factors]\n"load.threads" = [1, 2]\n', head).errors[0].message


def test_any_field_can_be_a_factor() -> None:
    found = study(
        f"""
[factors]
nodes = [1, 3]
workload = ["{WORKLOAD}", "{OTHER}"]
system.yaml.concurrent_reads = [16, 32]
"system.heap_mb" = [256, 512]
load.threads = [1]
data.state = ["restore"]
site.memory_mb = [512]
"""
    )
    treatment = treatments_of(found)[-1]
    assert treatment == {
        "nodes": 3,
        "workload": OTHER,
        "system.yaml.concurrent_reads": 32,
        "system.heap_mb": 512,
        "load.threads": 1,
        "data.state": "restore",
        "site.memory_mb": 512,
    }
    settings = settings_of(found, treatment)
    assert settings["system"]["yaml"] == {"concurrent_reads": 32}
    assert settings["workload"]["name"] == OTHER
    assert settings["site"]["memory_mb"] == 512


def test_long_and_short_names_are_one_factor() -> None:
    long, short = study("[factors]\nsite.nodes = [1, 3]\n"), study("[factors]\nnodes = [1, 3]\n")
    assert tuple(long.factors) == tuple(short.factors) == ("nodes",)
    assert "already" in wrong("[factors]\nsite.nodes = [1]\nnodes = [3]\n").message


@pytest.mark.parametrize(
    ("factor", "level", "hard"),
    [
        ("nodes", "2", True),
        ("site.memory_mb", "512", True),
        ("system.heap_mb", "512", True),
        ("system.yaml.x", "1", True),
        ("system.tracing", "true", False),
        ("data.state", '"continue"', True),
        ("load.threads", "2", False),
        ("workload", f'"{OTHER}"', False),
        ("workload.request_distribution", '"uniform"', False),
        ("workload.records", "10", True),
    ],
)
def test_hard_and_easy(factor: str, level: str, hard: bool) -> None:
    assert is_hard(study(f"[factors]\n{factor} = [{level}]\n"), factor) is hard


CASES = {
    "load.thread = 4: no such key; did you mean 'threads'?": "thread = 4\n",
    "load.server_warm_up = 'off': no such key; [server_warm_up] is a separate section": "server_warm_up = 'off'\n",
    "load.probes = 'os': no such key; probes is a top-level key, above the first section": "probes = 'os'\n",
    "paper.toml:20: load.threads = 0: must be at least 1": "threads = 0\n",
    "paper.toml:20: load.threads = 'many': must be a whole number, at least 1": 'threads = "many"\n',
    "load.schedule = 'poison': not allowed; did you mean 'poisson'?": 'schedule = "poison"\n',
    "paper.toml:20: load.read_consistency = 'QOURUM': not allowed; did you mean 'QUORUM'?": (
        'read_consistency = "QOURUM"\n'
    ),
    "paper.toml:18: load: rate_per_s applies only to schedule constant or poisson": "rate_per_s = 10\n",
    "paper.toml:24: load.phases.0.schedule = 'poison': not allowed; did you mean 'poisson'?": (
        '\n[[load.phases]]\nname = "a"\nduration_s = 1\nschedule = "poison"\n'
    ),
    "load.phases.0.rate_s = 1: no such key; did you mean 'rate_per_s'?": (
        '[[load.phases]]\nname = "a"\nduration_s = 1\nrate_s = 1\n'
    ),
    "paper.toml:21: design.ordr = 'x': no such key; did you mean 'order'?": '[design]\nordr = "x"\n',
    "paper.toml:20: loads: no such key; did you mean 'load'?": "[loads]\na = 1\n",
    "paper.toml:21: factors.load.thread: no such key: a factor is a field of the study; did you mean 'load.threads'?": (
        "[factors]\nload.thread = [1]\n"
    ),
    "paper.toml:21: factors.node: no such key: a factor is a field of the study; did you mean 'nodes'?": (
        "[factors]\nnode = [1]\n"
    ),
    "factors.design.trials: no such key": "[factors]\ndesign.trials = [1]\n",
    "paper.toml:21: factors.nodes = 3: must be a list of levels": "[factors]\nnodes = 3\n",
    "paper.toml:21: factors.nodes: a factor needs at least one level": "[factors]\nnodes = []\n",
    "paper.toml:21: factors.nodes = [1, 3, 1]: level 1 is listed twice": "[factors]\nnodes = [1, 3, 1]\n",
    "paper.toml:21: factors: site.nodes = 0: must be at least 1": "[factors]\nnodes = [1, 0]\n",
    "paper.toml:22: factors: system.compression = 'lz5': not allowed; did you mean 'lz4'?": (
        '[factors]\nnodes = [1, 3]\nsystem.compression = ["none", "lz5"]\n'
    ),
    "have the same complete settings": (
        '[factors]\nx = ["a", "b"]\n[levels.x.a]\nload.routing = "token"\n[levels.x.b]\nload.compression = "none"\n'
    ),
    "[1, True]: level true is listed twice": "[factors]\nload.threads = [1, true]\n",
    "workload.records = true: must be a whole number": "[factors]\nworkload.records = [1000, true]\n",
    "paper.toml:21: factors: system.tracing = 'yes': must be true or false": (
        '[factors]\nsystem.tracing = [false, "yes"]\n'
    ),
    "paper.toml:20: load.warm_up_s = true: must be a number, at least 0": "warm_up_s = true\n",
    "analysis.warm_up_trials = 3: drops every trial: design.trials is 3": "[analysis]\nwarm_up_trials = 3\n",
    "analysis.compared = 'node': not a factor of two levels or more; did you mean 'nodes'?": (
        '[analysis]\ncompared = "node"\n[factors]\nnodes = [1, 3]\n'
    ),
    "analysis.compared = 'workload': workloads are compared only where nothing else is a factor": (
        '[analysis]\ncompared = "workload"\n[factors]\nnodes = [1, 3]\nworkload = ["ycsb-a", "ycsb-c"]\n'
    ),
    "analysis.compared = 'nodes': a design of kind fractional compares no single factor": (
        '[analysis]\ncompared = "nodes"\n[design]\nkind = "fractional"\n[factors]\nnodes = [1, 3]\n'
        '"load.threads" = [1, 2]\n'
    ),
    "design.treatments: a listed design needs treatments": '[design]\nkind = "listed"\n',
    "paper.toml:20: design.treatments: treatments are allowed only in a listed": "[[design.treatments]]\nnodes = 1\n",
    "paper.toml:26: design.treatments.1.nodes: every treatment must give its level": (
        '[design]\nkind = "listed"\n\n[[design.treatments]]\nnodes = 1\nload.threads = 1\n'
        "[[design.treatments]]\nload.threads = 2\n"
    ),
    "design.base: a base is allowed only in a one-at-a-time": "[design.base]\nnodes = 1\n[factors]\nnodes = [1]\n",
    "paper.toml:21: design.control.nodes = 2: not a level of nodes; allowed: 1, 3": (
        "[design.control]\nnodes = 2\n[factors]\nnodes = [1, 3]\n"
    ),
    "100000000 treatments; at most 10000": "[factors]\n"
    + "".join(
        f"{name} = {list(range(1, 101))}\n" for name in ("nodes", "load.threads", "load.timeout_ms", "site.load_nodes")
    ).replace("site.load_nodes = " + str(list(range(1, 101))), "site.memory_mb = " + str(list(range(16, 116)))),
    "load.engine = 'agnet': unknown engine": 'engine = "agnet"\n',
}


@pytest.mark.parametrize(("message", "rest"), list(CASES.items()))
def test_what_is_wrong_is_said(message: str, rest: str) -> None:
    assert message in wrong(rest).message


def test_a_misspelt_setting_of_a_plug_in() -> None:
    error = wrong("", HEAD.replace("records = 5000", "record = 5000"))
    assert error.message.startswith("paper.toml:16: workload.record = 5000: no such key; did you mean 'records'?")
    assert error.line == 16
    assert error.key == "workload.record"
    assert error.read == 5000
    assert error.allowed == ("name", "records", "request_distribution")


def test_a_wrong_value_of_a_plug_in() -> None:
    error = wrong("", HEAD.replace("records = 5000", "records = -1"))
    assert error.message == "paper.toml:16: workload.records = -1: must be at least 1"


def test_an_unknown_plug_in_names_the_nearest() -> None:
    error = wrong("", HEAD.replace("[site]\nname = ", "[site]\nname = 'lokal' # "))
    assert error.message.startswith("paper.toml:9: site.name = 'lokal': unknown site 'lokal'; did you mean 'local'?")


def test_a_file_that_is_no_plug_in(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    error = wrong("", HEAD.replace("[site]\nname = ", f"[site]\nname = '{tmp_path / 'empty.py'}' # "))
    assert "it does not define create and Settings" in error.message


def test_several_errors_are_said_at_once_in_the_order_of_the_file() -> None:
    error = wrong("thread = 4\n[factors]\nnode = [1]\n", HEAD.replace("records = 5000", "recods = 5000"))
    assert [each.line for each in error.errors] == [16, 20]
    error = wrong("threads = 2\n[factors]\nnode = [1]\nnodes = [1, 1]\n", HEAD.replace("records", "recods"))
    assert [each.line for each in error.errors] == [16, 22, 23]
    assert error.message.count("\n") == 2
    assert error.hint == "3 errors"


def test_another_error_makes_no_error_of_the_table_of_a_plug_in() -> None:
    named = '[site.docker]\ndaemon = "running"\n[factors]\nsite = ["local", "docker"]\n'
    wrong_name = '[analysis]\nresponses = ["speed"]\n'
    assert [each.key for each in wrong(named + wrong_name).errors] == ["analysis.responses.0"]
    misspelt = wrong(named.replace("site.docker", "site.dokcer") + wrong_name)
    assert [each.key for each in misspelt.errors] == ["site.dokcer", "analysis.responses.0"]


def test_missing_tables() -> None:
    error = wrong("", "format = 1\n")
    missing = [each.key for each in error.errors]
    assert missing == ["study", "system", "workload", "load"]
    assert "study: must be given" in error.message


def test_not_toml() -> None:
    error = wrong("threads = = 2\n")
    assert error.message.startswith("paper.toml:20: not TOML: column 11:")
    assert error.line == 20


def test_a_key_beside_its_own_table_takes_quotes() -> None:
    error = wrong('[factors]\nworkload = ["x"]\nworkload.records = [1]\n')
    assert error.message.startswith("paper.toml:22: not TOML")
    assert 'in quotes: "workload.records"' in error.hint


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="No such file"):
        read(tmp_path / "none.toml")


def test_scale() -> None:
    found = study("[factors]\nload.operations = [1000, 50000]\n[design]\ntrials = 30\n", scale=0.01)
    assert found.study.name == "paper-scale-0.01"
    assert found.workload.settings["records"] == 100
    assert found.factors["load.operations"] == (100, 500)
    assert found.design.trials == 30
    assert study("", scale=1.0) == study("")
    assert settings_of(study("", scale=2), {})["workload"]["records"] == 10_000


def test_scale_reaches_a_default_of_the_plug_in() -> None:
    found = read_text(HEAD.replace("records = 5000\n", ""), "paper.toml", scale=0.1)
    assert found.workload.settings["records"] == 1000


def test_scale_does_not_raise_what_is_small_already() -> None:
    found = read_text(HEAD.replace("records = 5000\n", "records = 40\n"), "paper.toml", scale=0.1)
    assert found.workload.settings["records"] == 40


def test_a_text_in_the_place_of_a_path_is_not_repeated_in_full() -> None:
    with pytest.raises(StudyError, match="cannot be read") as raised:
        read(Path(HEAD * 10))
    assert len(raised.value.message) < 200


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), "0.1"])
def test_scales_that_make_no_sense(scale: float) -> None:
    with pytest.raises(StudyError, match="scale"):
        study("", scale=scale)


def test_settings_have_one_text() -> None:
    left = settings_of(study("threads = 2\n"), {})
    right = settings_of(study("[factors]\nload.threads = [1, 2]\n"), {"load.threads": 2})
    assert canonical(left) == canonical(right)
    assert canonical({"b": 1, "a": {"d": [1.5], "c": None}}) == '{"a":{"c":null,"d":[1.5]},"b":1}'
    assert settings_hash({}) == "44136fa355b3"  # SHA-256 of "{}"


def test_one_at_a_time_departs_from_its_base() -> None:
    found = study(
        '[design]\nkind = "one-at-a-time"\n[design.base]\nload.threads = 4\n'
        "[factors]\nnodes = [1, 3]\nload.threads = [1, 4, 8]\n"
    )
    assert treatments_of(found) == (
        {"nodes": 1, "load.threads": 4},
        {"nodes": 3, "load.threads": 4},
        {"nodes": 1, "load.threads": 1},
        {"nodes": 1, "load.threads": 8},
    )


def test_a_control_fills_up_from_the_base() -> None:
    found = study("[design]\ncontrol = { nodes = 3 }\n[factors]\nnodes = [1, 3]\nload.threads = [2, 4]\n")
    assert control_of(found) == {"nodes": 3, "load.threads": 2}


UNTIL = "[design]\nstarts = 12\n[design.until]\n"


def test_a_stopping_rule_is_read_and_what_could_not_work_is_refused() -> None:
    until = study(f"{UNTIL}width_percent = 2.5\n").design.until
    assert until is not None
    assert (until.width_percent, until.least_starts, until.response, until.hours) == (2.5, 10, "main", None)
    assert "must be given" in wrong(UNTIL).message
    low = wrong(f"{UNTIL}width_percent = 2\nleast_starts = 2\n")
    assert "must be at least 6" in low.message
    assert "88% of simulated studies" in low.message
    assert "least_starts" in wrong(f"{UNTIL}width_percent = 2\nleast_strats = 8\n").message
    capped = wrong(f"{UNTIL}width_percent = 2\nleast_starts = 13\n")
    assert capped.key == "design.starts"
    assert "no interval would be judged" in capped.message
    assert "must be more than 0" in wrong(f"{UNTIL}width_percent = 0\n").message
    assert "main, execution_time_ms" in wrong(f'{UNTIL}width_percent = 2\nresponse = "no such thing"\n').message


def test_an_error_points_to_the_table_of_its_plug_in(tmp_path: Path) -> None:
    path = tmp_path / "paper.toml"
    path.write_text('[site]\nname = "docker"\n[site.docker]\ndaemon = "running"\n[node]\nmemory_mb = 200\n')
    wrong_keys = [StudyError("x", key=key) for key in ("site.daemon", "node.memory_mb", "site.image")]
    assert [error.line for error in located(wrong_keys, path)] == [4, 6, 1]
