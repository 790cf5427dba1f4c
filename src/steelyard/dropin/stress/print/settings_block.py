"""Settings block that cassandra-stress prints first, with the same labels in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.dropin.stress.parse.profile import Profile
from steelyard.dropin.stress.parse.settings import Insert, Settings
from steelyard.dropin.stress.plan.profile_orders import Rows

TRANSPORT_DEFAULTS = {
    "factory=": "org.apache.cassandra.thrift.TFramedTransportFactory",
    "truststore=": "null",
    "truststore-password=": "null",
    "keystore=": "null",
    "keystore-password=": "null",
    "ssl-protocol=": "TLS",
    "ssl-alg=": "SunX509",
    "store-type=": "PEM",
    "ssl-ciphers=": "null",
}
SECRET = "*suppressed*"


def block(settings: Settings, keyspace: str | None = None) -> list[str]:
    """Lines of the block, without the empty line after it. `keyspace`: the profile's, if there is one."""
    user = settings.command.name == "user"
    lines = ["******************** Stress Settings ********************"]
    for title, inner in (
        ("Command", _command(settings)),
        ("Rate", _rate(settings)),
        ("Population", _population(settings)),
        ("Insert", _insert(settings)),
        ("Columns", [] if user else _columns(settings)),
        ("Errors", [f"Ignore: {_bool(settings.errors.ignore)}", f"Tries: {settings.errors.tries}"]),
        ("Log", _log(settings)),
        ("Mode", _mode(settings)),
        ("Node", _node(settings)),
        ("Schema", _schema(settings, keyspace)),
        ("Transport", [_transport(settings)]),
        ("Port", _ports(settings)),
        ("Send To Daemon", ["*not set*"]),
        ("Graph", _graph(settings)),
        ("TokenRange", ["Wrap: false", "Split Factor: 1"]),
    ):
        if inner:
            lines += [f"{title}:", *(f"  {line}" for line in inner)]
    return lines


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _null(value: object) -> str:
    return "null" if value is None else str(value)


def _map(value: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name}={one}" for name, one in value.items()) + "}"


def _list(value: Sequence[object]) -> str:
    return "[" + ", ".join(str(one) for one in value) + "]"


def _command(settings: Settings) -> list[str]:
    command = settings.command
    lines = [f"Type: {command.name}", f"Count: {-1 if command.count is None else command.count:,}"]
    if command.duration is not None:
        lines.append(f"Duration: {command.duration[0]:,} {command.duration[1]}")
    lines += [f"No Warmup: {_bool(not command.warm_up)}", f"Consistency Level: {command.consistency}"]
    if command.uncertainty is None:
        lines.append("Target Uncertainty: not applicable")
    else:
        lines += [
            f"Target Uncertainty: {command.uncertainty:.3f}",
            f"Minimum Uncertainty Measurements: {command.measurements[0]:,}",
            f"Maximum Uncertainty Measurements: {command.measurements[1]:,}",
        ]
    if command.name != "user":
        lines += [
            f"Key Size (bytes): {command.key_size}",
            # The word is misspelt in cassandra-stress, and scripts may look for it.
            f"Counter Increment Distibution: add={command.add_text}",
        ]
    if command.clustering is not None:
        upper = command.name == "mixed"
        ratios = {name.upper() if upper else name: share for name, share in command.ratios.items()}
        lines += [
            f"Command Ratios: {_map(ratios)}",
            f"Command Clustering Distribution: clustering={command.clustering_text}",
        ]
    if command.profile:
        lines.append(f"Profile File: {command.profile}")
    return lines


def _rate(settings: Settings) -> list[str]:
    rate = settings.rate
    if rate.auto:
        return ["Auto: true", f"Min Threads: {rate.least}", f"Max Threads: {rate.most}"]
    threads = -1 if rate.threads is None else rate.threads
    return ["Auto: false", f"Thread Count: {threads}", f"OpsPer Sec: {max(rate.throttle_per_s, rate.fixed_per_s)}"]


def _population(settings: Settings) -> list[str]:
    population = settings.population
    lines = []
    if population.drawn is not None:
        lines.append(f"Distribution: {population.drawn.described()}")
    if population.sequence is not None:
        lines.append(f"Sequence: {population.sequence[0]}..{population.sequence[1]}")
    return [*lines, f"Order: {population.order}", f"Wrap: {_bool(population.wrap)}"]


def _insert(settings: Settings) -> list[str]:
    insert = settings.insert
    lines = [f"Revisits: {insert.revisit.described()}", f"Visits: {insert.visits.described()}"]
    if insert.partitions is not None:
        lines.append(f"Batchsize: {insert.partitions.described()}")
    if insert.select is not None:
        lines.append(f"Select Ratio: {insert.select.described()}")
    return [
        *lines,
        f"Row Population Ratio: {insert.row_population.described()}",
        f"Batch Type: {insert.batch or 'not batching'}",
    ]


