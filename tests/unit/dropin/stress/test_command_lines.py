"""Command lines of cassandra-stress: what each asks for, and what is refused by name."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from steelyard.dropin.stress import Refused
from steelyard.dropin.stress.parse import parse_settings, sections, tokens
from steelyard.dropin.stress.parse.settings import Settings
from steelyard.dropin.stress.plan import orders
from steelyard.dropin.stress.plan.orders import Ending
from steelyard.dropin.stress.run.command import known_words, without_load
from steelyard.wire.order import CqlTarget, Tls
from tests.unit.wire.orders import sent

STUDIES = (
    r"write n=1000000 -node IP",
    r"mixed ratio\(write=5,read=5\) duration=15m cl=ONE -pop dist=UNIFORM\(1..1000000\) -log file=~/logs5/3dummy.csv "
    r"-node IP -rate threads=609",
    r'write n=1000000 -schema keyspace="NewKeyspace" -node IP',
    r"mixed ratio\(write=5,read=5\) duration=15m cl=QUORUM -pop dist=UNIFORM\(1..1000000\) -log file=Quorum.csv "
    r"-node IP -rate threads=609",
    r"mixed ratio\(write=1,read=3\) duration=20m cl=ONE -pop dist=UNIFORM\(1..50000000\) -rate threads\=450 -node IP;",
    r"read duration=20m cl=ONE -pop dist=UNIFORM\(1..50000000\) -rate threads\=150 -node IP",
)
"""As the studies and the issue write them."""


def read(text: str, *, shell: bool = False) -> Settings:
    line = text.replace("IP", "127.0.0.1")
    return parse_settings.read(shlex.split(line.rstrip(";")) if shell else line.split())


def ordered(text: str) -> dict[str, Any]:
    settings = read(text)
    plan = orders.predefined(settings)
    threads = settings.rate.threads or settings.rate.least
    return sent(orders.order(settings, plan, ["127.0.0.1:9042"], threads, orders.ending(settings), 7))


@pytest.mark.parametrize("line", STUDIES)
def test_the_lines_of_the_studies_say_the_same_through_a_shell_and_without_one(line: str) -> None:
    assert read(line, shell=True) == read(line)


def test_what_the_lines_of_the_studies_ask_for() -> None:
    write, mixed, named, quorum, three, reads = (read(line) for line in STUDIES)
    assert (write.command.name, write.command.count, write.rate.threads) == ("write", 1_000_000, 200)
    assert write.population.sequence == (1, 1_000_000)
    assert write.connection.nodes == ("127.0.0.1",)
    assert mixed.command.ratios == {"read": 5.0, "write": 5.0}
    assert (mixed.command.duration_s, mixed.command.consistency, mixed.rate.threads) == (900.0, "ONE", 609)
    assert mixed.log.file == Path("~/logs5/3dummy.csv").expanduser()
    assert named.schema.keyspace == "NewKeyspace"
    assert quorum.command.consistency == "QUORUM"
    assert three.rate.threads == 450
    assert three.command.ratios == {"read": 3.0, "write": 1.0}
    assert three.connection.nodes == ("127.0.0.1",)
    assert (reads.command.duration_s, reads.rate.threads) == (1200.0, 150)
    drawn = reads.population.drawn
    assert drawn is not None
    assert (drawn.kind, drawn.low, drawn.high) == ("uniform", 1, 50_000_000)


@pytest.mark.parametrize(
    ("line", "keys", "stop", "schedule"),
    [
        (
            "write n=10",
            {"name": "sequence", "min": 0, "max": 9},
            {"operations": 10},
            {"kind": "closed", "threads": 200},
        ),
        (
            "read n=10 -rate threads=3",
            {"name": "gaussian", "min": 0, "max": 9, "mean": 4.5, "deviation": 1.5},
            {"operations": 10},
            {"kind": "closed", "threads": 3},
        ),
        (
            "read duration=2m -rate threads=3 fixed=100/s",
            {"name": "gaussian", "min": 0, "max": 999_999, "mean": 499_999.5, "deviation": 999_999 / 6},
            {"duration_s": 120.0},
            {"kind": "constant", "rate_per_s": 100.0, "in_flight": 3},
        ),
        (
            "write duration=1h -pop seq=5..10 no-wrap -rate threads=1 throttle=9/s",
            {"name": "sequence", "min": 4, "max": 9},
            {"operations": 6, "duration_s": 3600.0},
            {"kind": "constant", "rate_per_s": 9.0, "in_flight": 1},
        ),
        (
            "write n=3 -pop seq=1..10 no-wrap",
            {"name": "sequence", "min": 0, "max": 9},
            {"operations": 3},
            {"kind": "closed", "threads": 200},
        ),
        (
            "mixed n=1k -pop dist=~EXP(1..10) -rate threads=2",
            {"name": "inverted", "of": {"name": "exponential", "min": 0, "max": 9}},
            {"operations": 1000},
            {"kind": "closed", "threads": 2},
        ),
        (
            "read n=1 -pop dist=QEXTREME(1..1M,2,4) -rate threads=2",
            {"name": "extreme", "min": 0, "max": 999_999, "shape": 2.0, "quanta": 4},
            {"operations": 1},
            {"kind": "closed", "threads": 2},
        ),
        (
            "read",
            {"name": "gaussian", "min": 0, "max": 999_999, "mean": 499_999.5, "deviation": 999_999 / 6},
            {"duration_s": 201.0},
            {"kind": "closed", "threads": 4},
        ),
    ],
)
def test_keys_ends_and_schedules(line: str, keys: Any, stop: Any, schedule: Any) -> None:
    order = ordered(line)
    for operation in order["work"]["operations"]:
        number = operation["keys"]["number"]
        assert {
            name: pytest.approx(value) if isinstance(value, float) else value for name, value in number.items()
        } == keys
    assert order["stop"] == stop
    assert order["schedule"] == schedule
    json.dumps(order, allow_nan=False)


def test_statements_are_those_of_cassandra_stress() -> None:
    order = ordered(
        'mixed ratio(read=1,write=1,counter_write=1,counter_read=1) n=1 -schema keyspace="K" -rate threads=1'
    )
    statements = {one["name"]: one for one in order["work"]["statements"]}
    cells = ", ".join(f'"C{index}"' for index in range(5))
    assert statements["read"]["cql"] == f'SELECT {cells} FROM "K"."standard1" WHERE key = ?'
    assert statements["write"]["cql"] == (
        'UPDATE "K"."standard1" SET "C0" = ?, "C1" = ?, "C2" = ?, "C3" = ?, "C4" = ? WHERE key = ?'
    )
    assert statements["counter_write"]["cql"].startswith('UPDATE "K"."counter1" SET "C0" = "C0" + ?,')
    assert statements["counter_read"]["cql"] == 'SELECT * FROM "K"."counter1" WHERE key = ?'
    assert [one["make"]["column"] for one in statements["read"]["expect"]] == [0, 1, 2, 3, 4]
    assert statements["write"]["partition_key"] == [5]
    assert [one["name"] for one in order["work"]["operations"]] == [
        "COUNTER_READ",
        "COUNTER_WRITE",
        "READ",
        "WRITE",
    ]
    assert order["work"]["clustering"]["name"] == "gaussian"
    for statement in statements.values():
        assert statement["cql"].count("?") == len(statement["values"])


def test_columns_names_sizes_and_keys() -> None:
    twelve = ordered("write n=1 keysize=20 -col n=FIXED(12) size=UNIFORM(1..9) timestamp=5")["work"]["statements"][0]
    assert "USING TIMESTAMP 5 SET" in twelve["cql"]
    # In the order of their bytes, each with the number in its name.
    assert [one["make"].get("column") for one in twelve["values"][:-1]] == [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]
    assert twelve["values"][0]["make"]["size"] == {"name": "uniform", "min": 1.0, "max": 9.0}
    assert twelve["values"][-1]["make"] == {"kind": "stress-key", "size": 20}
    assert {one["make"].get("key_size") for one in twelve["values"][:-1]} == {20}
    named = ordered("read n=1 -col names=b,a slice -rate threads=1")["work"]["statements"][0]
    assert named["cql"].startswith("SELECT * FROM")
    assert [one["make"].get("named") for one in named["expect"]] == [None, "a", "b"]
    assert named["expect"][0]["make"]["kind"] == "any"


def test_an_operation_is_tried_ten_times_unless_told_otherwise() -> None:
    assert ordered("read n=1 -rate threads=1")["tries"] == 10
    assert ordered("read n=1 -rate threads=1 -errors retries=0").get("tries", 1) == 1


def test_validation_and_its_end() -> None:
    assert ordered("read n=1 -rate threads=1")["work"]["validate_fraction"] == 1.0
    skipped = ordered("read n=1 -rate threads=1 -errors skip-read-validation")["work"]
    assert "validate_fraction" not in skipped
    assert "expect" not in skipped["statements"][0]


def test_connections(tmp_path: Path) -> None:
    pem = tmp_path / "own.pem"
    pem.write_text("-----BEGIN CERTIFICATE-----")
    nodes = tmp_path / "nodes"
    nodes.write_text("10.0.0.1\n\n10.0.0.2\n")
    line = (
        f"read n=1 serial-cl=LOCAL_SERIAL -node file={nodes} whitelist -port native=9043 -rate threads=1 "
        f"-mode native cql3 user=u password=p compression=lz4 protocolVersion=3 "
        f"-transport truststore={pem} keystore={pem}"
    )
    settings = parse_settings.read(line.split())
    assert settings.connection.nodes == ("10.0.0.1", "10.0.0.2")
    assert (settings.connection.user, settings.connection.password, settings.connection.port) == ("u", "p", 9043)
    assert any("protocolVersion=3" in note for note in settings.notes)
    order = orders.order(settings, orders.predefined(settings), ["10.0.0.1:9043"], 1, Ending(1), 7)
    assert isinstance(order.target, CqlTarget)
    assert (order.target.compression, order.target.serial_consistency) == ("lz4", "LOCAL_SERIAL")
    assert order.discover is False
    assert order.tls == Tls(ca=str(pem), certificate=str(pem), key=str(pem), verify="chain")
    assert "p" not in order.text.split('"')


REFUSALS = [
    ("", "command", "read, write, mixed"),
    ("reed n=1", "command", "read, write, mixed"),
    ("read n=1 -nodes IP", "-nodes", "-node"),
    ("read n=1 -node IP -node IP", "-node", "once"),
    ("read n=1 thread=3", "read", "keysize=?"),
    ("read n=x", "read n=", "10k"),
    ("read n=1 duration=1m", "read", "duration=?"),
    ("read duration=15", "read duration=", "15m"),
    ("read duration=0s", "read duration=", "from 1s"),
    ("read cl=SOME", "read cl=", "QUORUM"),
    ("mixed n=1 ratio(reed=1)", "mixed ratio", "read, write"),
    ("mixed n=1 ratio(read=x)", "mixed ratio", "0.5"),
    ("mixed n=1 ratio(read=0)", "mixed ratio", "read=3"),
    ("read n=1 -pop dist=UNIFORM(1,5)", "-pop dist=", "UNIFORM(min..max)"),
    ("read n=1 -pop dist=ZIPF(1..5)", "-pop dist=", "EXP(min..max)"),
    ("read n=1 -pop dist=UNIFORM(0..5)", "-pop dist=", "from 1"),
    ("write n=1 -pop seq=5..1", "-pop seq=", "from 1"),
    ("write n=1 -pop seq=1..9 read-lookback=FIXED(1)", "-pop read-lookback=", ""),
    ("write n=1 -insert visits=FIXED(10)", "-insert visits=", "fixed(1)"),
    ("write n=1 -insert row-population-ratio=FIXED(1)/2", "-insert row-population-ratio=", "fixed(1)/1"),
    ("write n=1 -col super=3", "-col super=", "no super columns"),
    ("write n=1 -col n=UNIFORM(1..5)", "-col n=", "FIXED(n)"),
    ("write n=1 -col comparator=TimeUUIDType", "-col comparator=", "UTF8Type"),
    ("write n=99999999999999999999", "write n=", "below"),
    ("write duration=99999999999h", "write duration=", "2h"),
    ("write n=1 -col size=EXTREME(1..100,nan)", "-col size=", "EXTREME"),
    ("write n=1 -col size=EXTREME(1..100,1e-9)", "-col size=", "EXTREME"),
    ("write n=1 -col size=GAUSSIAN(1..100,inf,5)", "-col size=", "GAUSSIAN"),
    ("read n=1 -pop dist=UNIFORM(1..99999999999999999999)", "-pop dist=", "UNIFORM"),
    ("read n=1 -pop seq=1..99999999999999999999", "-pop seq=", "below"),
    ("write n=1 -rate threads=4000000000", "-rate threads=", "1 to 100000"),
    ("write n=1 -rate threads=1 fixed=99999999/s", "-rate fixed=", "1000/s"),
    ("write n=1 -rate threads=0", "-rate threads=", "from 1"),
    ("write n=1 -rate threads=1 fixed=1/s throttle=1/s", "-rate", "one of them"),
    ("write n=1 -rate threads=1 fixed=100", "-rate fixed=", "1000/s"),
    ("write n=1 -rate threads>=9 threads<=3", "-rate threads<=", "from 9"),
    ("write n=1 -rate throttle=5/s", "-rate", "threads=?"),
    ("write n=1 -mode thrift", "-mode thrift", ""),
    ("write n=1 -errors delay-policy=linear", "-errors delay-policy=", ""),
    ("write n=1 -reporting output-frequency=5", "-reporting output-frequency=", "5s"),
    ("write n=1 -reporting header-frequency=0m", "-reporting header-frequency=", "from 1"),
    ("write n=1 -credentials-file", "-credentials-file", ""),
    ("write n=1 -jmx port=7199", "-jmx", "user=?"),
    ("write n=1 -mode native cql3 password=p", "-mode password=", "user="),
    ("write n=1 -schema replication(factor=x)", "-schema replication", "as 3"),
    ("write n=1 -schema keyspace=a;drop", "-schema keyspace=", ""),
    ("write n=1 -log level=loud", "-log level=", "verbose"),
    ("write n=1 -log interval=50ms", "-log interval=", "from 100"),
    ("write n=1 -errors retries=1000", "-errors retries=", "0 to 999"),
    ("write n=1 -transport factory=x", "-transport factory=", ""),
    ("write n=1 -transport truststore=/no/such/file", "-transport truststore=", "PEM"),
    ("write n=1 -port native=0", "-port native=", "65535"),
    ("write n=1 -sendto 10.0.0.1", "-sendto", ""),
    ("write n=1 -tokenrange wrap", "-tokenrange", ""),
    ("user ops(insert=1) n=1", "user", "profile=?"),
    ("user profile=x ops(insert=1) n=1 -schema keyspace=k", "-schema", ""),
]


@pytest.mark.parametrize(("line", "option", "allowed"), REFUSALS, ids=[line for line, _, _ in REFUSALS])
def test_what_we_do_not_have_is_refused_by_name(line: str, option: str, allowed: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_settings.read(line.replace("IP", "127.0.0.1").split())
    assert refused.value.option == option
    assert allowed in refused.value.allowed
    assert refused.value.message.startswith(option)


@pytest.mark.parametrize(
    "words",
    [
        "-mode native user=u pasword=hidden",
        "-mode native cql3 user=u password=hidden password=hidden",
        "-mode passwd=hidden",
        "-jmx pwd=hidden",
        "-transport keystorepassword=hidden truststore_password=hidden",
        "-mod user=u password=hidden",
    ],
)
def test_no_refusal_shows_a_password(words: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_settings.read(f"write n=1 {words}".split())
    assert "hidden" not in refused.value.message + refused.value.hint + refused.value.read


def test_a_file_of_nodes_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nodes"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(Refused, match="line 1: not UTF-8 text"):
        read(f"write n=1 -node file={path}")


def test_words_that_change_nothing_are_said() -> None:
    (said,) = read("user profile=x ops(insert=1) n=1 -pop dist=uniform(1..9) contents=shuffled").notes
    assert said.startswith("-pop contents=shuffled changes nothing")


@pytest.mark.parametrize(("begins", "store"), [(b"\xfe\xed\xfe\xed\0\0", "JKS"), (b"\x30\x82\x01", "PKCS#12")])
def test_a_key_store_of_java_is_refused_with_how_to_convert_it(tmp_path: Path, begins: bytes, store: str) -> None:
    path = tmp_path / "store"
    path.write_bytes(begins)
    with pytest.raises(Refused, match=store) as refused:
        parse_settings.read(f"read n=1 -transport truststore={path}".split())
    assert "keytool" in refused.value.hint
    assert "openssl" in refused.value.hint


def test_a_certificate_in_der_is_not_called_a_key_store(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(b"\x30\x82\x03\x01\x30\x82\x01\xe9")
    with pytest.raises(Refused, match="a certificate in DER") as refused:
        parse_settings.read(f"read n=1 -transport truststore={path}".split())
    assert "openssl x509 -inform DER" in refused.value.hint


def test_words_are_tidied_as_a_shell_would() -> None:
    assert tokens.tidy([r"mixed", r"ratio\(", "write = 1,", "read=2", ")", "-node", "a;"]) == (
        "mixed",
        "ratio(write=1,read=2)",
        "-node",
        "a",
    )
    # A backslash that escapes nothing belongs to its value.
    assert tokens.tidy([r"password=a\b"]) == (r"password=a\b",)
    assert tokens.tidy(["'ratio(write=1)'", 'keyspace="K"']) == ("ratio(write=1)", "keyspace=K")


def test_help_names_every_command_and_option() -> None:
    text = "\n".join(known_words())
    assert "docs/howto/switch-from-cassandra-stress.md" in text
    for section in (*sections.COMMANDS, *sections.OPTIONS):
        assert (f"\n{section.name} " in text) == (section not in (sections.SENDTO, sections.TOKENRANGE))
    assert "threads=? throttle=? fixed=? threads>=? threads<=? auto" in text
    for asked in (["help"], ["help", "-rate"], ["write", "-?"], ["--help"]):
        assert without_load(asked) == known_words()
    with pytest.raises(Refused, match="legacy"):
        without_load(["legacy", "-o", "INSERT"])
    assert without_load(["read", "n=1"]) is None


def test_print_shows_a_distribution_as_cassandra_stress_does() -> None:
    lines = without_load(["print", "dist=GAUSSIAN(1..100)"])
    assert lines is not None
    assert lines[0] == "% of samples    Range       % of total"
    assert lines[1] == "10.0            29                  29.0"
    assert lines[-1] == "100.0           100                100.0"
