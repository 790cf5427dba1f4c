"""Client encryption: a throw-away key for the cluster, created by Java's keytool, and its certificate for clients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.cassandra import _config
from steelyard.system.cassandra._java import Java

CERTIFICATE = "clients.pem"
VALID_DAYS = 365
KEYTOOL_TIMEOUT_S = 60.0


def certificate(peers: Sequence[Node]) -> Path:
    """PEM file of the cluster's certificate: its own authority."""
    return _config.key_folder(peers) / CERTIFICATE


async def ensure(java: Java, peers: Sequence[Node]) -> None:
    """Create key and certificate for these nodes, if they do not exist. Raises SystemFault if this Java has no keytool
    or it fails."""
    folder = _config.key_folder(peers)
    store, pem = folder / _config.KEY_STORE, folder / CERTIFICATE
    if pem.is_file():
        return
    keytool = java.home / "bin" / "keytool"
    if not keytool.is_file():
        hint = "install a whole Java 17 (openjdk-17-jre-headless), or leave out system.client_tls"
        raise SystemFault(f"there is no {keytool}", hint, system="cassandra")
    names = ",".join(f"ip:{peer.address}" for peer in peers)
    password = ["-storepass", _config.KEY_STORE_PASSWORD]
    common = ["-alias", "cluster", "-keystore", str(store), "-storetype", "PKCS12", *password]
    key = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", str(VALID_DAYS)]
    folder.mkdir(parents=True, exist_ok=True)
    store.unlink(missing_ok=True)
    try:
        subject = ["-dname", "CN=steelyard", "-ext", f"san={names}"]
        await run(None, [str(keytool), "-genkeypair", *common, *key, *subject], timeout_s=KEYTOOL_TIMEOUT_S)
        done = await run(None, [str(keytool), "-exportcert", "-rfc", *common], timeout_s=KEYTOOL_TIMEOUT_S)
    except CommandFailed as error:
        raise SystemFault(f"keytool: {error.message}", system="cassandra") from error
    pem.write_bytes(done.stdout)