def _columns(settings: Settings) -> list[str]:
    columns = settings.columns
    count = f"Count:  fixed={columns.count.low}" if columns.given else columns.count.described()
    return [
        f"Max Columns Per Key: {len(columns.names)}",
        f"Column Names: {_list(columns.names)}",
        f"Comparator: {columns.comparator}",
        f"Timestamp: {_null(columns.timestamp)}",
        "Variable Column Count: false",
        f"Slice: {_bool(columns.slice)}",
        f"Size Distribution: {columns.size.described()}",
        f"Count Distribution: {count}",
    ]


def _log(settings: Settings) -> list[str]:
    log = settings.log
    return [
        f"No Summary: {_bool(not log.summary)}",
        f"No Settings: {_bool(not log.settings)}",
        f"File: {_null(log.file)}",
        f"Interval Millis: {log.interval_ms}",
        f"Level: {log.level}",
    ]


def _mode(settings: Settings) -> list[str]:
    mode = settings.connection
    return [
        f"API: {'SIMPLE_NATIVE' if mode.simple else 'JAVA_DRIVER_NATIVE'}",
        "Connection Style: CQL_PREPARED",
        "CQL Version: CQL3",
        "Protocol Version: V4",
        f"Username: {_null(mode.user)}",
        f"Password: {_null(mode.password and SECRET)}",
        f"Auth Provide Class: {_null(mode.provider)}",
        f"Max Pending Per Connection: {mode.max_pending}",
        f"Connections Per Host: {mode.per_node}",
        f"Compression: {mode.compression.upper()}",
    ]


def _node(settings: Settings) -> list[str]:
    node = settings.connection
    return [
        f"Nodes: {_list(node.nodes)}",
        f"Is White List: {_bool(node.whitelist)}",
        f"Datacenter: {_null(node.datacenter)}",
    ]


def _schema(settings: Settings, keyspace: str | None) -> list[str]:
    schema = settings.schema
    return [
        f"Keyspace: {keyspace or schema.keyspace}",
        f"Replication Strategy: {schema.strategy}",
        # Misspelt in cassandra-stress, too.
        f"Replication Strategy Pptions: {_map(schema.options)}",
        f"Table Compression: {_null(schema.compression)}",
        f"Table Compaction Strategy: {_null(schema.compaction)}",
        f"Table Compaction Strategy Options: {_map(schema.compaction_options)}",
    ]


def _transport(settings: Settings) -> str:
    options = settings.connection.transport
    shown = {name: SECRET if "password" in name else value for name, value in options.items()}
    return "".join(f"{name}{shown.get(name, value)}; " for name, value in TRANSPORT_DEFAULTS.items())


def _ports(settings: Settings) -> list[str]:
    thrift, jmx = settings.connection.ports
    return [f"Native Port: {settings.connection.port}", f"Thrift Port: {thrift}", f"JMX Port: {jmx}"]


def _graph(settings: Settings) -> list[str]:
    graph = settings.graph
    return [
        f"File: {_null(graph.file)}",
        f"Revision: {graph.revision}",
        f"Title: {_null(graph.title)}",
        f"Operation: {graph.operation}",
    ]


def profile(read: Profile, rows: Rows, insert: Insert) -> list[str]:
    """The block of a profile. `rows`: per partition; `insert`: what the command line says in place of the profile."""
    lines = ["", "******************** Profile ********************", f"  Keyspace Name: {read.keyspace}"]
    lines += ["  Keyspace CQL: ", "***", f"{(read.keyspace_cql or 'null').rstrip()}", "***", ""]
    lines += [
        f"  Table Name: {read.table}",
        "  Table CQL: ",
        "***",
        f"{(read.table_cql or 'null').rstrip()}",
        "***",
        "",
    ]
    lines.append(f"  Extra Schema Definitions: {_list(read.extra_cql) if read.extra_cql else 'null'}")
    lines += ["  Generator Configs:", *(f"    {name}: {spec.described()}" for name, spec in read.columns.items())]
    lines.append("  Query Definitions:")
    lines += [f"    {name}: CQL:{one.cql};Fields:{_null(one.fields)};" for name, one in read.queries.items()]
    lines += ["  Insert Settings:", *(f"    {name}: {value}" for name, value in read.insert.items())]
    partitions, select = insert.partitions or read.partitions, insert.select or read.select
    least, most = partitions.low, partitions.high
    low, high = least * rows.low * select.least, most * rows.high * select.greatest
    return [
        *lines,
        f"Generating batches with [{least}..{most}] partitions and [{low:.0f}..{high:.0f}] rows "
        f"(of [{least * rows.low}..{most * rows.high}] total rows in the partitions)",
    ]
