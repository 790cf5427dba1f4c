"""`steelyard gate` from stores on disk: exit codes, JUnit, Markdown, JSON, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from steelyard.analysis.gate import Gate, GateCase
from steelyard.cli import main
from steelyard.cli.commands import compare as compare_command
from steelyard.cli.commands.gate import EXIT_CODES, gate
from steelyard.export import gate_files
from steelyard.model.errors import StoreError, StudyError
from steelyard.model.estimate import Estimate
from tests.unit.cli.screen import printed
from tests.unit.verify import made


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same study three times: as it is, again, and 10% slower."""
    speeds = {"base": 1.0, "again": 1.0, "slow": 1 / 1.1}
    return {name: made.store(tmp_path_factory.mktemp(name), speed=speed) for name, speed in speeds.items()}


def judged(store: Path, **options: Any) -> tuple[int, str]:
    """Exit code and standard output."""
    screen = printed(lambda: gate(store, **options))
    assert screen.err == ""
    return screen.code, screen.out


def test_exit_codes(stores: dict[str, Path]) -> None:
    assert EXIT_CODES == {"not worse": 0, "worse": 1, "undecided": 4}
    code, text = judged(stores["again"], against=stores["base"], margin_percent=2.0)
    assert code == 0, text
    assert "is not worse than" in text
    code, text = judged(stores["slow"], against=stores["base"], margin_percent=2.0)
    assert code == 1
    assert text.count(": worse: execution time +10") == 2, "one per cell"
    assert "by more than 2% in 2 of 2 comparisons" in text
    assert judged(stores["base"], against=stores["slow"], margin_percent=2.0)[0] == 0, "faster is not worse"
    assert judged(stores["slow"], against=stores["base"], margin_percent=11.0)[0] == 0
    # Nothing varies between the starts of this response, so there is no interval.
    code, text = judged(stores["slow"], against=stores["base"], margin_percent=10.0)
    assert code == 4, text
    assert "undecided" in text


def test_more_is_better_of_throughput(stores: dict[str, Path]) -> None:
    code, text = judged(stores["slow"], against=stores["base"], margin_percent=2.0, response_names=["throughput"])
    assert code == 1
    assert "throughput −9." in text
    assert "entirely beyond −2.0%" in text
    assert judged(stores["base"], against=stores["slow"], margin_percent=2.0, response_names=["throughput"])[0] == 0


def test_two_levels_of_a_store(stores: dict[str, Path]) -> None:
    slower = judged(stores["base"], fixed_a=["nodes=2"], fixed_b=["nodes=1"], margin_percent=2.0)
    assert slower[0] == 1
    assert judged(stores["base"], fixed_a=["2"], fixed_b=["1"], margin_percent=2.0) == slower, "a level is enough"
    assert judged(stores["base"], margin_percent=2.0)[0] == 0, "first against second level of the only factor"


def test_json(stores: dict[str, Path]) -> None:
    code, text = judged(
        stores["slow"], against=stores["base"], margin_percent=2.0, response_names=["time,throughput"], as_json=True
    )
    known = json.loads(text)
    assert code == 1
    assert (known["verdict"], len(known["cases"]), known["margin_percent"]) == ("worse", 4, 2.0)
    assert {case["response"] for case in known["cases"]} == {"execution_time_ms", "throughput_per_s"}
    case = known["cases"][0]
    assert case["change_percent"]["confidence"] == 0.95
    assert case["simultaneous_percent"]["confidence"] == pytest.approx(1 - 0.05 / 4)
    plain, wide = case["change_percent"], case["simultaneous_percent"]
    assert wide["low"] < plain["low"] < plain["high"] < wide["high"]
    assert case["limit_percent"] == pytest.approx(2.0)


def test_several_responses_in_one_option(stores: dict[str, Path]) -> None:
    words = ["gate", str(stores["slow"]), "--against", str(stores["base"]), "--margin", "2%", "--response", "p50, time"]
    done = CliRunner().invoke(main.command_line("gate"), [*words, "--json"])
    assert {case["response"] for case in json.loads(done.stdout)["cases"]} == {"response_ms_p50", "execution_time_ms"}


def test_junit_and_markdown(stores: dict[str, Path], tmp_path: Path) -> None:
    files = tmp_path / "new" / "gate.xml", tmp_path / "gate.md"
    code, _ = judged(
        stores["slow"], against=stores["base"], margin_percent=2.0, response_names=["time", "p50"], junit=files[0],
        markdown=files[1],
    )  # fmt: skip
    assert code == 1
    root = ElementTree.parse(files[0]).getroot()
    (suite,) = root
    cases = suite.findall("testcase")
    assert root.tag == "testsuites"
    assert suite.get("tests") == str(len(cases)) == "4"
    assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
    assert suite.get("skipped") == str(len(suite.findall("testcase/skipped")))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "entirely beyond +2%" in failure.get("message", "")
    assert "noise floor: " in (failure.text or "")
    text = files[1].read_text()
    assert text.startswith("## ❌ made: worse")
    assert sum(line.startswith("| 1 node |") for line in text.splitlines()) == 2
    assert "**Warning:** The sides were not measured" not in text, "same times: side by side"


