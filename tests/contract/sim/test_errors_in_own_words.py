"""What `stress`, `ycsb` and `load` say when the cluster cannot be used: the likely cause, in the words of the command
that was typed. Wrong ports, TLS against none, certificates, passwords, tables."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import struct
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from steelyard.cli import main
from steelyard.node import agent

pytestmark = [
    pytest.mark.agent,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates"),
]

ADDRESS = "127.0.0.1"
TIMEOUT_S = 60.0
SIGNED = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 30"
CERTIFICATES = f"""
req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 30 -subj /CN=own-authority
req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 30 -subj /CN=other-authority
req -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=node
x509 -req -in node.csr {SIGNED} -out old.pem
x509 -req -in node.csr {SIGNED} -extfile v3.ext -out node.pem
"""
"""Made by openssl, a line each. `old` has X.509 version 1: nobody said -extfile."""
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


Steelyard = Callable[[list[str]], tuple[int, str]]


@pytest.fixture
def steelyard(capsys: pytest.CaptureFixture[str]) -> Steelyard:
    """Carries out a command line in this process: exit code, and standard error in one line."""

    def run(words: list[str]) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main.main(words)
        return int(ended.value.code or 0), " ".join(capsys.readouterr().err.split())

    return run


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of certificates, and of files that a command cannot use."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "v3.ext").write_text("subjectAltName=IP:127.0.0.1\n")
    for line in CERTIFICATES.strip().splitlines():
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True, timeout=TIMEOUT_S)
    (folder / "old-both.pem").write_bytes((folder / "old.pem").read_bytes() + (folder / "node.key").read_bytes())
    (folder / "latin.yaml").write_bytes("keyspace: caf\xe9\n".encode("latin-1"))
    return folder


@contextlib.contextmanager
def listening(connected: Connected, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server in a thread; its port."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(connected, ADDRESS, 0, ssl=tls))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIMEOUT_S)
        loop.close()


def passing_on(port: int, refuses: Callable[[bytes], bool] = lambda first: False) -> Connected:
    """Passes bytes on to a port, but hangs up where the first ones are refused: Java's servers say nothing to whoever
    does not speak TLS."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes) -> None:
        with contextlib.suppress(OSError):
            writer.write(first)
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(65_536)
        if refuses(first):
            writer.transport.abort()
            return
        node_reader, node_writer = await asyncio.open_connection(ADDRESS, port)
        await asyncio.gather(pump(reader, node_writer, first), pump(node_reader, writer, b""))

    return connected


