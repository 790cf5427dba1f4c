"""Reference page of the study file, generated from the models and the settings of shipped plug-ins."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from steelyard.format import data_size, listed
from steelyard.model.client import Client
from steelyard.model.cost import Cost
from steelyard.model.demand import Demand
from steelyard.model.derived import DerivedLevel
from steelyard.model.disruption import DisruptionChoice
from steelyard.model.link import LinkChoice
from steelyard.model.load import Load, LoadPhase
from steelyard.model.named_level import NamedLevel
from steelyard.model.node_limits import NodeLimits
from steelyard.model.plausible import LARGEST, SMALLEST
from steelyard.model.policy import PolicyChoice
from steelyard.model.server_warm_up import ServerWarmUp
from steelyard.model.study import (
    ALIASES,
    About,
    AnalysisChoice,
    Data,
    Design,
    Limits,
    LoadSiteChoice,
    SiteChoice,
    Study,
    Until,
)
from steelyard.model.value import Choice
from steelyard.plugins import find
from steelyard.plugins.find import Plugins
from steelyard.study.fields import SEAMS, SECTIONS, hard
from steelyard.study.schema import probe_settings
from steelyard.tomlfile.parse import LARGEST_BYTES, LONGEST_KEY, LONGEST_NAME, LONGEST_TEXT, MOST_NESTED
from steelyard.wire.order import TARGETS

OF_PROTOCOLS = "; ".join(
    f"{name} have {listed([f'`{setting}`' for setting in kind.client])}"
    for name, kind in TARGETS.items()
    if kind.client
)

TABLES: dict[str, type[BaseModel]] = {
    "study": About,
    "site": SiteChoice,
    "system": Choice,
    "workload": Choice,
    "load": Load,
    "load.phases": LoadPhase,
    "client": Client,
    "data": Data,
    "server_warm_up": ServerWarmUp,
    "node": NodeLimits,
    "link": LinkChoice,
    "load_site": LoadSiteChoice,
    "policy": PolicyChoice,
    "disruption": DisruptionChoice,
    "derived.NAME": DerivedLevel,
    "levels.FACTOR.LEVEL": NamedLevel,
    "design": Design,
    "design.until": Until,
    "analysis": AnalysisChoice,
    "analysis.demand": Demand,
    "cost": Cost,
    "limits": Limits,
}
HARD_SHOWN = ("site", "load", "client", "data", "node", "link", "load_site", "policy", "disruption")
"""Tables of which each key says what it varies over."""
LISTS = ("load.phases",)
"""Tables that may occur several times."""
PURPOSE = {
    "study": "Name and question of the study.",
    "site": "Site that lends the nodes. Further keys are its settings; `[site.NAME]` has those of one site.",
    "system": "System under test. Further keys are its settings; `[system.NAME]` has those of one system.",
    "workload": "Workload. Further keys are its settings; `[workload.NAME]` has those of one workload.",
    "load_site": f"{inspect.getdoc(LoadSiteChoice)} Further keys are settings of the named site, as under `[site]`.\n\n"
    "The load nodes must reach the databases' addresses. Databases of site `ssh` can be reached from other machines of "
    "site `ssh` or from this machine (`local`, with mode loopback), and containers of site `docker` from this machine. "
    "Databases on this machine with load nodes elsewhere are refused.",
    "policy": f"{inspect.getdoc(PolicyChoice)} See [grow a cluster under load](../howto/grow-a-cluster-under-load.md).",
    "disruption": f"{inspect.getdoc(DisruptionChoice)} See [measure a failure](../howto/measure-a-failure.md).",
    "load": f"{inspect.getdoc(Load)} Schedule `search`: [find the highest rate](../howto/find-the-highest-rate.md).",
    "client": f"{inspect.getdoc(Client)} Systems that speak {OF_PROTOCOLS}. A study that sets "
    "one which the protocol lacks to another value than its default is refused. They may also stand in `[load]`. "
    "Complete settings, and with them plans, "
    "stores and tables, have "
    "them there: a factor `client.routing` is shown as `load.routing`.",
    "analysis": f"{inspect.getdoc(AnalysisChoice)} See "
    "[answer with several responses](../howto/answer-with-several-responses.md).",
    "analysis.demand": f"{inspect.getdoc(Demand)} See "
    "[measures of elasticity](numbers/activities.md#measures-of-elasticity).",
    "levels.FACTOR.LEVEL": "Settings of one level of a [named factor](#named-levels). Further keys are fields by their "
    "dotted names.",
    "design.until": "A stopping rule: `design.starts` becomes the maximum. See "
    "[replicate until narrow](../howto/replicate-until-narrow.md).",
}
HEAD = """\
# The study file

<!-- Made by `python -m tools.docs --write`; edit the models instead. -->

A study is one TOML file. `steelyard new NAME` writes a commented one to begin with. `steelyard check STUDY` validates
it and shows the plan without starting anything. Unknown keys are refused, with the nearest valid name.

## In an editor

Editors with Taplo (Even Better TOML in VS Code, `taplo lsp` elsewhere) complete, explain and check the keys of a study
whose first line names the schema, by a path relative to the study or a URL:

