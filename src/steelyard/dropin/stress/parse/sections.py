"""Command and option tables: every command and option of cassandra-stress 3.11 and 5.0 as a section of our grammar."""

from __future__ import annotations

from steelyard.dropin.stress.parse.grammar import Option, Section

NO_JMX = "no statistics are read over JMX"
NO_PASSWORD = "PEM files have no password of their own here"
LEVELS = "ONE|TWO|THREE|QUORUM|LOCAL_QUORUM|EACH_QUORUM|ALL|ANY|LOCAL_ONE"

_ENDS = (
    (
        Option(
            "err<", "until the standard error of the mean is below this share", pattern=r"0\.[0-9]+", default="0.02"
        ),
        Option("n>", "with err<: minimum number of measurements", pattern="[0-9]+", default="30"),
        Option("n<", "with err<: maximum number of measurements", pattern="[0-9]+", default="200"),
    ),
    (Option("n=", "number of operations", pattern="[0-9]+[bmk]?", required=True, allowed="a number, as 1000 or 10k"),),
    (Option("duration=", "how long", pattern="[0-9]{1,9}[smh]", required=True, allowed="as 30s, 15m, 2h"),),
)
_COMMON = (
    Option("no-warmup", "no operations before the measured ones", "flag"),
    Option(
        "truncate=",
        "empty the tables: never, once, or before each thread count",
        pattern="never|once|always",
        default="never",
    ),
    Option("cl=", "consistency level", pattern=LEVELS, default="LOCAL_ONE"),
    Option("serial-cl=", "consistency of light-weight transactions", pattern="SERIAL|LOCAL_SERIAL", default="SERIAL"),
)
_PLAIN = (
    Option("add=", "by how much counters are increased", "distribution", default="fixed(1)"),
    Option("keysize=", "bytes of a key", pattern="[0-9]+", default="10"),
)
_CLUSTERING = Option(
    "clustering=", "operations of one kind that follow each other", "distribution", default="GAUSSIAN(1..10)"
)
_RATIO = Option("ratio", "how many of each kind; as ratio(read=2,write=1)", "group", default="read=1,write=1")
_PROFILE = (
    Option("profile=", "the YAML file, or several with commas between", pattern=".+", required=True),
    Option(
        "ops",
        "how many of each kind; as ops(insert=2,query1=1), of several profiles ops(SPECNAME.insert=2)",
        "group",
        required=True,
    ),
)


def _command(name: str, text: str, *more: Option) -> Section:
    return Section(name, text, tuple((*ends, *more, *_COMMON) for ends in _ENDS))


COMMANDS = (
    _command("read", "reads; what they read must have been written before", *_PLAIN),
    _command("write", "writes", *_PLAIN),
    _command("mixed", "reads and writes (and counters) in a ratio", _RATIO, _CLUSTERING, *_PLAIN),
    _command("counter_write", "updates of counters", *_PLAIN),
    _command("counter_read", "reads of counters, which must have been written before", *_PLAIN),
    _command("user", "statements of a YAML profile in a ratio", *_PROFILE, _CLUSTERING),
)
ALIASES = {
    "insert": "write",
    "counterwrite": "counter_write",
    "counter_add": "counter_write",
    "counteradd": "counter_write",
    "counterread": "counter_read",
    "counter_get": "counter_read",
    "counterget": "counter_read",
}
SPECIAL = {
    "help": "help for a command or an option",
    "print": "what comes out of a distribution",
    "legacy": "command lines from before 2.1 (refused)",
    "version": "the version of steelyard",
}
PRINT = Section("print", SPECIAL["print"], ((Option("dist=", "a distribution", "distribution", required=True),),))