async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A node that wants a password and takes none: SUPPORTED, AUTHENTICATE, then bad credentials."""
    answers = {
        0x05: (0x06, b"\0\0"),
        0x01: (0x03, b"\0\x15PasswordAuthenticator"),
        0x0F: (0x00, struct.pack(">iH", 0x0100, 9) + b"incorrect"),
    }
    with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while True:
            _, _, stream, opcode, length = struct.unpack(">BBhBi", await reader.readexactly(9))
            await reader.readexactly(length)
            answered, body = answers[opcode]
            writer.write(struct.pack(">BBhBi", 0x84, 0, stream, answered, len(body)) + body)


def serving(folder: Path, certificate: str, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / certificate, folder / "node.key")
    context.maximum_version = newest
    return context


COLUMNS = {"usertable": "y_id text PRIMARY KEY, field0 text, c1 text", "standard1": "key blob PRIMARY KEY, C0 blob"}


@contextlib.contextmanager
def simulated(*tables: str) -> Iterator[int]:
    """A simulated node with tables that have other columns than a load needs; its port."""
    argv = [str(agent.find()), "sim", "--listen", f"{ADDRESS}:0", "--remember"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as node:
        try:
            assert node.stdout is not None
            contact = node.stdout.readline().split()[-1]
            replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            keyspace = tables[0].partition(".")[0]
            statements = [f"CREATE KEYSPACE {keyspace} WITH replication = {replication}"]
            statements += [f"CREATE TABLE {name} ({COLUMNS[name.partition('.')[2]]})" for name in tables]
            argv = [str(agent.find()), "cql", "--contact", contact, *statements]
            subprocess.run(argv, check=True, capture_output=True, timeout=TIMEOUT_S)
            yield int(contact.rpartition(":")[2])
        finally:
            node.kill()


@pytest.fixture(scope="module")
def ports(files: Path) -> Iterator[dict[str, int]]:
    """Ports by what is behind them; all but `guarded` lead to one simulated node."""
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(simulated("k.usertable", "k.standard1"))
        other = stack.enter_context(simulated("ycsb.usertable"))
        ended = {"plain": plain, "other": other, "guarded": stack.enter_context(listening(guarded))}
        for name, certificate, newest in (
            ("tls", "node.pem", ssl.TLSVersion.TLSv1_3),
            ("old", "old.pem", ssl.TLSVersion.TLSv1_3),
            ("old-1.2", "old.pem", ssl.TLSVersion.TLSv1_2),
        ):
            ended[name] = stack.enter_context(listening(passing_on(plain), serving(files, certificate, newest)))
        tls = ended["tls"]
        ended["mute-tls"] = stack.enter_context(listening(passing_on(tls, lambda first: first[:1] != b"\x16")))
        ended["mute-plain"] = stack.enter_context(listening(passing_on(plain, lambda first: first[:1] == b"\x16")))
        ended["closed"] = 1
        yield ended


STRESS = "stress read n=1 no-warmup -rate threads=1 -log no-settings -node 127.0.0.1 -port native={port}"
YCSB = (
    "ycsb run cassandra-cql -p workload=site.ycsb.workloads.CoreWorkload -p recordcount=1 -p operationcount=1 "
    "-p hosts=127.0.0.1 -p port={port}"
)
LOAD = "load ycsb-c --operations 1 --contact 127.0.0.1:{port}"
CASES = [
    # Nobody there, or somebody else.
    (STRESS, "closed", "", ["refused the connection", "port for CQL"]),
    (YCSB, "closed", "", ["refused the connection", "port for CQL"]),
    (LOAD, "closed", "", ["refused the connection", "port for CQL"]),
    (LOAD.replace("127.0.0.1:", "nosuch.invalid:"), "plain", "", ["no address is known for nosuch.invalid", "spelt"]),
    (YCSB.replace("127.0.0.1", "nosuch.invalid"), "plain", "", ["no address is known for nosuch.invalid", "spelt"]),
    (YCSB.replace("127.0.0.1", "[::1]"), "closed", "", ["[::1]:1 refused the connection"]),
    (STRESS.replace("127.0.0.1", "[::1"), "closed", "", ["-node: read '[::1'"]),
    # TLS against none, and none against TLS.
    (STRESS, "tls", "", ["speaks TLS", "-transport truststore="]),
    (STRESS, "mute-tls", "", ["speaks TLS", "-transport truststore="]),
    (YCSB, "mute-tls", "", ["speaks TLS", "-p cassandra.useSSL=true"]),
    (LOAD, "mute-tls", "", ["speaks TLS", "--set load.tls=true"]),
    (STRESS, "mute-plain", "-transport truststore=FILES/ca.pem", ["answers without TLS", "leave out -transport"]),
    (YCSB, "plain", "-p cassandra.useSSL=true", ["answers without TLS", "leave out cassandra.useSSL"]),
    (LOAD, "mute-plain", "--set load.tls=true", ["answers without TLS", "leave out load.tls"]),
    # Certificates.
    (STRESS, "tls", "-transport truststore=FILES/other.pem", ["no trusted authority signed", "-transport truststore="]),
    (YCSB, "tls", "-p cassandra.useSSL=true", ["no trusted authority signed", "steelyard.tls.ca"]),
    (LOAD, "tls", "--set load.tls=true", ["no trusted authority signed", "load.tls_ca", "load.tls_verify=none"]),
    (STRESS, "old", "-transport truststore=FILES/ca.pem", ["X.509 version 1", "-extfile v3.ext"]),
    (YCSB, "old-1.2", "-p cassandra.useSSL=true", ["X.509 version 1", "-extfile v3.ext", "steelyard.tls.verify=none"]),
    (LOAD, "old", "--set load.tls=true", ["X.509 version 1", "-extfile v3.ext", "load.tls_verify=none"]),
    (
        STRESS,
        "closed",
        "-transport truststore=FILES/ca.pem keystore=FILES/old-both.pem",
        ["-transport keystore=: read", "version 1", "openssl x509 -req", "-extfile v3.ext"],
    ),
    (
        LOAD,
        "closed",
        "--set load.tls=true --set load.tls_certificate=FILES/old.pem --set load.tls_key=FILES/node.key",
        ["load.tls_certificate: read", "version 1", "openssl x509 -req", "-extfile v3.ext"],
    ),
    # Passwords.
    (STRESS, "guarded", "", ["requires a user and a password", "-mode user= and password="]),
    (STRESS, "guarded", "-mode user=me password=secret", ["incorrect", "-mode user= and password= hold what was sent"]),
    (YCSB, "guarded", "", ["requires a user and a password", "-p cassandra.username="]),
    (YCSB, "guarded", "-p cassandra.username=me -p cassandra.password=secret", ["incorrect", "-p cassandra.username="]),
    (LOAD, "guarded", "", ["requires a user and a password", "STEELYARD_CQL_USER"]),
    # Tables.
    (STRESS, "plain", "", ["keyspace1", "makes keyspace and tables"]),
    (STRESS, "plain", "-schema keyspace=k", ["other columns: it lacks C0, C1", "it has key, c0", "-col n="]),
    (YCSB, "plain", "", ["--create-table"]),
    (
        YCSB,
        "plain",
        "-p cassandra.keyspace=k",
        ["other columns: it lacks field1,", "it has y_id, c1, field0", "fieldcount"],
    ),
    (LOAD, "plain", "", ["--create makes keyspace and tables"]),
    (LOAD, "other", "", ["other columns: it lacks field1,", "it has y_id, c1, field0"]),
    # Files.
    ("stress user profile=FILES/none.yaml ops(insert=1) n=1", "plain", "", ["none.yaml", "No such file"]),
    ("stress user profile=FILES ops(insert=1) n=1", "plain", "", ["Is a directory"]),
    ("stress user profile=FILES/latin.yaml ops(insert=1) n=1", "plain", "", ["latin.yaml", "not UTF-8 text"]),
    (YCSB, "plain", "-P FILES", ["Is a directory"]),
    (YCSB, "plain", "-thread 3", ["-thread is refused", "did you mean -threads?"]),
]


@pytest.mark.parametrize(("line", "port", "more", "said"), CASES)
def test_the_likely_cause_is_said(
    line: str, port: str, more: str, said: list[str], ports: dict[str, int], files: Path, steelyard: Steelyard
) -> None:
    words = f"{line} {more}".replace("FILES", str(files)).format(port=ports[port]).split()
    code, told = steelyard(words)
    assert code not in (0, 130), told
    assert all(part in told for part in said), told
    assert "secret" not in told
    foreign = ("STEELYARD_CQL", " tls.") if words[0] != "load" else (" tls.",)
    assert not any(word in told for word in foreign), told
    assert told.count("error: ") == 1, told


@pytest.mark.parametrize("port", ["tls", "old", "old-1.2"])
def test_without_verification_any_certificate_is_accepted(
    port: str, ports: dict[str, int], steelyard: Steelyard
) -> None:
    words = [*LOAD.format(port=ports[port]).split(), "--create", "--populate", "--set", "records=3", "--json"]
    code, told = steelyard([*words, "--set", "load.tls=true", "--set", "load.tls_verify=none"])
    assert code == 0, told
