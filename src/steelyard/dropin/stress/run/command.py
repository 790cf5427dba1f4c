"""Entry point of `steelyard stress`: one command line from argv to exit code."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Sequence

from steelyard import __version__
from steelyard.dropin import other_tables, wording
from steelyard.dropin.contacts import parsed
from steelyard.dropin.stress.parse import distributions, parse_settings, sections, tokens
from steelyard.dropin.stress.parse.distributions import Distribution
from steelyard.dropin.stress.parse.profile import Profile
from steelyard.dropin.stress.parse.refusal import Refused
from steelyard.dropin.stress.parse.settings import Connection, Settings
from steelyard.dropin.stress.plan import orders, profile_orders, schema, several_profiles
from steelyard.dropin.stress.plan.orders import Plan
from steelyard.dropin.stress.print import graph, output_stream
from steelyard.dropin.stress.print.output_stream import Voice
from steelyard.dropin.stress.run.execution import Action, Asking, Tools
from steelyard.model.data_model import Schema
from steelyard.model.errors import EngineError
from steelyard.node.base import with_port

ABSENT = (
    "`write` or `counter_write` makes keyspace and tables, even with n=0; a profile with its definitions makes its own"
)
DIFFERENT = (
    "-col n= or names= says which columns to use; -schema keyspace= names another keyspace, where `write` makes its own"
)
EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130
ASKS = ("-?", "-h", "--help")
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Quantiles that `print` shows."""


def conduct(arguments: Sequence[str], tools: Tools | None = None) -> int:
    """Run a command line. Returns cassandra-stress's exit code: 0, or 1 if anything failed. Raises SteelyardError if it
    could not begin."""
    tidied = tokens.tidy(arguments)
    if not tidied:
        print("\n".join(known_words()))
        raise Refused("command", "", "there is none", "see above")
    lines = without_load(tidied)
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
        words = wording.STRESS
        if settings.connection.user is not None:
            words = wording.typed("-mode user= and password=", words)
        with wording.spoken(words):
            return asyncio.run(_carry_out(settings, tidied, speaker, tools or Tools()))


def without_load(words: Sequence[str]) -> list[str] | None:
    """The output of a command without a load; None for any other command. Raises Refused."""
    name = words[0].lower()
    if name in ("help", *ASKS) or (len(words) == 2 and words[1].lower() in ("help", *ASKS)):
        return known_words()
    if name == "version":
        return [f"Version: steelyard {__version__}"]
    if name == "legacy":
        why = "command lines from before 2.1 are not read; `-o INSERT -n 1000 -t 50 -d IP` is now "
        raise Refused("legacy", " ".join(words), why + "`write n=1000 -rate threads=50 -node IP`")
    if name == "print":
        given = sections.PRINT.read(words[1:])
        return _quantiles(distributions.parse(given["dist="], "print dist="))
    return None


def known_words() -> list[str]:
    """The commands and options that are known, and the page about them."""
    lines = ["steelyard stress COMMAND [OPTIONS]: see docs/howto/switch-from-cassandra-stress.md", ""]
    for section in (*sections.COMMANDS, *sections.OPTIONS):
        words = [one.shown or "VALUE" for one in section.options if not one.refused]
        if words:
            lines.append(f"{section.name:<17} {' '.join(words)}")
    lines.append(f"{sections.PRINT.usages[0]}, version, help")
    return [*lines, "", f"DIST(?) is one of {'; '.join(distributions.FORMS)}"]


def _quantiles(distribution: Distribution) -> list[str]:
    lines = ["% of samples    Range       % of total"]
    most = distribution.inverse(1.0) / 100
    for share in SHARES:
        bound = distribution.inverse(share)
        lines.append(f"{share * 100:<16.1f}{bound:<12d}{bound / most if most else 0.0:12.1f}")
    return lines


