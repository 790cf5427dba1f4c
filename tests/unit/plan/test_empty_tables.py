"""Studies that read rows which nobody has written are refused, or doubted, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.cli.commands.check import check
from steelyard.plan import empty_tables, expand
from steelyard.plan.abilities import Abilities
from steelyard.plugins.find import Plugins
from steelyard.study import read_text
from tests.unit.cli.screen import printed

STUDY = """\
[study]
name = "emptied"
question = "?"
[site]
name = "local"
[system]
name = "simulated"
[data]
state = "truncate"
[workload]
name = "ycsb-c"
records = 1000
[load]
operations = 5000
[factors]
nodes = [1]
"""
FILE = """\
name = "shop"
records = 1000
[tables.goods]
primary_key = "id"
columns = { id = "text", price = "int" }
[tables.orders]
primary_key = "id"
columns = { id = "text", at = "int" }
[statements]
stock = "INSERT INTO goods (id, price) VALUES (?, ?)"
look = "SELECT price FROM goods WHERE id = ?"
order = "INSERT INTO orders (id, at) VALUES (?, ?)"
track = "SELECT at FROM orders WHERE id = ?"
[populate]
steps = ["stock"]
[[operations]]
name = "first"
keys = "KEYS"
steps = [STEPS]
"""


def judged(text: str, folder: Path) -> tuple[list[str], list[str]]:
    """Refusals and notes of a study."""
    plugins = Plugins(folder)
    study = read_text(text, "s.toml", plugins=plugins)
    plan, abilities = expand(study, plugins), Abilities(plugins, state_folder=folder, cache_folder=folder)
    refusals = [f"{error.key}: {error.message}" for error in empty_tables.refusals(study, plan, abilities)]
    return refusals, list(empty_tables.notes(study, plan, abilities))


@pytest.mark.parametrize(
    ("was", "now", "refused", "noted"),
    [
        ("", "", True, False),
        ('"ycsb-c"', '"ycsb-a"', True, False),  # half of the rows are read before they are written
        ('"ycsb-c"', '"ycsb-d"', True, False),  # the latest are those that were taken away, to begin with
        ('"ycsb-c"', '"ycsb-e"', False, False),  # scans of what has been inserted
        ('"ycsb-c"', '"ycsb-e"\ninsert_proportion = 0\n', True, False),
        ('"ycsb-c"', '"ycsb-f"', True, False),
        ('"ycsb-c"', '"ycsb-i"', True, False),  # 1% reads of what its inserts do not bring back
        ('"ycsb-c"', '"ycsb-a"\nread_proportion = 0\n', False, False),
        ('"ycsb-c"', '"ycsb-a"\nread_proportion = 0.001\nupdate_proportion = 1', False, True),
        ('"ycsb-c"', '"stress"', True, False),
        ('"ycsb-c"', '"stress"\nread_proportion = 0', False, False),
        ("truncate", "restore", False, False),
        ("truncate", "reload", False, False),
        ("truncate", "continue", False, False),
        ("[factors]", "[limits]\nnot_found_fraction = 1\n[factors]", False, True),
        ('state = "truncate"', 'state = "restore"\n[factors]\n"data.state" = ["restore", "truncate"]', True, False),
    ],
)
def test_the_state_that_takes_rows_away(was: str, now: str, refused: bool, noted: bool, tmp_path: Path) -> None:
    text = STUDY.replace(was, now) if was else STUDY
    if text.count("[factors]") > 1:
        text = text.replace("[factors]\nnodes = [1]\n", "")
    refusals, notes = judged(text, tmp_path)
    assert (bool(refusals), bool(notes)) == (refused, noted), (refusals, notes)
    assert not refused or "data.state: " in refusals[0]


@pytest.mark.parametrize(
    ("steps", "keys", "state", "records", "refused"),
    [
        ('"look"', "uniform", "truncate", 1000, True),
        ('"look"', "uniform(0..9)", "restore", 0, True),
        ('"look"', "uniform", "restore", 1000, False),
        ('"track"', "uniform", "restore", 1000, True),  # nobody fills the orders
        ('"order", "track"', "uniform", "truncate", 1000, False),  # reads its own
        ('"track", "order"', "uniform", "truncate", 1000, True),
        ('"stock"', "new", "truncate", 1000, False),
        ('"stock", "look"', "new", "restore", 0, False),
    ],
)
def test_a_workload_file(steps: str, keys: str, state: str, records: int, refused: bool, tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(FILE.replace("STEPS", steps).replace("KEYS", keys))
    text = STUDY.replace("ycsb-c", "shop.toml").replace("truncate", state).replace("= 1000", f"= {records}")
    refusals, _ = judged(text, tmp_path)
    assert bool(refusals) is refused, refusals


def test_check_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(STUDY)
    found = printed(lambda: check(path, store=tmp_path), width=400)
    assert found.code == 2
    assert f'{path}:9: 100% of the operations of workload ycsb-c read rows, but data.state = "truncate"' in found.err
    path.write_text(STUDY.replace("state =", "# state ="))
    assert printed(lambda: check(path, store=tmp_path), width=400).code == 0