```toml
#:schema ./study.schema.json
```

`steelyard new` writes that line and the schema. After an update, `steelyard schema > study.schema.json` writes it
again. The studies in `studies/` point to `schema/study.schema.json` of the checkout.

## An example

```toml
format = 1
probes = ["os"]

[study]
name = "mine"
question = "Does a third node help?"

[site]
name = "local"

[system]
name = "cassandra"

[workload]
name = "ycsb-a"
records = 5000

[load]
operations = 2000

[factors]
nodes = [1, 3]
load.threads = [1, 8]
```

## Factors

`[factors]` maps a field to its levels. Any field of `site`, `system`, `workload`, `load`, `data`, `node`, `link`,
`policy` and `disruption` can be a factor, by its dotted name. Short names: """
FACTORS = """.

In TOML a key cannot be both a value and a table. So if there is `workload = [...]`, write the longer key in quotes:
`"workload.records" = [1000, 2000]`. Every level of every treatment is validated before anything starts.

A factor that needs a new cluster is *hard to change* and varies over **starts** (`design.starts` of each combination).
The others are *easy* and vary over **trials** within a start (`design.trials` of each treatment). `site`, `system`,
`data`, `node`, `link` and everything that determines the filled data are hard. `load`, the name of the workload and
everything that does not affect the data are easy. The tables below say which.

`--scale 0.01` multiplies `workload.records` and `load.operations` (also in factors, not below 100). It adds the scale
to the study's name, so that the study gets a separate store.

## Named levels

A factor may have its own name, with levels that set several fields:

```toml
[factors]
hardware = ["vm-1gb", "vm-2gb"]
site = ["local", "docker"]

[levels.hardware.vm-1gb]
node.memory_mb = 1024
system.heap_mb = 256
number = 1.0
unit = "GB"

[levels.hardware.vm-2gb]
node.memory_mb = 2048
system.heap_mb = 512
number = 2.0
unit = "GB"

[site.docker]
network = "host"
```

Each level has a table, which may be empty; such a level changes nothing. `number` and `unit` are the level's value in
regressions. A level that is itself a number, such as `ram_gb = [1, 2]` with `[levels.ram_gb.1]`, needs neither. The
factor is hard if any field of its levels is hard. Plans, stores and tables use its name, and
`compare --a hardware=vm-1gb` chooses one of its levels.

A level overrides a fixed setting of the study. These are refused: two factors that set one field to different values
in a treatment, and two levels of a factor with the same settings.

If a study names several sites, systems or workloads, `[site.docker]` holds the settings of one of them. Settings in
`[site]` itself apply to each.

A site, system, link or profile that does not exist is *missing*. `check` prints the plan, names the missing parts and
ends with exit code 5; `run` refuses. `--without-missing` (both commands) leaves out each level that needs a missing
part. The remaining trials keep their ids, so the same store continues when the missing part exists.

In a listed treatment, a list of levels means one treatment with each of them. So
`{ hardware = ["vm-1gb", "vm-2gb"], nodes = [1, 3] }` means four treatments.

## Order and control

With `order = "blocks"`, each block starts every combination of hard levels once, in an order that is balanced over
blocks. Two combinations alternate from a random beginning; more follow a Williams design with random labels
([how](../decisions/0019-order-of-starts.md)). `check` prints how often each level comes first. A start repeats every
treatment `design.trials` times, in random order within each repetition.

With `order = "published"`, each block has the combinations in the listed order, and a start runs all trials of a
treatment in a row.

`design.seed` determines all orders and all operations. Every block has the extra trials of `design.control`. Their
replicate numbers count from 10,001, and 10,000 + k pairs with replicate k of the same treatment in the same start.

