"""Client encryption: a throw-away key for the cluster, created by Java's keytool, and its certificate for clients."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from steelyard.model.errors import CommandFailed, SystemFault
from steelyard.node import files
from steelyard.node.base import Node
from steelyard.node.command import run
from steelyard.system.cassandra import _config
from steelyard.system.cassandra._java import Java

CERTIFICATE = "clients.pem"
VALID_DAYS = 365
KEYTOOL_TIMEOUT_S = 60.0


class Keys:
    """The key and the certificate of a cluster, on this machine and on its nodes."""

    def __init__(self) -> None:
        self._making = asyncio.Lock()
        self._elsewhere: tempfile.TemporaryDirectory[str] | None = None

    def certificate(self, peers: Sequence[Node]) -> Path:
        """PEM file on this machine of the cluster's certificate: its own authority."""
        return self._folder(peers) / CERTIFICATE

    async def put(self, java: Java, node: Node, peers: Sequence[Node]) -> None:
        """Create key and certificate for these nodes, if they do not exist, and give the key to one of them. Raises
        SystemFault if this Java has no keytool or it fails."""
        async with self._making:
            folder = self._folder(peers)
            if not (folder / CERTIFICATE).is_file():
                await _make(java, peers, folder)
            key = (folder / _config.KEY_STORE).read_bytes()
        await files.put(node, _config.Folders(node.folder).keys / _config.KEY_STORE, key, mode=0o600)

    def _folder(self, peers: Sequence[Node]) -> Path:
        """On the first node where this machine sees its files, so that the key ends with the lease."""
        if peers[0].files == "same":
            return _config.Folders(peers[0].folder).keys
        if self._elsewhere is None:
            self._elsewhere = tempfile.TemporaryDirectory(prefix="steelyard-keys-")
        return Path(self._elsewhere.name)


async def _make(java: Java, peers: Sequence[Node], folder: Path) -> None:
    store, pem = folder / _config.KEY_STORE, folder / CERTIFICATE
    keytool = java.home / "bin" / "keytool"
    if not keytool.is_file():
        major = java.version.partition(".")[0]
        hint = f"install a whole Java {major} (openjdk-{major}-jre-headless), or remove system.client_tls"
        raise SystemFault(f"{keytool} not found", hint, system="cassandra")
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
