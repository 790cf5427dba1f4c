"""Contact points: how the address of a node is written in a study. Pure."""

from __future__ import annotations


def contact_of(text: str, port: int) -> tuple[str, int]:
    """Address and port of a contact point: `10.0.0.1`, `10.0.0.1:9042`, `[fd00::1]:9042`, `fd00::1`. Raises ValueError
    for anything else."""
    if text.startswith("["):
        address, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is not a contact point: write [ADDRESS]:PORT")
        number = rest[1:]
    elif text.count(":") > 1:
        address, number = text, ""
    else:
        address, _, number = text.partition(":")
    if not address or (number and not (number.isdigit() and 0 < int(number) < 65_536)):
        raise ValueError(f"{text!r} is not a contact point: write ADDRESS or ADDRESS:PORT")
    return address, int(number) if number else port
