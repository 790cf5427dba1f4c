"""Parser of settings: reads every word, fills in defaults, refuses unsupported words.

The defaults are those of cassandra-stress 3.11.4, see `sections`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from steelyard.dropin import properties
from steelyard.dropin.stress.parse import distributions, sections, tokens
from steelyard.dropin.stress.parse.distributions import whole_number
from steelyard.dropin.stress.parse.grammar import Given, pairs
from steelyard.dropin.stress.parse.refusal import Refused, text_of, unknown
from steelyard.dropin.stress.parse.settings import (
    UNITS,
    Columns,
    Command,
    Connection,
    Errors,
    Graph,
    Insert,
    Log,
    Population,
    Rate,
    SchemaOptions,
    Settings,
)

Words = Mapping[str, Sequence[str]]
LEAST_INTERVAL_MS = 100
MOST_TRIES = 1000
"""Limit of the agent."""
MOST_THREADS = 100_000
MAX_COLUMNS = 1000
DEFAULT_KEYS = 1_000_000
THREADS_OF_COUNTED_WRITES = 200
"""Default thread count of cassandra-stress for `n=` writes without -rate; all other commands start with 4."""
MIXABLE = ("read", "write", "counter_write", "counter_read")
ALL_COMMANDS = (*(one.name for one in sections.COMMANDS), *sections.SPECIAL)
CREDENTIALS = (
    "cql.username", "cql.password", "jmx.username", "jmx.password", "transport.truststore.password",
    "transport.keystore.password",
)  # fmt: skip
"""Keys of a credentials file; only those of CQL have a use here."""
LOCATOR = "org.apache.cassandra.locator."


def read(arguments: Sequence[str]) -> Settings:
    """The settings of a command line. Raises Refused with the first invalid word."""
    by_section = tokens.sections(arguments)
    if not by_section:
        raise Refused("command", "", "it is missing", ", ".join(ALL_COMMANDS))
    name, *rest = by_section
    section = sections.command(name)
    if section is None:
        raise unknown("command", name, "unknown command", ALL_COMMANDS)
    for other in rest:
        if sections.option(other) is None:
            words = " ".join([other, *by_section[other]])
            raise unknown(other, words, "unknown option", (one.name for one in sections.OPTIONS))
    options: Words = {sections.option(one).name: by_section[one] for one in rest}  # type: ignore[union-attr]
    notes: list[str] = []
    command = _command(section.name, section.read(by_section[name]))
    for missing in (sections.SENDTO, sections.TOKENRANGE):
        if missing.name in options:
            missing.read(options[missing.name] or ("",))
    for option in (sections.MODE, sections.PORT, sections.TRANSPORT, sections.JMX, sections.ERRORS):
        notes += option.read(options.get(option.name, ())).without_effect()
    if section.name == "user" and sections.SCHEMA.name in options:
        raise Refused("-schema", " ".join(options["-schema"]), "the schema of `user` is in its profile")
    return Settings(
        command=command,
        rate=_rate(options.get("-rate"), command),
        population=_population(options.get("-pop"), command, notes.append),
        insert=_insert(options.get("-insert", ()), command, notes.append),
        columns=_columns(options.get("-col", ()), command, notes.append),
        errors=_errors(options.get("-errors", ())),
        schema=_schema(options.get("-schema", ())),
        connection=_connection(options, notes.append),
        log=_log(options.get("-log", ()), sections.REPORTING.read(options.get("-reporting", ()))),
        graph=_graph(options.get("-graph"), command),
        notes=tuple(notes),
    )


def _command(name: str, given: Given) -> Command:
    duration = given.get("duration=")
    count = given.get("n=")
    ends_by_itself = duration is None and count is None
    ratios = {name: 1.0}
    if name == "mixed":
        ratios = _ratios("mixed ratio", given.value("ratio"), MIXABLE)
    elif name == "user":
        ratios = _ratios("user ops", given["ops"], None)
    mixture = name in ("mixed", "user")
    # `user` has neither word: its operations are in its profile.
    plain = Given(sections.COMMANDS[0], given)
    least, most = int(given.value("n>")), int(given.value("n<"))
    if most < 1:
        raise Refused(f"{name} n<", str(most), "the value does not fit", "from 1")
    if duration is not None and int(duration[:-1]) < 1:
        raise Refused(f"{name} duration=", duration, "the value does not fit", "from 1s")
    return Command(
        name=name,
        count=_whole(count, f"{name} n=") if count is not None else None,
        duration=(int(duration[:-1]), UNITS[duration[-1].lower()][1]) if duration is not None else None,
        uncertainty=float(given.value("err<")) if ends_by_itself else None,
        measurements=(least, most),
        warm_up="no-warmup" not in given,
        truncate=given.value("truncate=").lower(),  # type: ignore[arg-type]
        consistency=given.value("cl=").upper(),
        serial_consistency=given.value("serial-cl=").upper(),
        key_size=_at_least(1, int(plain.value("keysize=")), f"{name} keysize="),
        add=distributions.parse(plain.value("add="), f"{name} add="),
        ratios=ratios,
        clustering=distributions.parse(given.value("clustering="), f"{name} clustering=") if mixture else None,
        profile=given.get("profile=", ""),
    )


def _ratios(option: str, inner: str, known: Sequence[str] | None) -> dict[str, float]:
    """Share by operation, sorted by name, without operations of share 0."""
    shares: dict[str, float] = {}
    for name, text in pairs(option, inner).items():
        own = name.lower() if known is not None else name
        if known is not None and own not in known:
            raise Refused(option, name, "unknown operation", ", ".join(known))
        try:
            shares[own] = float(text)
        except ValueError:
            raise Refused(option, text, "this is not a number", "as 1 or 0.5") from None
        if not 0 <= shares[own] < float("inf"):
            raise Refused(option, text, "this is not a share", "0 or more")
    if not any(shares.values()):
        raise Refused(option, inner, "no operation has a share above 0", "as read=3,write=1")
    return {name: share for name, share in sorted(shares.items()) if share > 0}


def _whole(text: str, option: str) -> int:
    try:
        return whole_number(text)
    except ValueError:
        raise Refused(option, text, "the number is too large", f"below {distributions.BEYOND}") from None


def _at_least(least: int, number: int, option: str) -> int:
    if number < least:
        raise Refused(option, str(number), "the value does not fit", f"from {least}")
    return number


def _rate(words: Sequence[str] | None, command: Command) -> Rate:
    if words is None:
        if command.name in ("write", "counter_write") and command.count:
            return Rate(THREADS_OF_COUNTED_WRITES, 0, 0, False, 0, 0)
        return Rate(None, 0, 0, True, 4, 1000)
    given = sections.RATE.read(words)
    throttle, fixed = (int(given.value(name)[:-2]) for name in ("throttle=", "fixed="))
    if throttle and fixed:
        raise Refused("-rate", " ".join(words), "throttle and fixed are two ways of setting one rate", "one of them")
    for name in ("threads=", "threads>=", "threads<="):
        if int(given.get(name, "1")) > MOST_THREADS:
            raise Refused(f"-rate {name}", given[name], "this many cannot be in flight", f"1 to {MOST_THREADS}")
    if "threads=" in given:
        return Rate(_at_least(1, int(given["threads="]), "-rate threads="), throttle, fixed, False, 0, 0)
    least = _at_least(1, int(given.value("threads>=")), "-rate threads>=")
    most = _at_least(least, int(given.value("threads<=")), "-rate threads<=")
    return Rate(None, 0, 0, "auto" in given, least, most)


def _population(words: Sequence[str] | None, command: Command, note: Callable[[str], None]) -> Population:
    most = command.count or DEFAULT_KEYS
    only_inserts = command.name == "user" and list(command.ratios) == ["insert"]
    if words is None:
        if only_inserts or command.name in ("write", "counter_write"):
            return Population((1, most), None, True)
        return Population(None, distributions.parse(f"gaussian(1..{most})", "-pop"), False)
    given = sections.POPULATION.read(words)
    if "contents=" in given:
        note(f"-pop contents={given['contents=']} changes nothing: rows of a partition are written in their order")
    if "seq=" in given:
        low, high = (_whole(bound, "-pop seq=") for bound in given["seq="].replace("...", "..").split(".."))
        if low < 1 or low > high:
            raise Refused("-pop seq=", given["seq="], "the bounds do not fit", "as 1..1000000, from 1")
        return Population((low, high), None, "no-wrap" not in given)
    drawn = distributions.parse(given.get("dist=", f"gaussian(1..{most})"), "-pop dist=")
    if drawn.low < 1:
        raise Refused("-pop dist=", given["dist="], "keys cannot be below 1", "distributions from 1")
    return Population(None, drawn, False)


def _insert(words: Sequence[str], command: Command, note: Callable[[str], None]) -> Insert:
    given = sections.INSERT.read(words)
    visits = distributions.parse(given.value("visits="), "-insert visits=")
    row_population = distributions.parse_ratio(given.value("row-population-ratio="), "-insert row-population-ratio=")
    if visits != distributions.fixed(1):
        raise Refused(
            "-insert visits=", given["visits="], "partitions are not spread over several visits", "visits=fixed(1)"
        )
    if not row_population.is_whole:
        raise Refused(
            "-insert row-population-ratio=",
            given["row-population-ratio="],
            "all columns of a row are written",
            "row-population-ratio=fixed(1)/1",
        )
    if "revisit=" in given:
        note(f"-insert revisit={given['revisit=']} changes nothing: partitions have one visit")
    for name in ("partitions=", "batchtype=", "select-ratio="):
        if name in given and command.name != "user":
            note(f"-insert {name}{given[name]} changes nothing for `{command.name}`, as in cassandra-stress")
    partitions, select = given.get("partitions="), given.get("select-ratio=")
    return Insert(
        partitions=distributions.parse(partitions, "-insert partitions=") if partitions else None,
        batch=given["batchtype="].upper() if "batchtype=" in given else None,
        select=distributions.parse_ratio(select, "-insert select-ratio=") if select else None,
    )


def _columns(words: Sequence[str], command: Command, note: Callable[[str], None]) -> Columns:
    given = sections.COLUMNS.read(words)
    count = distributions.parse(given.value("n="), "-col n=")
    names = tuple(sorted(given["names="].split(","))) if "names=" in given else ()
    if len(set(names)) != len(names):
        raise Refused("-col names=", given["names="], "a name is given more than once", "each name once")
    if not count.is_fixed:
        raise Refused("-col n=", given["n="], "CQL rows have one number of columns, as in cassandra-stress", "FIXED(n)")
    if not 1 <= count.low <= MAX_COLUMNS:
        raise Refused("-col n=", given["n="], "the number does not fit", f"FIXED(1) to FIXED({MAX_COLUMNS})")
    if command.name == "user" and words:
        note("-col changes nothing for `user`, as in cassandra-stress: columns are in the profile")
    if given.get("comparator=") == "TimeUUIDType":
        raise Refused("-col comparator=", "TimeUUIDType", "columns have names", "AsciiType, UTF8Type")
    return Columns(
        names=names or tuple(sorted(f"C{index}" for index in range(count.low))),
        given=bool(names),
        size=distributions.parse(given.value("size="), "-col size="),
        timestamp=given.get("timestamp="),
        slice="slice" in given,
    )


def _errors(words: Sequence[str]) -> Errors:
    given = sections.ERRORS.read(words)
    tries = int(given.value("retries=")) + 1
    if tries > MOST_TRIES:
        raise Refused("-errors retries=", given["retries="], "the value does not fit", f"0 to {MOST_TRIES - 1}")
    return Errors("ignore" in given, tries, "skip-read-validation" not in given)


def _schema(words: Sequence[str]) -> SchemaOptions:
    given = sections.SCHEMA.read(words)
    replication = pairs("-schema replication", given["replication"]) if "replication" in given else {}
    strategy = replication.pop("strategy", "SimpleStrategy")
    strategy = strategy if "." in strategy else LOCATOR + strategy
    factor = replication.pop("factor", None)
    if "replication_factor" not in replication and (strategy == LOCATOR + "SimpleStrategy" or factor is not None):
        replication["replication_factor"] = factor or "1"
    for name, number in replication.items():
        if not number.isdigit():
            raise Refused("-schema replication", f"{name}={number}", "this is not a number of replicas", "as 3")
    compaction = pairs("-schema compaction", given["compaction"]) if "compaction" in given else {}
    return SchemaOptions(
        keyspace=given.value("keyspace="),
        strategy=strategy,
        options=replication,
        compression=given.get("compression="),
        compaction=compaction.pop("strategy", None),
        compaction_options=compaction,
    )


def _connection(options: Words, note: Callable[[str], None]) -> Connection:
    mode = sections.MODE.read(options.get("-mode", ("prepared",)))
    if not {"simplenative", "cql3", "prepared", "unprepared"} & set(mode):
        note(
            "-mode without `prepared`: cassandra-stress 5.0 sends plain statements then; here they are always prepared"
        )
    user, password = _credentials(options.get("-credentials-file"), mode, note)
    if password is not None and user is None:
        raise Refused("-mode password=", "*suppressed*", "password= needs user=", "user=... password=...")
    node = sections.NODE.read(options.get("-node", ()))
    ports = sections.PORT.read(options.get("-port", ()))
    transport = sections.TRANSPORT.read(options.get("-transport", ()))
    return Connection(
        nodes=_nodes(node),
        whitelist="whitelist" in node,
        datacenter=node.get("datacenter="),
        port=_port(ports.value("native=")),
        user=user,
        password=password,
        compression=mode.value("compression=").lower(),
        trusted=_pem("-transport truststore=", transport.get("truststore=")),
        own=_pem("-transport keystore=", transport.get("keystore=")),
    )


def _credentials(
    words: Sequence[str] | None, mode: Given, note: Callable[[str], None]
) -> tuple[str | None, str | None]:
    """User and password, of -mode, otherwise of a property file."""
    kept: Mapping[str, str] = {}
    if words is not None:
        option = sections.CREDENTIALS.name
        path = Path(sections.CREDENTIALS.read(words)[""]).expanduser()
        kept = properties.read(path, option)
        for name in kept:
            if name not in CREDENTIALS:
                raise unknown(f"{option} {path}", name, "unknown key", CREDENTIALS)
            if not name.startswith("cql."):
                note(f"{option}: {name} is ignored: {sections.NO_JMX if 'jmx' in name else sections.NO_PASSWORD}")
    return mode.get("user=", kept.get("cql.username")), mode.get("password=", kept.get("cql.password"))


def _port(text: str) -> int:
    if not 0 < int(text) < 65536:
        raise Refused("-port native=", text, "the value does not fit", "1 to 65535")
    return int(text)


def _nodes(given: Given) -> tuple[str, ...]:
    if "file=" not in given:
        return tuple(given.value("").split(","))
    path = Path(given["file="]).expanduser()
    lines = text_of("-node file=", path, "a file with one node per line").splitlines()
    nodes = tuple(line.strip() for line in lines if line.strip())
    if not nodes:
        raise Refused("-node file=", str(path), "it lists no node", "a file with one node per line")
    return nodes


def _pem(option: str, text: str | None) -> Path | None:
    if text is None:
        return None
    path = Path(text).expanduser()
    try:
        begins = path.read_bytes()[:8]
    except OSError as error:
        raise Refused(option, text, error.strerror or "cannot be read", "a PEM file") from None
    # Both certificates and PKCS#12 stores are an ASN.1 sequence; in it another one, or the number 3.
    if begins[:2] == b"\x30\x82" and begins[4:5] == b"\x30":
        raise Refused(
            option, text, "this is a certificate in DER", "PEM. `openssl x509 -inform DER -in FILE -out FILE.pem`"
        )
    # A Java key store begins with this number.
    if begins[:4] == b"\xfe\xed\xfe\xed" or begins[:1] == b"\x30":
        store = "PKCS#12" if begins[:1] == b"\x30" else "JKS"
        raise Refused(
            option,
            text,
            f"this is a {store} key store",
            "PEM. `keytool -importkeystore -srckeystore STORE -destkeystore STORE.p12 -deststoretype PKCS12`, then "
            "`openssl pkcs12 -in STORE.p12 -out STORE.pem -nodes`",
        )
    return path


def _log(words: Sequence[str], reporting: Given) -> Log:
    given = sections.LOG.read(words)
    interval = given.value("interval=").lower()
    number = int(interval.rstrip("ms"))
    interval_ms = number if interval.endswith("ms") else 1000 * number
    return Log(
        file=Path(given["file="]).expanduser() if "file=" in given else None,
        histograms=Path(given["hdrfile="]).expanduser() if "hdrfile=" in given else None,
        interval_ms=_at_least(LEAST_INTERVAL_MS, interval_ms, "-log interval="),
        level=given.value("level=").upper(),
        row_every_s=_span_s(reporting, "output-frequency="),
        header_every_s=_span_s(reporting, "header-frequency="),
    )


def _span_s(given: Given, name: str) -> int | None:
    if name not in given:
        return None
    number, unit = int(given[name][:-1]), given[name][-1].lower()
    seconds = number * (86_400 if unit == "d" else UNITS[unit][0])
    return _at_least(1, seconds, f"{given.section.name} {name}")


def _graph(words: Sequence[str] | None, command: Command) -> Graph:
    given = sections.GRAPH.read(words) if words is not None else Given(sections.GRAPH, {})
    return Graph(
        file=Path(given["file="]).expanduser() if "file=" in given else None,
        revision=given.value("revision="),
        title=given.get("title="),
        operation=given.get("op=", command.name.upper()),
    )
