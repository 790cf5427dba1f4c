"""Secrets in settings: told by their keys, referred to, taken out of what nodes and logs say."""

from __future__ import annotations

import json

import pytest

from steelyard.model.secret import (
    REDACTED,
    Concealer,
    is_reference,
    literals,
    looks_secret,
    redacted,
    redacted_text,
)
from steelyard.system.cassandra._lines import LINES

SECRETS = (
    "password", "keystore_password", "truststorePassword", "-Djavax.net.ssl.keyStorePassword", "client.passwd",
    "passphrase", "db_pwd", "secret", "client_secret", "secrets", "credentials", "auth_token", "apiToken", "token",
    "api_key", "private_key", "secret_access_key", "keystore_pasword", "setting x.truststore_password", "ssl_pass",
)  # fmt: skip
HARMLESS = (
    "num_tokens", "initial_token", "tokens", "credentials_validity", "credentials_cache_max_entries", "password_file",
    "keystore", "partition_key", "key", "keys", "keyspace", "routing", "bypass", "passes", "", "authenticator", "seed",
)  # fmt: skip


@pytest.mark.parametrize("key", SECRETS)
def test_a_key_that_holds_a_secret_is_known(key: str) -> None:
    assert looks_secret(key)


@pytest.mark.parametrize("key", HARMLESS)
def test_other_keys_are_left_alone(key: str) -> None:
    assert not looks_secret(key)


def test_no_plain_key_of_cassandra_is_taken_for_a_secret() -> None:
    assert [key for line in LINES for key in line.keys if looks_secret(key)] == []


def test_literals_are_found_wherever_they_stand() -> None:
    settings = {
        "system": {
            "password": "hunter2",
            "pin_passcode": 123456,
            "num_tokens": 16,
            "yaml": {"client_encryption_options": {"keystore_password": "hunter2", "enabled": True}},
            "jvm_options": ["-Xss256k", "-Djavax.net.ssl.trustStorePassword=hunter2", "-Dfine.password=env:FINE"],
            "seeds": [{"parameters": [{"api_key": "hunter2"}]}],
            "proxy": "http://me:hunter2@proxy/",
            "pem": "-----BEGIN PRIVATE KEY-----\nAAAA",
            "token": "file:/run/secrets/token",
            "secret": "",
        },
        "load": {"routing": "token"},
    }
    assert sorted(literal.key for literal in literals(settings)) == [
        "system.jvm_options.-Djavax.net.ssl.trustStorePassword",
        "system.password",
        "system.pem",
        "system.pin_passcode",
        "system.proxy",
        "system.seeds.parameters.api_key",
        "system.yaml.client_encryption_options.keystore_password",
    ]


def test_a_file_reference_is_one_under_a_secret_key_only() -> None:
    assert is_reference("env:NAME", "anything")
    assert is_reference("file:/run/x", "password")
    assert not is_reference("file:///etc/x.yaml", "config")
    assert not is_reference("env:not a name", "password")
    assert not is_reference(5, "password")


def test_what_a_node_says_is_redacted_by_key_and_within_texts() -> None:
    said = {
        "setting client_encryption_options.keystore_password": "hunter2",
        "setting server_encryption_options": "EncryptionOptions{keystore_password=hunter2, protocol=TLS}",
        "jvm options": "-Xmx256M -Djavax.net.ssl.keyStorePassword=hunter2 -ea",
        "setting num_tokens": "16",
        "setting credentials_validity": "2000ms",
        "url": "https://me:hunter2@mirror/x",
        "asked": "env:PW",
        "jmx.password": "env:PW",
    }
    found = redacted(said)
    assert "hunter2" not in json.dumps(found)
    assert found["setting num_tokens"] == "16"
    assert found["setting credentials_validity"] == "2000ms"
    assert found["jmx.password"] == "env:PW"
    assert (
        found["setting server_encryption_options"] == f"EncryptionOptions{{keystore_password={REDACTED}, protocol=TLS}}"
    )
    assert "-Xmx256M" in found["jvm options"]
    assert found["jvm options"].endswith("-ea")


def test_known_secrets_leave_texts_in_every_form() -> None:
    secret = 'pa"ss\\wörd'
    conceal = Concealer([secret])
    assert conceal.text(f"login with {secret} refused") == f"login with {REDACTED} refused"
    written = json.dumps({"a": secret}).encode() + b"\xff\n" + secret.encode()
    found = conceal.content(written)
    assert secret.encode() not in found
    assert json.dumps(secret)[1:-1].encode() not in found
    assert b"\xff" in found
    assert conceal.tree({"x": [f"{secret}!"], "n": 3}) == {"x": [f"{REDACTED}!"], "n": 3}


def test_logs_lose_passwords_that_nobody_told_us_of() -> None:
    log = b'{"truststore_password": "hunter2", "port": 9042}\nCREATE ROLE x WITH PASSWORD = \'hunter2\';\n'
    found = Concealer().content(log)
    assert b"hunter2" not in found
    assert json.loads(found.splitlines()[0])["port"] == 9042


def test_long_words_take_no_longer_than_as_many_short_ones() -> None:
    """A word of 200,000 characters was looked at from each of them: 2 hours."""
    long = "x" * 200_000
    assert (
        redacted_text(f"{long} {long}password=hunter22 pass.{long}") == f"{long} {long}password={REDACTED} pass.{long}"
    )
    passes = "pass" * 50_000
    assert redacted_text(f"{passes} {passes}word: hunter22") == f"{passes} {passes}word: {REDACTED}"
