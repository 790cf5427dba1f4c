"""Entry point of `steelyard stress`: one command line from argv to exit code."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.dropin.stress.parse import parse_settings, profile, tokens
from steelyard.dropin.stress.parse.refusal import Refused
from steelyard.dropin.stress.parse.settings import Connection, Settings
from steelyard.dropin.stress.plan import orders, profile_orders, schema
from steelyard.dropin.stress.print import graph, help, output_stream, settings_block
from steelyard.dropin.stress.print.output_stream import Voice
from steelyard.dropin.stress.run.execution import Action, Asking, Tools

EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130


def conduct(arguments: Sequence[str], tools: Tools | None = None) -> int:
    """Run a command line. Returns cassandra-stress's exit code: 0, or 1 if anything failed. Raises SteelyardError if it
    could not begin."""
    tidied = tokens.tidy(arguments)
    if not tidied:
        print("\n".join(help.overview()))
        raise Refused("command", "", "there is none", "see above")
    lines = help.special(tidied)
    if lines is not None:
        print("\n".join(lines))
        return EXIT_DONE
    settings = parse_settings.read(arguments)
    if settings.graph.file is not None:
        graph.check(settings.graph.file)
    if settings.log.histograms is not None:
        # Each load opens the file again; this checks before the first that it can be opened.
        output_stream.opened("-log hdrfile=", settings.log.histograms).close()
    with output_stream.speaking(settings.log.file) as speaker:
        return asyncio.run(_carry_out(settings, tidied, speaker, tools or Tools()))


async def _carry_out(settings: Settings, tidied: Sequence[str], speaker: Voice, tools: Tools) -> int:
    for note in settings.notes:
        _note(speaker, note)
    if settings.command.name == "user":
        contacts = await _nodes(settings, speaker, tools)
        action, creations, tables = await _of_profile(settings, contacts, speaker, tools)
    else:
        plan = orders.predefined(settings)
        if settings.log.settings:
            speaker.say(*settings_block.block(settings), "")
        contacts = await _nodes(settings, speaker, tools)
        action = Action(settings, plan, contacts, speaker, secrets.randbits(63), tools)
        creations = schema.creations(settings) if settings.command.name in ("write", "counter_write") else ()
        tables = schema.TABLES
    good = await action.run(creations, tables)
    if settings.graph.file is not None:
        graph.write(settings.graph, tidied, speaker.kept)
    if action.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_DONE if good else EXIT_FAILED


async def _of_profile(
    settings: Settings, contacts: Sequence[str], speaker: Voice, tools: Tools
) -> tuple[Action, tuple[str, ...], tuple[str, ...]]:
    """The action, after creating the schema: as in cassandra-stress, that precedes the display of the settings, because
    they depend on the table."""
    read = profile.load(settings.command.profile)
    profile_orders.check(settings, read)
    asking = Asking.of(settings, contacts, tools)
    (described,) = await asking.rows([profile_orders.schema_question(read)])
    if described:
        # What the table cannot do is refused before anything is written.
        _compiled(settings, read, described)
    if read.creations():
        await asking.rows(read.creations())
        speaker.say_here("Created schema.")
    (described,) = await asking.rows([profile_orders.schema_question(read)])
    table, plan = _compiled(settings, read, described)
    if settings.log.settings:
        speaker.say(*settings_block.block(settings, read.keyspace), *settings_block.profile(read, table.rows), "")
    return Action(settings, plan, contacts, speaker, secrets.randbits(63), tools), (), (read.table,)


def _compiled(
    settings: Settings, read: profile.Profile, described: Sequence[Mapping[str, Any]]
) -> tuple[profile_orders.Table, orders.Plan]:
    table = profile_orders.Table.of(read, profile_orders.columns_of(described))
    return table, profile_orders.plan(settings, table)


def _note(speaker: Voice, text: str) -> None:
    speaker.note(f"steelyard stress: {text}")


def addresses(connection: Connection) -> list[str]:
    """`address:port` of every named node, without duplicates. Raises Refused for an unknown host name."""
    contacts: list[str] = []
    for node in connection.nodes:
        name, colon, own_port = node.strip().rpartition(":")
        bracketed = name.startswith("[") and name.endswith("]")
        if not colon or not own_port.isdigit() or (":" in name and not bracketed):
            name, own_port = node.strip(), str(connection.port)
        try:
            known = socket.getaddrinfo(name.strip("[]"), int(own_port), type=socket.SOCK_STREAM)
        except OSError as error:
            raise Refused(
                "-node", node, f"no address is known for it ({error.strerror})", "names or addresses"
            ) from None
        # The first address of version 4, where there is one.
        first = min(known, key=lambda entry: entry[0] != socket.AF_INET)[4][0]
        contacts.append(f"[{first}]:{own_port}" if ":" in str(first) else f"{first}:{own_port}")
    return list(dict.fromkeys(contacts))


async def _nodes(settings: Settings, speaker: Voice, tools: Tools) -> list[str]:
    """All target nodes: the named ones and, without `whitelist`, the others of their data centre."""
    connection = settings.connection
    contacts = addresses(connection)
    asking = Asking.of(settings, contacts, tools)
    if connection.datacenter is not None:
        rows = await asking.rows(["SELECT data_center FROM system.local"])
        here = str(rows[0][0]["data_center"])
        if here != connection.datacenter:
            wanted = connection.datacenter
            raise Refused(
                "-node datacenter=", wanted, f"the first node is in {here!r}", f"name a node of {wanted!r} first"
            )
    if connection.whitelist:
        return contacts
    reached, missing = await tools.discover(contacts, variables=asking.variables, tls=asking.tls)
    for contact in missing:
        _note(speaker, f"{contact} belongs to the cluster, but cannot be reached: it is left out")
    return list(reached)
