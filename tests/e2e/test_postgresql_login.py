"""A load on a PostgreSQL of somebody's own, which wants TLS and a password: passwords and certificates are checked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.system.postgresql._system import packaged
from tests.e2e.laboratory import Laboratory

pytestmark = [
    pytest.mark.agent,
    pytest.mark.postgresql,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate"),
]

PORT = 28_432
PASSWORD = "a password, with 'quotes'"
VARIABLE = "STEELYARD_POSTGRESQL_PASSWORD"
CERTIFICATE = (
    "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
    "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
)  # fmt: skip
OPERATIONS = 300


def certificate(folder: Path, name: str) -> Path:
    """A certificate of its own for the loopback address, with its key next to it."""
    made, key = folder / f"{name}.crt", folder / f"{name}.key"
    argv = ["openssl", *CERTIFICATE, "-out", str(made), "-keyout", str(key)]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    key.chmod(0o600)
    return made


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The certificate of a server that runs, has the workload's table, and lets in who knows the password, over TLS."""
    folder = tmp_path_factory.mktemp("postgresql")
    made, data, word = certificate(folder, "server"), folder / "data", folder / "password"
    word.write_text(PASSWORD)
    programs = Path(packaged(None).programs[0]).parent
    # As in the system's own start: the programs refuse root.
    user = ["unshare", "--user", "--"] if os.getuid() == 0 else []
    login = ["--auth=scram-sha-256", "--username=steelyard", f"--pwfile={word}", "--no-sync"]
    subprocess.run(
        [*user, programs / "initdb", f"--pgdata={data}", *login], check=True, capture_output=True, timeout=120
    )
    (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
    options = {
        "port": PORT, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "ssl": "on",
        "ssl_cert_file": made, "ssl_key_file": made.with_suffix(".key"),
    }  # fmt: skip
    argv = [*user, programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())]
    server = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=(folder / "log").open("ab"))
    try:
        fields = ", ".join(f"field{number} text" for number in range(10))
        _execute(programs, "postgres", "CREATE DATABASE steelyard")
        _execute(programs, "steelyard", f"CREATE TABLE usertable (y_id text PRIMARY KEY, {fields})")
        yield made
    finally:
        server.terminate()
        server.wait(30)


def _execute(programs: Path, database: str, statement: str) -> None:
    where = f"host=127.0.0.1 port={PORT} user=steelyard dbname={database} sslmode=require"
    argv, deadline = [programs / "psql", "-Xqd", where, "-c", statement], time.monotonic() + 60
    variables = {**os.environ, "PGPASSWORD": PASSWORD}
    while (said := subprocess.run(argv, env=variables, capture_output=True, check=False)).returncode:
        assert time.monotonic() < deadline, said.stderr
        time.sleep(0.2)


def load(laboratory: Laboratory, *words: str | Path) -> subprocess.CompletedProcess[str]:
    contact = ("--protocol", "postgresql", "--contact", f"127.0.0.1:{PORT}")
    return laboratory.call("load", "ycsb-d", *contact, "--operations", str(OPERATIONS), *words, timeout_s=120)


def encrypted(certificate_: Path) -> tuple[str, ...]:
    return ("--set", "load.tls=true", "--set", f"load.tls_ca={certificate_}")


def test_a_password_is_proved_over_tls(
    laboratory: Laboratory, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the same inserts: rows that are there are replaced."""
    monkeypatch.setenv(VARIABLE, PASSWORD)
    for more in (("--populate",), ()):
        done = load(laboratory, *more, *encrypted(authority), "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        errors = {
            name: phase["errors"] for report in json.loads(done.stdout) for name, phase in report["phases"].items()
        }
        assert errors == dict.fromkeys(("populate", "measure") if more else ("measure",), 0)


@pytest.mark.parametrize(
    ("password", "words"),
    [("another", "28P01 invalid_password"), (None, f"set {VARIABLE}")],
)
def test_without_the_password_nothing_is_sent(
    laboratory: Laboratory, authority: Path, monkeypatch: pytest.MonkeyPatch, password: str | None, words: str
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if password is not None:
        monkeypatch.setenv(VARIABLE, password)
    done = load(laboratory, *encrypted(authority))
    assert done.returncode not in (0, 1), done.stdout
    assert words in done.stderr


def test_a_server_with_another_certificate_gets_no_password(
    laboratory: Laboratory, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    done = load(laboratory, *encrypted(certificate(tmp_path, "other")))
    assert done.returncode not in (0, 1), done.stdout
    assert "certificate" in done.stderr


def test_a_server_that_wants_tls_says_so(
    laboratory: Laboratory, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    done = load(laboratory)
    assert done.returncode not in (0, 1), done.stdout
    assert "28000" in done.stderr
    assert "TLS" in done.stderr
