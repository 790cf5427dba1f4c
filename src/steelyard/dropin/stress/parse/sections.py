"""Command and option tables: every command and option of cassandra-stress 3.11 and 5.0 as a section of our grammar."""

from __future__ import annotations

from steelyard.dropin.stress.parse.grammar import Option, Section

NO_JMX = "no statistics are read over JMX"
NO_PASSWORD = "PEM files have no password of their own here"
LEVELS = "ONE|TWO|THREE|QUORUM|LOCAL_QUORUM|EACH_QUORUM|ALL|ANY|LOCAL_ONE"

_ENDS = (
    (
        Option("err<", pattern=r"0\.[0-9]+", default="0.02"),
        Option("n>", pattern="[0-9]+", default="30"),
        Option("n<", pattern="[0-9]+", default="200"),
    ),
    (Option("n=", pattern="[0-9]+[bmk]?", required=True, allowed="a number, as 1000 or 10k"),),
    (Option("duration=", pattern="[0-9]{1,9}[smh]", required=True, allowed="as 30s, 15m, 2h"),),
)
_COMMON = (
    Option("no-warmup", "flag"),
    Option("truncate=", pattern="never|once|always", default="never"),
    Option("cl=", pattern=LEVELS, default="LOCAL_ONE"),
    Option("serial-cl=", pattern="SERIAL|LOCAL_SERIAL", default="SERIAL"),
)
_PLAIN = (Option("add=", "distribution", default="fixed(1)"), Option("keysize=", pattern="[0-9]+", default="10"))
_CLUSTERING = Option("clustering=", "distribution", default="GAUSSIAN(1..10)")
_RATIO = Option("ratio", "group", default="read=1,write=1")
_PROFILE = (Option("profile=", pattern=".+", required=True), Option("ops", "group", required=True))


def _section(name: str, *options: Option) -> Section:
    """A section of one form."""
    return Section(name, (options,))


def _command(name: str, *more: Option) -> Section:
    return Section(name, tuple((*ends, *more, *_COMMON) for ends in _ENDS))