A trial's id is derived from its complete settings and its replicate numbers. So you can add levels, starts or trials
to a study and keep the trials in its store. A plug-in's path is relative to the study, and [its code is executed only
if you trust it](../decisions/0017-whose-code-runs.md).
"""

PROBES = """\
Settings of one probe listed in `probes`. They are not part of a trial's settings, so changing them keeps the trials.
"""

SIZES = (
    f"A file has at most {data_size(LARGEST_BYTES)}, {MOST_NESTED} nested tables and lists, keys of at most "
    f"{LONGEST_KEY} characters, texts of {LONGEST_TEXT:,}, and names of plug-ins of {LONGEST_NAME}. Its numbers "
    f"are finite, and 0 or from {SMALLEST:g} to {float(LARGEST):.3g} in size. It is UTF-8; "
    "a byte order mark is ignored."
)
"""What `steelyard.tomlfile.parse` refuses."""


def text() -> str:
    """The page."""
    aliases = ", ".join(f"`{short}` for `{long}`" for short, long in ALIASES.items())
    tables = (part for table in TABLES for part in _section(table))
    parts = [HEAD + aliases + FACTORS, f"{SIZES}\n", *_top(), *tables, *_of_probes()]
    return "\n".join(parts).rstrip() + "\n"


def _top() -> Iterator[str]:
    own = properties(Study)
    yield "## Keys before the first table\n"
    yield from rows({name: own[name] for name in ("format", "probes", "measure_links", "measure_idle_s")}, None)
    yield ""


def _section(table: str) -> Iterator[str]:
    model = TABLES[table]
    others = Client.model_fields if table == "load" else ()
    fields = {name: field for name, field in properties(model).items() if name not in others}
    yield f"## `[[{table}]]`\n" if table in LISTS else f"## `[{table}]`\n"
    purpose = PURPOSE.get(table) or inspect.cleandoc(model.__doc__ or "")
    yield purpose + "\n"
    changes = {name: _varies(table, name, "") for name in fields}
    yield from rows(fields, changes if table in HARD_SHOWN else None)
    yield ""
    if table in SEAMS and table == SEAMS[table]:
        for names in _families(table):
            yield from _plugins(table, names)


def _of_probes() -> Iterator[str]:
    yield "## `[probe.NAME]`\n"
    yield PROBES
    for name, model in probe_settings().items():
        yield f"### probe `{name}`\n"
        yield inspect.cleandoc(model.__doc__ or "") + "\n"
        yield from rows(properties(model), None)
        yield ""
        for field, info in model.model_fields.items():
            for inner in typing.get_args(info.annotation):
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    yield f"#### `[[probe.{name}.{field}]]`\n"
                    yield inspect.cleandoc(inner.__doc__ or "") + "\n"
                    yield from rows(properties(inner), None)
                    yield ""


def properties(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of each field, and whether it is required."""
    schema = model.model_json_schema()
    if "$ref" in schema:  # a model that contains itself
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    return {name: {**field, "required": name in required} for name, field in schema.get("properties", {}).items()}


def _families(seam: str) -> list[tuple[str, ...]]:
    """Plug-ins with the same settings but other defaults, together."""
    families: dict[str, list[str]] = {}
    for name in find.names(seam):
        fields = properties(Plugins().settings_model(seam, name))
        meaning = {key: (field.get("description"), _kind(field)) for key, field in fields.items()}
        families.setdefault(json.dumps(meaning), []).append(name)
    return [tuple(names) for names in families.values()]


def _plugins(seam: str, names: Sequence[str]) -> Iterator[str]:
    yield f"### {seam} {', '.join(f'`{name}`' for name in names)}\n"
    for name in names:
        lines = (Plugins().settings_model(seam, name).__doc__ or "").strip().split("\n\n")[0].split("\n")
        yield (f"`{name}`: " if len(names) > 1 else "") + " ".join(line.strip() for line in lines) + "\n"
    fields = {name: properties(Plugins().settings_model(seam, name)) for name in names}
    first = fields[names[0]]
    if not first:
        yield "No settings.\n"
        return
    differ = [key for key in first if len({_default(fields[name][key]) for name in names}) > 1]
    shown = {key: {**field, "varied": key in differ} for key, field in first.items()}
    yield from rows(shown, {key: _varies(seam, key, names[0]) for key in first})
    yield ""
    if differ:
        yield "Defaults that differ:\n"
        yield "| key | " + " | ".join(f"`{name}`" for name in names) + " |"
        yield "| --- |" + " --- |" * len(names)
        for key in differ:
            yield f"| `{key}` | " + " | ".join(_default(fields[name][key]) for name in names) + " |"
        yield ""


def _varies(table: str, key: str, name: str) -> str:
    if table not in (*SECTIONS, "client"):
        return ""
    return "starts" if hard(f"{table}.{key}", {table: (name,)} if name else {}, Plugins()) else "trials"


def rows(fields: Mapping[str, Any], changes: Mapping[str, str] | None) -> Iterator[str]:
    """A table of fields as `properties` gives them. `changes` maps a field to what it varies over; it adds a column."""
    extra = " varies over |" if changes is not None else ""
    yield f"| key | type | default |{extra} meaning |"
    yield "| --- | --- | --- |" + (" --- |" if changes is not None else "") + " --- |"
    for name, field in fields.items():
        default = "see below" if field.get("varied") else _default(field)
        varies = f" {changes[name]} |" if changes is not None else ""
        meaning = " ".join(field.get("description", "").split()).replace("|", "\\|")
        yield f"| `{name}` | {_kind(field)} | {default} |{varies} {meaning} |"


def _default(field: Mapping[str, Any]) -> str:
    if field.get("required"):
        return "must be given"
    default = field.get("default")
    if default is None:
        return "none"
    return f"`{json.dumps(default, ensure_ascii=False)}`"


BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
}
KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "table",
    "distribution": "distribution",
}


def _kind(field: Mapping[str, Any]) -> str:
    """Type and limits of a field, in words."""
    if "enum" in field:
        return " or ".join(f"`{choice}`" if choice != "" else '`""`' for choice in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "anyOf" in field:
        kinds = dict.fromkeys(_kind(choice) for choice in field["anyOf"] if choice.get("type") != "null")
        return " or ".join(kinds)
    limits = [words.format(f"{field[name]:,}") for name, words in BOUNDS.items() if name in field]
    kind = KINDS.get(field.get("type", ""), "table")
    if kind == "list" and isinstance(field.get("items"), Mapping):
        kind = f"list of {_kind(field['items'])}"
    return ", ".join([kind, *limits])