_CONTENTS = Option("contents=", "order of the rows in a partition", pattern="sorted|shuffled")
_RANGE = r"[0-9]+[mbk]?\.\.+[0-9]+[mbk]?"
POPULATION = Section(
    "-pop",
    "which keys",
    (
        (
            Option(
                "seq=",
                "one after the other",
                pattern=_RANGE,
                default="1..N",
                required=True,
                allowed="as 1..1000000, from 1",
            ),
            Option("no-wrap", "end when all have had their turn", "flag"),
            Option(
                "read-lookback=",
                "reads take keys written shortly before",
                "distribution",
                refused="the agent does not know which writes are answered; read keys with dist=, after a write",
            ),
            _CONTENTS,
        ),
        (Option("dist=", "keys are drawn from it", "distribution", default="gaussian(1..N)"), _CONTENTS),
    ),
)
INSERT = Section(
    "-insert",
    "how partitions are written (`user` only)",
    (
        (
            Option(
                "revisit=",
                "choice among partitions that are not yet written whole",
                "distribution",
                default="uniform(1..1M)",
            ),
            Option("visits=", "inserts over which a partition is spread", "distribution", default="fixed(1)"),
            Option("partitions=", "partitions in one batch", "distribution"),
            Option("batchtype=", "LOGGED, UNLOGGED or COUNTER", pattern="unlogged|logged|counter"),
            Option("select-ratio=", "share of a partition's rows in one insert", "ratio"),
            Option("row-population-ratio=", "share of a row's columns that are written", "ratio", default="fixed(1)/1"),
        ),
    ),
)
_CELLS = (
    Option("slice", "reads ask for all columns", "flag"),
    Option("super=", "super columns", pattern="0", default="0", allowed="0: CQL has no super columns"),
    Option("comparator=", "order of columns", pattern="TimeUUIDType|AsciiType|UTF8Type", default="AsciiType"),
    Option("timestamp=", "of every write", pattern="[0-9]+"),
    Option("size=", "bytes of a value", "distribution", default="FIXED(34)"),
)
COLUMNS = Section(
    "-col",
    "columns of standard1 and counter1",
    (
        (Option("names=", "their names", pattern="[^,]+(,[^,]+)*", required=True), *_CELLS),
        (Option("n=", "how many", "distribution", default="FIXED(5)"), *_CELLS),
    ),
)
_PER_SECOND = "0*([0-9]{1,7}|10000000)/s"
RATE = Section(
    "-rate",
    "threads and rate (by default threads are added until the rate grows no more)",
    (
        (
            Option("threads=", "so many operations in flight", pattern="[0-9]+", required=True),
            Option(
                "throttle=",
                "operations per second; printed times begin when an operation is sent",
                pattern=_PER_SECOND,
                default="0/s",
                allowed="as 1000/s",
            ),
            Option(
                "fixed=",
                "operations per second; printed times begin when an operation is due",
                pattern=_PER_SECOND,
                default="0/s",
                allowed="as 1000/s",
            ),
        ),
        (
            Option("threads>=", "begin with so many", pattern="[0-9]+", default="4"),
            Option("threads<=", "end with so many", pattern="[0-9]+", default="1000"),
            Option("auto", "end when the rate grows no more", "flag"),
        ),
    ),
)
MODE = Section(
    "-mode",
    "how to speak to the nodes",
    (
        (
            Option("native", "CQL's native protocol, as always", "flag"),
            Option("simplenative", "the same here", "flag"),
            Option("cql3", "CQL 3, as always", "flag"),
            Option("prepared", "prepared statements, as always", "flag"),
            Option("unprepared", "plain statements", "flag", ignored="statements are always prepared"),
            Option("compression=", "of frames", pattern="none|lz4|snappy", default="none"),
            Option(
                "port=",
                "a port",
                pattern="[0-9]+",
                ignored="cassandra-stress does not read it either; the port is -port native=",
            ),
            Option("user=", "name to log in with", pattern=".+"),
            Option("password=", "its password", pattern=".+"),
            Option(
                "auth-provider=",
                "PlainTextAuthProvider only",
                pattern=r"(com\.datastax\.driver\.core\.)?PlainTextAuthProvider",
                allowed="PlainTextAuthProvider",
            ),
            Option(
                "maxPending=",
                "requests of a connection",
                pattern="[0-9]+",
                default="128",
                ignored="threads bound what is in flight",
            ),
            Option(
                "connectionsPerHost=",
                "connections to a node",
                pattern="[0-9]+",
                default="8",
                ignored="there is one connection to a node for each thread of ours",
            ),
            Option(
                "protocolVersion=",
                "version of the native protocol",
                pattern="[2-5]",
                default="NEWEST_SUPPORTED",
                ignored="version 4 is spoken",
            ),
            Option("thrift", "Thrift", "flag", refused="Cassandra 4 has no Thrift; leave it out"),
            Option("smart", "Thrift", "flag", refused="Cassandra 4 has no Thrift; leave it out"),
        ),
    ),
)
_TRIES = "a failed operation is tried again at once"
ERRORS = Section(
    "-errors",
    "what to do about errors",
    (
        (
            Option("retries=", "how often an operation is tried again", pattern="[0-9]+", default="9"),
            Option("ignore", "go on, and count them", "flag"),
            Option("skip-read-validation", "do not compare what is read", "flag"),
            Option(
                "skip-unsupported-columns",
                "leave out columns of other types",
                "flag",
                ignored="a column that cannot be written is refused by name",
            ),
            Option("delay-policy=", "wait before a try", refused=_TRIES),
            Option("min-delay-ms=", "wait before a try", refused=_TRIES),
            Option("max-delay-ms=", "wait before a try", refused=_TRIES),
        ),
    ),
)
SCHEMA = Section(
    "-schema",
    "of keyspace and tables, where a write creates them",
    (
        (
            Option(
                "replication",
                "as replication(strategy=NetworkTopologyStrategy,dc1=3)",
                "group",
                default="strategy=SimpleStrategy,factor=1",
            ),
            Option("keyspace=", "its name", pattern="[A-Za-z][A-Za-z0-9_]*", default="keyspace1"),
            Option("compaction", "as compaction(strategy=LeveledCompactionStrategy)", "group"),
            Option("compression=", "of the tables' files, as LZ4Compressor", pattern="[A-Za-z0-9_.]*"),
        ),
    ),
)
NODE = Section(
    "-node",
    "nodes to begin with; the others are found through them",
    (
        (
            Option("datacenter=", "use nodes of this data centre only", pattern=".+"),
            Option("whitelist", "use the named nodes only", "flag"),
            Option("file=", "a file with one node a line", pattern=".+"),
            Option(
                "",
                "nodes, separated by commas",
                pattern="[^=,]+(,[^=,]+)*",
                default="localhost",
                allowed="names or addresses",
            ),
        ),
    ),
)
LOG = Section(
    "-log",
    "where and how often to say how it goes",
    (
        (
            Option("level=", "how much of errors to say", pattern="minimal|normal|verbose", default="normal"),
            Option("no-summary", "accepted; cassandra-stress prints the results all the same, and so do we", "flag"),
            Option("file=", "write the same lines there", pattern=".+"),
            Option("hdrfile=", "histograms of every interval, as HdrHistogram logs", pattern=".+"),
            Option("interval=", "between two lines", pattern="[0-9]{1,9}(ms|s|)", default="1s", allowed="as 1s, 500ms"),
            Option("no-settings", "no block of settings", "flag"),
        ),
    ),
)
TRANSPORT = Section(
    "-transport",
    "TLS",
    (
        (
            Option("factory=", "Thrift's", refused="CQL's native protocol has no transport factory"),
            Option("truststore=", "certificates to trust, PEM", pattern=".+"),
            Option("truststore-password=", "of the key store", pattern=".*", ignored=NO_PASSWORD),
            Option("keystore=", "own certificate and key, PEM", pattern=".+"),
            Option("keystore-password=", "of the key store", pattern=".*", ignored=NO_PASSWORD),
            Option("ssl-protocol=", "TLS", pattern="TLS|TLSv1.2|TLSv1.3", default="TLS"),
            Option(
                "ssl-alg=",
                "Java's name for a key manager",
                refused="certificates are read from PEM, not by a Java key manager",
            ),
            Option(
                "store-type=",
                "PEM",
                pattern="PEM",
                default="PEM",
                allowed="PEM; convert a JKS with keytool and openssl, see docs",
            ),
            Option(
                "ssl-ciphers=",
                "cipher suites",
                refused="the cipher suites are those of rustls; the server chooses among them",
            ),
        ),
    ),
)
PORT = Section(
    "-port",
    "ports",
    (
        (
            Option("native=", "of CQL", pattern="[0-9]+", default="9042"),
            Option("thrift=", "of Thrift", pattern="[0-9]+", default="9160", ignored="there is no Thrift"),
            Option("jmx=", "of JMX", pattern="[0-9]+", default="7199", ignored=NO_JMX),
        ),
    ),
)
JMX = Section(
    "-jmx",
    "who reads statistics over JMX",
    (
        (
            Option("user=", "its name", pattern=".*", ignored=NO_JMX),
            Option("password=", "its password", pattern=".*", ignored=NO_JMX),
        ),
    ),
)
CREDENTIALS = Section(
    "-credentials-file",
    "a property file with cql.username and cql.password; -mode user= and password= win",
    ((Option("", "the file", pattern=".+", required=True),),),
)
_SPAN = "[0-9]{1,9}[smhd]"
REPORTING = Section(
    "-reporting",
    "how often to print a row, and the header again",
    (
        (
            Option("output-frequency=", "between two rows", pattern=_SPAN, allowed="as 5s, 1m"),
            Option("header-frequency=", "between two headers", pattern=_SPAN, allowed="as 30s, 5m"),
        ),
    ),
)
SENDTO_WHY = "we have no stress server; start steelyard on that machine"
SENDTO = Section("-sendto", "refused: " + SENDTO_WHY, ((Option("", "a machine", refused=SENDTO_WHY),),))
GRAPH = Section(
    "-graph",
    "one HTML page of what was measured",
    (
        (
            Option("file=", "the page; more of them are added to one that exists", pattern=".+", required=True),
            Option("revision=", "what this one is called", pattern=".*", default="unknown"),
            Option("title=", "of the page", pattern=".*"),
            Option("op=", "what the operation is called", pattern=".*"),
        ),
    ),
)
TOKENRANGE_WHY = "token_range_queries are not there, so ranges of tokens have no use"
TOKENRANGE = Section("-tokenrange", "refused: " + TOKENRANGE_WHY, ((Option("", "", refused=TOKENRANGE_WHY),),))

OPTIONS = (
    POPULATION,
    INSERT,
    COLUMNS,
    RATE,
    MODE,
    ERRORS,
    SCHEMA,
    NODE,
    LOG,
    TRANSPORT,
    PORT,
    SENDTO,
    GRAPH,
    TOKENRANGE,
    JMX,
    CREDENTIALS,
    REPORTING,
)
"""In cassandra-stress's order, 5.0's behind those that 3.11 has."""
SAME = {"send-to": "sendto", "credential-file": "credentials-file"}


def command(name: str) -> Section | None:
    """The command with that name or alias; None if there is none."""
    wanted = ALIASES.get(name.lower(), name.lower())
    return next((one for one in COMMANDS if one.name == wanted), None)


def option(name: str) -> Section | None:
    """The `-option` with that name, with or without its dash; None if there is none."""
    bare = name.lower().lstrip("-")
    wanted = "-" + SAME.get(bare, bare)
    return next((one for one in OPTIONS if one.name == wanted), None)
