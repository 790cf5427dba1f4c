"""Reference page of workload files, generated from their models."""

# ruff: noqa: E501 - a row of a Markdown table cannot be broken

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from steelyard.workload import _types
from steelyard.workload._distributions import DISTRIBUTIONS, FIXED_MEANING, grammar
from steelyard.workload._models import Column, DeclaredTable, File, Operation, Populate, Statement, Step, Steps
from tools.docs.study_file import properties, rows

SECTIONS: tuple[tuple[str, str, type[BaseModel], tuple[str, ...]], ...] = (
    (
        "Keys before the first table",
        "",
        File,
        ("parameters", "types", "tables", "statements", "populate", "operations"),
    ),
    ("`[tables.NAME]`", "", DeclaredTable, ()),
    (
        "`[tables.NAME.columns]`, `[types.NAME]`, `[statements.NAME.values]`",
        'A type alone (`id = "uuid"`) is short for a table with that type. In `values`, a number or a text is short for a '
        "distribution to draw from.",
        Column,
        (),
    ),
    (
        "`[statements.NAME]`",
        'CQL alone (`get = "SELECT ..."`) is short for a table with that statement.',
        Statement,
        (),
    ),
    (
        "`[populate]`",
        'The name of a statement alone (`populate = "put"`) is short for a table with that statement.',
        Populate,
        tuple(Steps.model_fields),
    ),
    ("`[[operations]]`", "", Operation, tuple(Steps.model_fields)),
    (
        "Statements of an operation",
        "In `[populate]` and `[[operations]]`: one of `statement`, `batch` and `steps`. Each step is the name of a "
        "statement, or a table with the same keys except `steps`. An operation with several steps ends with the last; if one "
        "fails, the others are not sent.",
        Step,
        (),
    ),
)
HEAD = """\
# The workload file

<!-- Made by `python -m tools.docs --write`; edit the models instead. -->

A workload is one TOML file with tables, rules for their columns' values, statements, and the frequency of each
operation. [How to write one](../howto/write-a-workload.md) begins with an example; three are in
[`studies/workloads`](../../studies/workloads). It compiles to the program of an [order](wire.md), which the agent
runs. Unknown keys are refused, with line and the nearest valid name.

```
steelyard load WORKLOAD.toml --show 5                                 # operations that it would send
steelyard load WORKLOAD.toml --contact 10.0.0.1 --create --populate   # against a running cluster
```

A study names it by its path relative to the study (`workload.name = "workloads/timeseries.toml"`). Further settings
are `records`, `validate_fraction`, `insert_lag`, `weights` (a table from operation to weight) and each of the file's
parameters. Each can be a factor (`workload.weights.chart = [1, 20]`). Records, and parameters that are used in tables,
types or a statement that fills them, are hard to change; the others are easy. `digest`, a hash of the file's content
without comments and `about`, is also a setting, so an edited file makes different trials.

## Keys and values

A record is a number, its *key*. Keys 0 to `records` - 1 are filled, and `keys = "new"` continues from there. Every
stored value is a function of the key, so that the expected value is known when it is read. `make` selects the
function:

| `make` | value | type |
| --- | --- | --- |
| `key` | `offset` + `scale` x ((key / `divide`) modulo `modulo`, hashed if `scramble`) | numbers, text (decimal digits after `prefix`), blobs (8 bytes), timestamps (ms), dates (days), times (ns), uuids (of the number's hash) |
| `random` | pseudo-random; the same for the same key and, if `versioned`, for the same operation that wrote it | all |
| `draw` | a number drawn for each operation, such as a limit or the bound of a range | as `key` |
| `row` | the number of the repetition within a batch, from 0; elsewhere a random number below `count` | as `key` |
| `fixed` | `value`: text, number, true, list; a date for timestamps and dates; text after `0x` for blobs; text for uuids and addresses | all |

If `make` is omitted, it follows from the other keys: `value` means fixed, `count` row, `divide`, `modulo`, `prefix`
and similar keys mean key. Otherwise columns of the primary key are derived from the key, and all others are random. A
counter is incremented by 1.

Markers of a statement are `?` or `:name`. A marker gets its column's value. In INSERT, this is the column at the same
position, otherwise the column before the preceding operator. `LIMIT ?`, `USING TTL ?` and `USING TIMESTAMP ?` are
called `limit`, `ttl` and `timestamp`; their values must be given under `values`, as for `IN ?` (a list), `CONTAINS ?`,
and names without a column.

## Validation

For a share `validate_fraction` of the answers to a SELECT, the first row is compared with its expected content. A
difference is an error of kind `invalid`. A SELECT is compared if the key determines the requested row: every column of
the primary key is restricted by equality with the column's own value. Only columns whose value follows from the key
are compared: not counters, static columns, drawn columns, columns that some INSERT in the file omits, or columns that
some statement sets to a value other than the column's own (`tags = tags + ?`). `compare = false`, for a column or a
statement, excludes more.

## Parameters

`"$name"` alone is the parameter's value with its type. In a longer text it is inserted as text
(`"uniform(1..$most)"`).

## Types

"""
DISTRIBUTIONS_HEAD = """
User-defined types are defined under `[types]`, each before those that use it.

## Distributions

A distribution is a number, a short form, or a table with the same names: `5`, `"uniform(1..100)"`,
`{ name = "zipfian", min = 1, max = 100, theta = 0.7 }`. Both bounds can occur. `~` before the name reverses it, so
that the highest value takes the lowest value's place.

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
