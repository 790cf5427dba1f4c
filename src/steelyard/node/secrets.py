"""Lookup of secrets at the moment of use, from this machine's environment or from a file outside the store.

Secrets go only to a node's own configuration; see `steelyard.model.secret`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from steelyard.model.errors import StudyError
from steelyard.model.secret import ENV, FILE, LEAST_CHARS, Concealer, named, references, with_references
from steelyard.model.trial_settings import TrialSettings
from steelyard.wire.order import CQL, POSTGRESQL

LONGEST_CHARS = 65_536
"""Maximum length of a secret: a certificate with its key has a few thousand characters; more is the wrong file."""

CQL_USER, CQL_PASSWORD = "STEELYARD_CQL_USER", "STEELYARD_CQL_PASSWORD"
"""Environment variables with the user and the password of a cluster that wants them."""


def cql_credentials(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables with user and password of the cluster, for commands on nodes that connect to it; empty without a
    user."""
    return {name: variables[name] for name in (CQL_USER, CQL_PASSWORD) if CQL_USER in variables and name in variables}


POSTGRESQL_PASSWORD = "STEELYARD_POSTGRESQL_PASSWORD"
"""Environment variable with the password of the role that a load over PostgreSQL's protocol uses."""


def load_credentials(protocol: str, variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables with what a load over a protocol needs to log in, as far as they are set; none of other
    protocols."""
    if protocol == CQL:
        return cql_credentials(variables)
    own = (POSTGRESQL_PASSWORD,) if protocol == POSTGRESQL else ()
    return {name: variables[name] for name in own if name in variables}


def look_up(reference: str, variables: Mapping[str, str] = os.environ, *, key: str = "") -> str:
    """The secret that `env:NAME` or `file:/path` refers to (without a file's trailing newline). Raises StudyError."""
    if reference.startswith(ENV):
        name = reference.removeprefix(ENV)
        if name not in variables:
            message = f"{key or reference}: the environment variable {name} is not set"
            raise StudyError(message, f"export {name}=... in the shell that runs the study", key=key, read=reference)
        secret = variables[name]
    else:
        secret = _file(Path(reference.removeprefix(FILE)), key)
    if not LEAST_CHARS <= len(secret) <= LONGEST_CHARS:
        raise StudyError(
            f"{key or reference}: the secret at {reference} has {len(secret)} characters",
            f"{LEAST_CHARS} to {LONGEST_CHARS} are allowed: a shorter one cannot be kept out of logs",
            key=key,
            read=reference,
        )
    return secret


def _file(path: Path, key: str) -> str:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        hint = "use a file that holds only the secret"
        raise StudyError(f"{key or path}: {path} cannot be read: {reason}", hint, key=key, read=str(path)) from error


def revealed(tree: Any, variables: Mapping[str, str] = os.environ, key: str = "") -> Any:
    """Settings with every reference replaced by its secret, for a node's configuration. Raises StudyError."""
    if isinstance(tree, Mapping):
        pairs = zip(tree, named(tree, key), strict=True)
        return {name: revealed(inner, variables, described) for name, (_, described, inner) in pairs}
    if isinstance(tree, list | tuple):
        return [revealed(inner, variables, described) for _, described, inner in named(tree, key)]
    if isinstance(tree, str):
        return with_references(tree, key, lambda reference: look_up(reference, variables, key=key))
    return tree


def problems(
    settings: Iterable[TrialSettings], store: Path | None = None, variables: Mapping[str, str] = os.environ
) -> tuple[StudyError, ...]:
    """Problems with the references in complete settings: variables that are not set, files that cannot be read or are
    in the store."""
    by_message: dict[str, StudyError] = {}
    for key, reference in sorted({pair for one in settings for pair in references(one.root)}):
        try:
            look_up(reference, variables, key=key)
        except StudyError as error:
            by_message[error.message] = error
        path = Path(reference.removeprefix(FILE))
        if reference.startswith(FILE) and store is not None and path.resolve().is_relative_to(store.resolve()):
            message = f"{key}: {path} lies in the store {store}"
            by_message[message] = StudyError(message, "keep it outside the store", key=key, read=reference)
    return tuple(by_message.values())


def concealer(settings: Iterable[TrialSettings], variables: Mapping[str, str] = os.environ) -> Concealer:
    """A concealer that removes every secret that settings refer to. Raises StudyError if one is missing."""
    return Concealer({look_up(reference, variables) for one in settings for _, reference in references(one.root)})
