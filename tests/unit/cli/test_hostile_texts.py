"""Texts of a store that came from anybody, over every output of every command that reads it: no character that a
terminal obeys, no cell that is a formula, no markup."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.commands.audit import audit
from steelyard.cli.commands.compare import compare
from steelyard.cli.commands.export import export
from steelyard.cli.commands.gate import gate
from steelyard.cli.commands.report import report
from steelyard.cli.commands.status import status
from steelyard.cli.commands.verify import verify
from steelyard.model.errors import SteelyardError
from tests.unit.cli.screen import Printed, printed
from tests.unit.verify import made

FORMULA = '=HYPERLINK("http://evil","x")'
MARKUP = "<img src=x onerror=alert(1)> [a](javascript:b) [red]z[/none]"
CONTROL = "\x1b[31m\x07\x00\x7f\x9b\u202e\u2066\u200f\u2028\r"
PAYLOAD = f"{FORMULA}{MARKUP}{CONTROL}"
LEVELS = {1: "-5 nodes", 2: PAYLOAD}
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
SUFFIXES = {".csv", ".html", ".md", ".tex", ".txt", ".yaml", ".xml", ".hdr", ".openmetrics"}


def changed(value: Any) -> Any:
    """A record, a plan or a study whose level of two nodes, names and texts are the payload."""
    if isinstance(value, list):
        return [changed(item) for item in value]
    if not isinstance(value, dict):
        return value
    read = {key: changed(item) for key, item in value.items()}
    if "nodes" in read.get("treatment", {}):
        read["treatment"] = {"nodes": LEVELS[read["treatment"]["nodes"]]}
    if "nodes" in read.get("factors", {}):
        read["factors"] = {"nodes": list(LEVELS.values())}
    for key in ("title", "question", "source", "cpu_model", "steelyard", "system"):
        if isinstance(read.get(key), str):
            read[key] = PAYLOAD
    return {**read, "start": f"@{CONTROL}{read['start']}"} if "order_in_start" in read else read


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made.store(tmp_path_factory.mktemp("hostile"))
    for path in [*folder.glob("*.json"), *folder.glob("trials/*/*.json"), *folder.glob("trials/*/facts/*.json")]:
        read = {**changed(json.loads(path.read_text())), **({"checksums": {}} if path.name == "trial.json" else {})}
        if path.name == "trial.json":
            read["versions"] = {"steelyard": PAYLOAD, "system": PAYLOAD}
        path.write_text(json.dumps(read), encoding="utf-8")
    plan = folder / "plan.jsonl"
    lines = [json.dumps(changed(json.loads(line))) for line in plan.read_text().splitlines()]
    plan.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "events.jsonl").write_text(
        json.dumps({"t_s": 5.0, "event": PAYLOAD})
        + "\n"
        + json.dumps({"t_s": 5.0, "event": "session-interrupted"})
        + "\n"
    )
    (folder / "trials" / f"a{CONTROL.replace(chr(0), '')}").mkdir()
    return folder


def carried_out(command: Callable[[], int]) -> Printed:
    def told() -> int:
        try:
            return command()
        except SteelyardError as error:
            from steelyard.cli.terminal.output import complain, message_console

            complain(message_console(), error)
            return 9

    return printed(told)


def of_store(store: Path, into: Path) -> dict[str, Callable[[], int]]:
    files: dict[str, Any] = {
        "hdr": into / "hdr", "openmetrics": into / "m.openmetrics", "otava": into / "otava", "markdown": into / "p.md",
    }  # fmt: skip
    # compare and gate want a second store, and gate one without a damage.
    whole = [shutil.copytree(store, into / name, ignore=shutil.ignore_patterns("a*")) for name in ("before", "after")]
    name, other = map(str, whole)
    return {
        "verify": lambda: verify(store), "verify --json": lambda: verify(store, as_json=True),
        "status": lambda: status(store), "status --json": lambda: status(store, as_json=True),
        "report --json": lambda: report(store, as_json=True), "report --methods": lambda: report(store, methods=True),
        "report": lambda: report(store, output=into / "r.html", tables=into / "tables"),
        "compare": lambda: compare(name, other), "compare --json": lambda: compare(name, other, as_json=True),
        "gate": lambda: gate(
            whole[0], against=whole[1], junit=into / "g.xml", markdown=into / "g.md", margin_percent=5.0
        ),
        "export": lambda: export(store, **files),
    }  # fmt: skip


def test_no_output_has_what_is_obeyed(store: Path, tmp_path: Path) -> None:
    for name, command in of_store(store, tmp_path).items():
        told = carried_out(command)
        assert not OBEYED.findall(told.out + told.err), name
        assert told.out or told.err or name in ("export", "report"), name
        if "--json" in name and told.code in (0, 1):
            json.loads(told.out)
    written = [path for path in tmp_path.rglob("*") if path.suffix in SUFFIXES]
    assert {path.suffix for path in written} >= {".xml", ".csv", ".md", ".tex", ".yaml", ".openmetrics"}
    for path in written:
        text = path.read_bytes().decode("utf-8")
        assert not OBEYED.findall(text), path.name
        if path.suffix == ".md":
            assert "<img" not in text.replace("\\<", "")
            assert "](" not in text.replace("\\](", "")
        if path.suffix == ".csv":
            for cell in (cell for row in csv.reader(io.StringIO(text)) for cell in row):
                assert cell[:1] not in "=@" or not cell, (path.name, cell)
                assert cell[:1] not in "+-" or re.fullmatch(r"[+-][\d.e+-]+|", cell), (path.name, cell)
    assert any("'=HYPERLINK" in path.read_text() for path in written if path.suffix == ".csv")


def test_a_table_of_numbers_with_hostile_names(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        f'n,"cell{CONTROL[:-1]}",mean,sd,min,max\n5,"{MARKUP}{CONTROL[:-1]}",20,1,1,10\n', encoding="utf-8"
    )
    for as_json in (False, True):
        told = carried_out(lambda as_json=as_json: audit(str(table), as_json=as_json))
        assert not OBEYED.findall(told.out + told.err)