COMMANDS = (
    _command("read", *_PLAIN),
    _command("write", *_PLAIN),
    _command("mixed", _RATIO, _CLUSTERING, *_PLAIN),
    _command("counter_write", *_PLAIN),
    _command("counter_read", *_PLAIN),
    _command("user", *_PROFILE, _CLUSTERING),
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
SPECIAL = ("help", "print", "legacy", "version")
"""Commands without a load; `legacy` is refused."""
PRINT = _section("print", Option("dist=", "distribution", required=True))

_CONTENTS = Option("contents=", pattern="sorted|shuffled")
_RANGE = r"[0-9]+[mbk]?\.\.+[0-9]+[mbk]?"
POPULATION = Section(
    "-pop",
    (
        (
            Option("seq=", pattern=_RANGE, required=True, allowed="as 1..1000000, from 1"),
            Option("no-wrap", "flag"),
            Option(
                "read-lookback=",
                "distribution",
                refused="the agent does not know which writes are answered; read keys with dist=, after a write",
            ),
            _CONTENTS,
        ),
        (Option("dist=", "distribution"), _CONTENTS),
    ),
)
INSERT = _section(
    "-insert",
    Option("revisit=", "distribution"),
    Option("visits=", "distribution", default="fixed(1)"),
    Option("partitions=", "distribution"),
    Option("batchtype=", pattern="unlogged|logged|counter"),
    Option("select-ratio=", "ratio"),
    Option("row-population-ratio=", "ratio", default="fixed(1)/1"),
)
_CELLS = (
    Option("slice", "flag"),
    Option("super=", pattern="0", allowed="0: CQL has no super columns"),
    Option("comparator=", pattern="TimeUUIDType|AsciiType|UTF8Type"),
    Option("timestamp=", pattern="[0-9]+"),
    Option("size=", "distribution", default="FIXED(34)"),
)
COLUMNS = Section(
    "-col",
    (
        (Option("names=", pattern="[^,]+(,[^,]+)*", required=True), *_CELLS),
        (Option("n=", "distribution", default="FIXED(5)"), *_CELLS),
    ),
)
_PER_SECOND = "0*([0-9]{1,7}|10000000)/s"
RATE = Section(
    "-rate",
    (
        (
            Option("threads=", pattern="[0-9]+", required=True),
            Option("throttle=", pattern=_PER_SECOND, default="0/s", allowed="as 1000/s"),
            Option("fixed=", pattern=_PER_SECOND, default="0/s", allowed="as 1000/s"),
        ),
        (
            Option("threads>=", pattern="[0-9]+", default="4"),
            Option("threads<=", pattern="[0-9]+", default="1000"),
            Option("auto", "flag"),
        ),
    ),
)
MODE = _section(
    "-mode",
    Option("native", "flag"),
    Option("simplenative", "flag"),
    Option("cql3", "flag"),
    Option("prepared", "flag"),
    Option("unprepared", "flag", ignored="statements are always prepared"),
    Option("compression=", pattern="none|lz4|snappy", default="none"),
    Option("port=", pattern="[0-9]+", ignored="cassandra-stress does not read it either; the port is -port native="),
    Option("user=", pattern=".+"),
    Option("password=", pattern=".+"),
    Option(
        "auth-provider=",
        pattern=r"(com\.datastax\.driver\.core\.)?PlainTextAuthProvider",
        allowed="PlainTextAuthProvider",
    ),
    Option("maxPending=", pattern="[0-9]+", ignored="threads bound what is in flight"),
    Option(
        "connectionsPerHost=", pattern="[0-9]+", ignored="there is one connection to a node for each thread of ours"
    ),
    Option("protocolVersion=", pattern="[2-5]", ignored="version 4 is spoken"),
    Option("thrift", "flag", refused="Cassandra 4 has no Thrift; leave it out"),
    Option("smart", "flag", refused="Cassandra 4 has no Thrift; leave it out"),
)
_TRIES = "a failed operation is tried again at once"
ERRORS = _section(
    "-errors",
    Option("retries=", pattern="[0-9]+", default="9"),
    Option("ignore", "flag"),
    Option("skip-read-validation", "flag"),
    Option("skip-unsupported-columns", "flag", ignored="a column that cannot be written is refused by name"),
    Option("delay-policy=", refused=_TRIES),
    Option("min-delay-ms=", refused=_TRIES),
    Option("max-delay-ms=", refused=_TRIES),
)
SCHEMA = _section(
    "-schema",
    Option("replication", "group"),
    Option("keyspace=", pattern="[A-Za-z][A-Za-z0-9_]*", default="keyspace1"),
    Option("compaction", "group"),
    Option("compression=", pattern="[A-Za-z0-9_.]*"),
)
NODE = _section(
    "-node",
    Option("datacenter=", pattern=".+"),
    Option("whitelist", "flag"),
    Option("file=", pattern=".+"),
    Option("", pattern="[^=,]+(,[^=,]+)*", default="localhost", allowed="names or addresses"),
)
LOG = _section(
    "-log",
    Option("level=", pattern="minimal|normal|verbose", default="normal"),
    Option("no-summary", "flag"),
    Option("file=", pattern=".+"),
    Option("hdrfile=", pattern=".+"),
    Option("interval=", pattern="[0-9]{1,9}(ms|s|)", default="1s", allowed="as 1s, 500ms"),
    Option("no-settings", "flag"),
)
TRANSPORT = _section(
    "-transport",
    Option("factory=", refused="CQL's native protocol has no transport factory"),
    Option("truststore=", pattern=".+"),
    Option("truststore-password=", pattern=".*", ignored=NO_PASSWORD),
    Option("keystore=", pattern=".+"),
    Option("keystore-password=", pattern=".*", ignored=NO_PASSWORD),
    Option("ssl-protocol=", pattern="TLS|TLSv1.2|TLSv1.3"),
    Option("ssl-alg=", refused="certificates are read from PEM, not by a Java key manager"),
    Option("store-type=", pattern="PEM", allowed="PEM; convert a JKS with keytool and openssl, see docs"),
    Option("ssl-ciphers=", refused="the cipher suites are those of rustls; the server chooses among them"),
)
PORT = _section(
    "-port",
    Option("native=", pattern="[0-9]+", default="9042"),
    Option("thrift=", pattern="[0-9]+", ignored="there is no Thrift"),
    Option("jmx=", pattern="[0-9]+", ignored=NO_JMX),
)
JMX = _section("-jmx", Option("user=", pattern=".*", ignored=NO_JMX), Option("password=", pattern=".*", ignored=NO_JMX))
CREDENTIALS = _section("-credentials-file", Option("", pattern=".+", required=True))
_SPAN = "[0-9]{1,9}[smhd]"
REPORTING = _section(
    "-reporting",
    Option("output-frequency=", pattern=_SPAN, allowed="as 5s, 1m"),
    Option("header-frequency=", pattern=_SPAN, allowed="as 30s, 5m"),
)
SENDTO_WHY = "we have no stress server; start steelyard on that machine"
SENDTO = _section("-sendto", Option("", refused=SENDTO_WHY))
GRAPH = _section(
    "-graph",
    Option("file=", pattern=".+", required=True),
    Option("revision=", pattern=".*", default="unknown"),
    Option("title=", pattern=".*"),
    Option("op=", pattern=".*"),
)
TOKENRANGE_WHY = "token_range_queries are not supported, so ranges of tokens have no use"
TOKENRANGE = _section("-tokenrange", Option("", refused=TOKENRANGE_WHY))

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
