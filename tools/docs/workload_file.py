"""Reference page of workload files, generated from their models."""

# ruff: noqa: E501 - a row of a Markdown table cannot be broken

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from steelyard.workload import _types
from steelyard.workload._distributions import DISTRIBUTIONS, FIXED_MEANING, grammar
from steelyard.workload._models import Column, File, Operation, Populate, Statement, Step, Steps, Table
from tools.docs.study_file import properties, rows

SECTIONS: tuple[tuple[str, str, type[BaseModel], tuple[str, ...]], ...] = (
    (
        "Keys before the first table",
        "",
        File,
        ("parameters", "types", "tables", "statements", "populate", "operations"),
    ),
    ("`[tables.NAME]`", "", Table, ()),
    (
        "`[tables.NAME.columns]`, `[types.NAME]`, `[statements.NAME.values]`",
        'A type alone (`id = "uuid"`) is short for a table with it. In `values` a number or a text is short for a '
        "distribution that is drawn from.",
        Column,
        (),
    ),
    ("`[statements.NAME]`", 'CQL alone (`get = "SELECT ..."`) is short for a table with it.', Statement, ()),
    (
        "`[populate]`",
        'The name of a statement alone (`populate = "put"`) is short for a table with it.',
        Populate,
        tuple(Steps.model_fields),
    ),
    ("`[[operations]]`", "", Operation, tuple(Steps.model_fields)),
    (
        "What is carried out",
        "In `[populate]` and `[[operations]]`: one of `statement`, `batch` and `steps`. Each step is the name of a "
        "statement, or a table with the same keys but `steps`. An operation of several steps ends with the last; where one "
        "fails the others are not sent.",
        Step,
        (),
    ),
)
HEAD = """\
# The workload file

<!-- Made by `python -m tools.docs --write`; edit the models instead. -->

A workload is one TOML file: tables, how the values of their columns are made, statements, and how often which of them is
carried out. [How to write one](../howto/write-a-workload.md) begins with an example; three are in
[`studies/workloads`](../../studies/workloads). It compiles to the program of an [order](wire.md), which the agent carries
out. Unknown keys are refused, with line and the nearest right name.

```
steelyard load WORKLOAD.toml --show 5                                 what it would send
steelyard load WORKLOAD.toml --contact 10.0.0.1 --create --populate   against a cluster that runs
```

A study names it, relative to its own file: `workload.name = "workloads/timeseries.toml"`. Settings beside the name:
`records`, `validate_fraction`, `insert_lag`, `weights` (a table: operation to weight) and each of the file's parameters; each can be a
factor (`workload.weights.chart = [1, 20]`). Records, and parameters that are used in tables, types or a statement that
fills them, are hard to change; all else is easy. `digest`, a hash of the file's content without comments and `about`, is in
the settings too: trials of an edited file are other trials.

## Keys and values

A record is a number, its *key*: 0 up to `records` - 1 are filled, `keys = "new"` goes on from there. Every value that is
stored is a function of the key, so that it can be expected when it is read. `make` says how:

| `make` | value | type |
| --- | --- | --- |
| `key` | `offset` + `scale` x ((key / `divide`) modulo `modulo`, hashed if `scramble`) | numbers, text (decimal digits behind `prefix`), blobs (8 bytes), timestamps (ms), dates (days), times (ns), uuids (of the number's hash) |
| `random` | looks random; the same for the same key, and where it is `versioned` for the same operation that wrote it | all |
| `draw` | a number drawn for each operation: limits, bounds of a range | as `key` |
| `row` | the number of the repetition within a batch, from 0; elsewhere a number below `count`, drawn | as `key` |
| `fixed` | `value`: text, number, true, list; a date for timestamps and dates; text behind `0x` for blobs; text for uuids and addresses | all |

`make` follows from the other keys where it is left out: `value` is fixed, `count` is row, `divide`, `modulo`, `prefix` and
the like are key; else columns of the primary key are made of the key and all others are random. A counter grows by 1.

Markers of a statement are `?` or `:name`. A marker gets its column's value: the column of INSERT at its place, else the column
before the operator before it. `LIMIT ?`, `USING TTL ?` and `USING TIMESTAMP ?` are called `limit`, `ttl` and
`timestamp`; what they are must be said below `values`, as for `IN ?` (a list), `CONTAINS ?`, and names that are no column.

## What is compared

Of a share `validate_fraction` of the answers to a SELECT the first row is held against what must be in it; a difference is
an error of kind `invalid`. A SELECT is compared when the key says which row it asks for: every column of the primary key is
given by equality with the column's own value. Of its columns those are compared whose
value follows from the key: not counters, static columns, columns that are drawn, columns that some INSERT of the
file leaves out, or that some statement sets to another value than the column's own (`tags = tags + ?`). `compare = false`, of a
column or a statement, leaves out more.

## Parameters

`"$name"` alone is the parameter's value with its type; within a longer text it is put in as text (`"uniform(1..$most)"`).

## Types

"""
DISTRIBUTIONS_HEAD = """
User-defined types are told below `[types]`, each before those that use it.

## Distributions

A number, a short form, or a table with the same names: `5`, `"uniform(1..100)"`, `{ name = "zipfian", min = 1, max = 100,
theta = 0.7 }`. Both bounds can occur. `~` before the name turns it around: the highest takes the lowest's place.

| short form | draws |
| --- | --- |
"""


def text() -> str:
    """The page."""
    types = f"{', '.join(f'`{name}`' for name in _types.SIMPLE)}, `list<T>`, `set<T>`, `map<K, V>`, `tuple<T, ...>`, "
    parts = [HEAD + types + "`vector<T, n>`, `frozen<T>`.", DISTRIBUTIONS_HEAD.rstrip("\n"), *_distributions(), ""]
    for title, purpose, model, left_out in SECTIONS:
        fields = {name: field for name, field in properties(model).items() if name not in left_out}
        parts += [f"## {title}\n", *([purpose + "\n"] if purpose else []), *rows(fields, None), ""]
    return "\n".join(parts).rstrip() + "\n"


def _distributions() -> Iterator[str]:
    yield f"| `{grammar('fixed')}` | {FIXED_MEANING} |"
    for name, distribution in DISTRIBUTIONS.items():
        yield f"| `{grammar(name)}` | {distribution.meaning} |"