def test_github_summary_is_appended_all_else_written_whole(
    stores: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, other = tmp_path / "summary.md", tmp_path / "other.md"
    summary.write_text("what a step before wrote\n")
    other.write_text("old\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for path in (summary, other, other):
        judged(stores["again"], against=stores["base"], margin_percent=2.0, markdown=path)
    assert summary.read_text().startswith("what a step before wrote\n\n## ✅ made")
    assert other.read_text().startswith("## ✅ made")
    assert other.read_text().count("## ") == 1


def test_names_are_no_markup_and_xml_can_hold_them() -> None:
    assert gate_files._cell("a | b <i>") == r"a \| b \<i\>"
    assert gate_files._cell("a\nb  `c` *d* _e_ [f] #g \\h") == r"a b \`c\` \*d\* \_e\_ \[f\] \#g \\h"
    assert gate_files._xml("a\x00b") == "a\N{REPLACEMENT CHARACTER}b"
    assert gate_files._xml("a\tb <é> 😀") == "a\tb <é> 😀", "the writer of XML escapes the rest"


@pytest.mark.parametrize("words", ["", "1 more block", "24 blocks in a new study (about 5 h)"])
def test_further_blocks_are_told_only_where_their_number_is_known(words: str) -> None:
    ratio = Estimate(value=1.0, low=-5.0, high=7.0, n=6, unit="%", method="made")
    case = GateCase(
        cell={"nodes": 2}, response="execution_time_ms", unit="ms", verdict="undecided", sentence="undecided",
        change_percent=ratio, limit_percent=2.0, advice=words,
    )  # fmt: skip
    verdict = Gate(
        verdict="undecided", study="made", a="a", b="b", margin_percent=2.0, confidence=0.95, cases=(case,),
        looks=("look 2, at 98.75%",),
    )  # fmt: skip
    summary = gate_files.markdown(verdict)
    (row,) = [line for line in summary.splitlines() if line.startswith("| 2 nodes |")]
    assert row.endswith(f"undecided{'; ' if words else ''}{gate_files._cell(words)} |")
    assert "\nLook 2, at 98.75%.\n" in summary
    text = gate_files.junit(verdict).decode()
    assert text.count(f"blocks that would decide: {words}") == bool(words)
    assert '<property name="look" value="look 2, at 98.75%" />' in text


def test_a_cell_that_one_side_lacks_is_named(stores: dict[str, Path], tmp_path: Path) -> None:
    odd = made.store(tmp_path / "odd", text=made.STUDY.replace("[1, 2]", "[1]"))
    xml, text = tmp_path / "gate.xml", tmp_path / "gate.md"
    code, _ = judged(odd, against=stores["base"], margin_percent=2.0, junit=xml, markdown=text)
    assert code == 0
    assert len(ElementTree.parse(xml).getroot().findall("testsuite/testcase")) == 1
    assert "only " in text.read_text(), "the cell that one side lacks is named"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"fixed_a": ["nodes=7"], "fixed_b": ["nodes=1"]}, "no such level"),
    ({"fixed_a": ["seven"], "fixed_b": ["1"]}, "no factor has such a level"),
    ({"fixed_a": ["noses=1"], "fixed_b": ["nodes=1"]}, "no factor has such a level"),
    ({"fixed_a": ["nodes=1,nodes=2"], "fixed_b": ["1"]}, "--a nodes=2: nodes is 1 already"),
    ({"fixed_a": ["1", "2"], "fixed_b": ["1"]}, "--a 2: nodes is 1 already"),
    ({"fixed_a": ["1"], "fixed_b": ["nodes=2,1"]}, "--b 1: nodes is 2 already"),
    ({"fixed_a": ["1"]}, "no --b: within one store"),
    ({"response_names": ["p98"]}, "unknown response"),
    ({"response_names": ["p99"]}, "no value in any of the 6 valid trials"),
    ({"response_names": ["errors"]}, "neither more nor less of it is better"),
    ({"margin_percent": None}, "a gate needs a margin"),
    ({"junit": Path("x"), "markdown": Path("x")}, "both write x"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_judged(stores: dict[str, Path], options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as refused:
        gate(stores["base"], **{"margin_percent": 2.0, **options})
    assert words in refused.value.message
    assert refused.value.hint
    assert ("response_names" in options) == (refused.value.key == "--response")


def test_stores_without_a_common_cell(stores: dict[str, Path], tmp_path: Path) -> None:
    other = made.store(tmp_path, text=made.STUDY.replace("[1, 2]", "[4]"))
    with pytest.raises(StudyError, match="the two sides have no treatment in common"):
        gate(other, against=stores["base"], margin_percent=2.0)


def test_a_store_that_lacks_a_sealed_trial_is_not_judged(stores: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(stores["base"], tmp_path / "store"))
    first = next(iter(sorted((folder / "trials").iterdir())))
    shutil.rmtree(first)
    with pytest.raises(StoreError) as refused:
        gate(folder, against=stores["again"], margin_percent=2.0)
    assert "damaged" in refused.value.message


def test_a_damaged_store_is_not_judged(stores: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(stores["base"], tmp_path / "store"))
    record = next(iter(sorted((folder / "trials").iterdir()))) / "trial.json"
    record.write_text(record.read_text().replace("valid", "invalid", 1))
    with pytest.raises(StoreError, match="is damaged, and a gate rests on whole stores"):
        gate(folder, against=stores["again"], margin_percent=2.0)


@pytest.mark.parametrize(("fail_on", "slower", "undecided"), [
    ((), 0, 1), (("slower",), 1, 0), (("undecided",), 0, 1), (("slower", "undecided"), 1, 1),
])  # fmt: skip
def test_compare_fails_on_what_it_is_asked_to(
    stores: dict[str, Path], fail_on: tuple[str, ...], slower: int, undecided: int
) -> None:
    asked = [compare_command.FailOn(word) for word in fail_on]
    sides = {"slower": (stores["base"], stores["slow"]), "undecided": (stores["base"], stores["again"])}
    for name, code in (("slower", slower), ("undecided", undecided)):
        a, b = map(str, sides[name])
        assert printed(lambda a=a, b=b: compare_command.compare(a, b, fail_on=asked)).code == code, name
