"""Contacts as people write them: a name or address, with a port or without, IPv6 with brackets or without."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from steelyard.model.errors import StudyError
from steelyard.node.base import with_port
from steelyard.wire.order import CQL, TARGETS

PORTED = re.compile(r"(?P<host>\[[^\[\]]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")


def parsed(word: str, port: int) -> tuple[str, int]:
    """Host, without brackets, and port; `port`: where the word has none. Raises ValueError."""
    text = word.strip()
    if _is_ipv6(text):
        return text, port
    match = PORTED.fullmatch(text)
    host = match["host"] if match is not None else ""
    own = int(match["port"]) if match is not None and match["port"] else port
    bracketed = host.startswith("[")
    if not host or not 0 < own < 65536 or any(letter.isspace() for letter in host):
        raise ValueError(f"{word!r} is not an address and port")
    if bracketed and not _is_ipv6(host[1:-1]):
        raise ValueError(f"{word!r}: only IPv6 addresses go in brackets")
    return (host[1:-1] if bracketed else host), own


def with_ports(contacts: Sequence[str], protocol: str = CQL) -> tuple[str, ...]:
    """`address:port` of each contact, by default the protocol's port; several may be separated by commas. Raises
    StudyError."""
    port = TARGETS[protocol if protocol in TARGETS else CQL].port
    addresses = []
    for word in (part.strip() for contact in contacts for part in contact.split(",") if part.strip()):
        try:
            addresses.append(with_port(*parsed(word, port)))
        except ValueError as error:
            hint = f"such as 10.0.0.1, 10.0.0.1:{port} or [fd00::1]:{port}"
            raise StudyError(f"--contact {error}", hint, read=word) from None
    return tuple(dict.fromkeys(addresses))


def _is_ipv6(word: str) -> bool:
    try:
        ipaddress.IPv6Address(word)
    except ValueError:
        return False
    return True
