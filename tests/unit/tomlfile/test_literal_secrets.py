"""Secrets in plain text are refused wherever they stand in a file of the user, and never repeated."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from steelyard.cli.commands.check import check
from steelyard.model.errors import StudyError
from steelyard.model.secret import redacted, redacted_text, references
from steelyard.node.secrets import revealed
from steelyard.site.ssh import inventory
from steelyard.tomlfile.parse import parsed
from tests.unit.cli.screen import printed

ROOT = Path(__file__).resolve().parents[3]
SECRET = "hunter2hunter2"
REFUSED = [
    'system.jvm_options = ["-Xss256k", "-Dapikey=hunter2hunter2"]',
    'system.jvm_options = ["-javaagent:/a.jar=password=hunter2hunter2"]',
    'system.jvm_options = ["-javaagent:/a.jar=port=1,api_key=hunter2hunter2,level=3"]',
    'system.jvm_options = "-Dmy.auth.token=hunter2hunter2 -ea"',
    'system.jvm_options = ["-Dapi.key=hunter2hunter2"]',
    'site.arguments = ["--password", "hunter2hunter2"]',
    'site.arguments = ["-u", "me", "-pw", "hunter2hunter2"]',
    'site.arguments = ["--api-key", "hunter2hunter2", "-v"]',
    'site.arguments = ["--token=hunter2hunter2"]',
    'site.command = "tool --password hunter2hunter2 status"',
    'site.login = [["password", "hunter2hunter2"]]',
    'site.environment = [{ name = "DB_PASSWORD", value = "hunter2hunter2" }]',
    'site.environment = ["DB_PASSWORD=hunter2hunter2"]',
    'site.url = "https://me:hunter2hunter2@mirror/x"',
    'site.url = "redis://:hunter2hunter2@host:6379"',
    'site.url = "https://mirror/x?api_key=hunter2hunter2"',
    'site.header = "Authorization: Bearer hunter2hunter2"',
    'system.yaml.client_encryption_options.keystore_password = "hunter2hunter2"',
    '[system.yaml.x]\ntruststorePassword = "hunter2hunter2"',
    'apikey = "hunter2hunter2"',
    'password2 = "hunter2hunter2"',
    'secret_value = "hunter2hunter2"',
    'access_tokens = ["hunter2hunter2"]',
    'privatekey = "hunter2hunter2"',
    'db_creds = "hunter2hunter2"',
    'passphrase = "hunter2hunter2"',
    '[factors]\n"system.yaml.password" = ["env:ONE", "hunter2hunter2"]',
    '[levels.who.me]\n"system.jmx_credentials" = "hunter2hunter2"',
    '[study]\nquestion = "does it connect with password=hunter2hunter2?"',
    'json = \'{"password": "hunter2hunter2", "port": 1}\'',
    'yaml = """\nuser: me\npassword: hunter2hunter2\n"""',
    'x.options = { "-Dpassword=hunter2hunter2" = true }',
    'pem = "-----BEGIN RSA PRIVATE KEY-----\\nhunter2hunter2"',
    'x = 1 # password = "hunter2hunter2"',
    "statements.login = \"CREATE ROLE x WITH PASSWORD = 'hunter2hunter2'\"",
    'secret = "${hunter2hunter2}"',
]
ALLOWED = [
    'system.jvm_options = ["-Xss256k", "-Dapikey=env:API_KEY"]',
    'system.jvm_options = ["-javaagent:/a.jar=port=1,password=env:AGENT"]',
    'system.jvm_options = ["-Dcassandra.initial_token=42", "-Djavax.net.ssl.keyStore=/k.p12"]',
    'system.jvm_options = ["-Dcom.sun.management.jmxremote.password.file=/etc/jmx"]',
    'site.arguments = ["--password", "env:PW", "--password-file", "/run/pw"]',
    'site.arguments = ["--password", "--verbose"]',
    'site.arguments = ["--tokens", "16"]',
    'site.url = "https://mirror:8080/x@1"',
    'site.url = "http://me:env:PW@proxy"',
    'system.yaml.authenticator = "PasswordAuthenticator"',
    'system.yaml.authenticator.class_name = "org.apache.cassandra.auth.PasswordAuthenticator"',
    "system.yaml.num_tokens = 16",
    "token = 42",
    'system.yaml.initial_token = "-9223372036854775808"',
    'system.yaml.credentials_validity = "2000ms"',
    'password_file = "/etc/cassandra/jmxremote.password"',
    'keystore_password = "file:/run/secrets/keystore"',
    "password = true",
    'password = ""',
    'load.routing = "token"',
    '[factors]\n"load.routing" = ["token", "round-robin"]',
    'site.login = [["user", "me"]]',
    'partition_key = "id"',
    'primary_key = ["id", "token"]',
    'keys = "zipfian"',
    'name = "password-hashing"',
    '[study]\nquestion = "which token: murmur or random? What does the password: prompt cost?"',
    '[study]\nquestion = "is key=value faster, and what of password=...?"',
    'x = 1 # a password is named: keystore_password = "env:NAME"',
    "x = 1 # password = <yours>",
    '[tables.users.columns]\npassword = "text"\ntoken = { type = "uuid" }',
    '[statements.login]\ncql = "SELECT * FROM users WHERE password = ? AND token(id) > ? AND secret = :secret"\n'
    'values.secret = "uniform(0..1)"',
    '[types.login]\nsecret = "text"',
    "statement = \"CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}\"",
    'image = "registry/key:token"',
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_secret_in_plain_text_is_refused_at_its_line_and_not_repeated(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parsed(f"first = 1\n{text}\nbroken_type_of = 'x'\n", "s.toml")
    error = caught.value
    assert "s.toml:" in error.message
    assert "env:NAME" in error.message
    assert error.line >= 2
    assert SECRET not in json.dumps([error.message, error.hint, error.key, str(error.read), error.allowed])


@pytest.mark.parametrize("text", ALLOWED)
def test_no_false_alarm(text: str) -> None:
    assert parsed(text, "s.toml")


def test_a_list_of_options_names_the_line_of_the_secret() -> None:
    with pytest.raises(StudyError) as caught:
        parsed('[system]\njvm_options = [\n  "-ea",\n  "-Dapikey=hunter2hunter2",\n]\n', "s.toml")
    assert (caught.value.line, caught.value.key) == (4, "system.jvm_options.-Dapikey")


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("where", ["study", "workload", "inventory"])
def test_no_command_repeats_a_secret(where: str, as_json: bool, tmp_path: Path) -> None:
    """Beside other mistakes, whose messages say what was read."""
    text = (ROOT / "studies" / "quickstart.toml").read_text()
    workload = (ROOT / "studies" / "workloads" / "accounts.toml").read_text()
    bad = 'jvm_options = "-Dapikey=hunter2hunter2"\n'
    (tmp_path / "w.toml").write_text(workload + (f"\n[nonsense]\n{bad}" if where == "workload" else ""))
    (tmp_path / "i.toml").write_text(f'[[machine]]\nname = "pi"\n{bad if where == "inventory" else ""}')
    if where == "workload":
        text = text.replace('name = "ycsb-c"', 'name = "w.toml"')
    if where == "study":
        text = f"{text}\n[nonsense]\n{bad}"
    (tmp_path / "s.toml").write_text(text)
    if where == "inventory":
        with pytest.raises(StudyError) as caught:
            inventory.read(tmp_path / "i.toml")
        assert SECRET not in str(caught.value)
        return
    found = printed(lambda: check(tmp_path / "s.toml", store=tmp_path, as_json=as_json))
    assert found.code == 2
    assert "apikey" in found.out + found.err
    assert SECRET not in found.out + found.err


def test_an_inventory_of_ansible_refuses_them_too() -> None:
    for line in (
        "pi1 vault_password=hunter2hunter2",
        "pi1 note='--password hunter2hunter2",
        "# api_key=hunter2hunter2",
    ):
        with pytest.raises(StudyError, match=r"i:2: .*env:NAME") as caught:
            inventory.of_ansible(f"[all]\n{line}\n", "i")
        assert SECRET not in str(caught.value)
    assert inventory.of_ansible('pi1 vault_password="{{ lookup(1) }}" token_count=3\n', "i").machines[0].name == "pi1"


def test_a_reference_within_a_text_or_after_an_option_is_looked_up() -> None:
    tree = {
        "jvm_options": ["-javaagent:/a.jar=port=1,password=env:PW", "-Dapi.key=file:/nowhere/x"],
        "argv": ["--password", "env:PW", "env:OTHER"],
        "url": "http://me:env:PW@proxy",
    }
    assert [reference for _, reference in references(tree)] == [
        "env:PW", "file:/nowhere/x", "env:PW", "env:OTHER", "env:PW",
    ]  # fmt: skip
    tree["jvm_options"].pop()
    assert revealed(tree, {"PW": SECRET, "OTHER": "other"}) == {
        "jvm_options": [f"-javaagent:/a.jar=port=1,password={SECRET}"],
        "argv": ["--password", SECRET, "other"],
        "url": f"http://me:{SECRET}@proxy",
    }


def test_what_is_redacted_is_what_would_be_refused() -> None:
    said = {"argv": ["--password", SECRET], "cmd": f"java -Dapi.key={SECRET} x", "pairs": [f"a.jar=apikey={SECRET}"]}
    assert SECRET not in json.dumps(redacted(said))
    assert redacted_text("token: 42, token=43") == "token: 42, token=43", "places in the ring"


def test_time_grows_with_the_length_of_the_text() -> None:
    for text in ("key-" * 50_000, "--password " * 20_000, "a:password=" * 20_000, "://a:" * 40_000):
        begun = time.process_time()
        redacted_text(text)
        assert time.process_time() - begun < 5