async def _carry_out(settings: Settings, tidied: Sequence[str], speaker: Voice, tools: Tools) -> int:
    for note in settings.notes:
        _note(speaker, note)
    if settings.command.name == "user":
        profiles = several_profiles.read(settings)
        contacts = await _nodes(settings, speaker, tools)
        action = await _of_profiles(settings, profiles, contacts, speaker, tools)
        creations: tuple[str, ...] = ()
        tables = tuple((one.keyspace.strip('"'), one.table) for one in profiles)
    else:
        plan = orders.predefined(settings)
        contacts = await _nodes(settings, speaker, tools)
        action = Action(settings, plan, contacts, speaker, secrets.randbits(63), tools)
        creations = schema.creations(settings) if settings.command.name in ("write", "counter_write") else ()
        tables = tuple((settings.schema.keyspace, one) for one in schema.TABLES)
    try:
        good = await action.run(creations, tables)
    except EngineError as error:
        # A user's columns are those of the table.
        own = () if settings.command.name == "user" else schema.tables_of(settings)
        named = Schema(settings.schema.keyspace, "", tables=own)
        raise await other_tables.explained(error, named, action.asking.rows, ABSENT, DIFFERENT) from None
    if settings.graph.file is not None:
        graph.write(settings.graph, tidied, speaker.kept)
    if action.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_DONE if good else EXIT_FAILED


async def _of_profiles(
    settings: Settings, profiles: Sequence[Profile], contacts: Sequence[str], speaker: Voice, tools: Tools
) -> Action:
    """The action, after creating the schema. What can be refused is refused before."""
    asking = Asking.of(settings, contacts, tools)
    questions = [profile_orders.schema_question(one) for one in profiles]

    def compiled(
        columns: Sequence[tuple[profile_orders.Column, ...]],
    ) -> tuple[list[profile_orders.ProfileTable], Plan]:
        tables = [profile_orders.ProfileTable.of(*pair) for pair in zip(profiles, columns, strict=True)]
        return tables, several_profiles.plan(settings, tables)

    answers = await asking.rows(questions)
    expected = [several_profiles.columns_before(*pair) for pair in zip(profiles, answers, strict=True)]
    known = [columns for columns in expected if columns is not None]
    if len(known) == len(profiles):
        compiled(known)
    creations = [cql for profile in profiles for cql in profile.creations()]
    if creations:
        for profile, columns in zip(profiles, answers, strict=True):
            if profile.keyspace_cql and (note := await asking.is_there(profile.keyspace.strip('"'))):
                _note(speaker, f"{note}: keyspace_definition changes nothing")
            if profile.table_cql and columns:
                _note(speaker, f"table {profile.qualified} already exists: table_definition changes nothing")
        await asking.rows(creations)
        speaker.say_here("Created schema.")
        answers = await asking.rows(questions)
    tables, plan = compiled([profile_orders.columns_of(described) for described in answers])
    for remark in (remark for table in tables for remark in profile_orders.remarks(settings, table)):
        _note(speaker, remark)
    return Action(settings, plan, contacts, speaker, secrets.randbits(63), tools)


def _note(speaker: Voice, text: str) -> None:
    speaker.note(f"steelyard stress: {text}")


def addresses(connection: Connection) -> list[str]:
    """`address:port` of every named node, without duplicates. Raises Refused if an unknown name is the only one."""
    contacts: list[str] = []
    for node in connection.nodes:
        try:
            host, port = parsed(node, connection.port)
        except ValueError as error:
            raise Refused("-node", node, str(error).partition(": ")[2] or "this is not a node", "as 10.0.0.1") from None
        try:
            known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            if len(connection.nodes) > 1:
                # One dead node of several: the agent says so, and continues.
                contacts.append(with_port(host, port))
                continue
            raise Refused(
                "-node", node, f"no address is known for it ({error.strerror})", "names or addresses"
            ) from None
        # The first address of version 4, where there is one.
        first = min(known, key=lambda entry: entry[0] != socket.AF_INET)[4][0]
        contacts.append(with_port(str(first), port))
    return list(dict.fromkeys(contacts))


async def _nodes(settings: Settings, speaker: Voice, tools: Tools) -> list[str]:
    """All target nodes: the named ones and, without `whitelist`, the others in their data centre."""
    connection = settings.connection
    contacts = addresses(connection)
    asking = Asking.of(settings, contacts, tools)
    if connection.datacenter is not None:
        rows = await asking.rows(["SELECT data_center FROM system.local"])
        here = str(rows[0][0]["data_center"])
        if here != connection.datacenter:
            wanted = connection.datacenter
            raise Refused(
                "-node datacenter=",
                wanted,
                f"the first node is in {here!r}",
                f"a list that begins with a node in {wanted!r}",
            )
    if connection.whitelist:
        return contacts
    reached, missing = await tools.discover(contacts, variables=asking.variables, tls=asking.tls)
    for contact in missing:
        _note(speaker, f"{contact} belongs to the cluster, but cannot be reached: it is left out")
    return list(reached)
