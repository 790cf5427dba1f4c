"""The build to run: a release number, or the jars of a folder or tarball, with their identity."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.system.cassandra._lines import VERSION_PATTERN

RELEASE = re.compile(VERSION_PATTERN)
LABELLED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._+-]*)=([^,=]+)")
SERVER_JAR = re.compile(r"(?:cassandra-all|apache-cassandra)-(\d.*)\.jar")
HASH_CHARS = 16


@dataclass(frozen=True)
class Build:
    """Build named by `system.source`, or by `system.version` and `system.jars`."""

    label: str
    release: str | None = None
    """Release number on Maven, or the user's version of the jars; None if only the jars know."""
    files: Path | None = None
    """A folder of jars, or a tarball; None: Maven's."""


def named(source: str) -> Build:
    """The build that a text names: `5.0.4`, `main=builds/main`, `builds/apache-cassandra-5.0.6-bin.tar.gz`.

    Raises ValueError for anything else.
    """
    if RELEASE.fullmatch(source):
        return Build(source, release=source)
    labelled = LABELLED.fullmatch(source)
    if labelled:
        return Build(labelled[1], files=Path(labelled[2]).expanduser())
    if "=" in source or "," in source or not ("/" in source or source.endswith((".tar", ".gz", ".tgz"))):
        allowed = "a version (5.0.4), a tarball, or a folder of jars with a label (main=builds/main)"
        raise ValueError(f"{source!r} does not name a build: {allowed}")
    return Build(Path(source).name, files=Path(source).expanduser())


def version_of(jars: Sequence[Path]) -> str | None:
    """The version in the name of the server's jar, or None."""
    versions = (SERVER_JAR.fullmatch(jar.name) for jar in jars)
    return next((version[1] for version in versions if version), None)


def hash_of(checksums: Mapping[str, str]) -> str:
    """SHA-256 over names and checksums of the jars, shortened. Pure."""
    text = "".join(f"{checksum} {name}\n" for name, checksum in sorted(checksums.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]
