from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import StudyError
from steelyard.plugins import find
from steelyard.plugins.find import Plugins

ROOT = Path(__file__).resolve().parents[3]


def test_modules_and_packages_are_found_by_name_and_helpers_are_not() -> None:
    names = find.names("workload")
    assert {"ycsb-a", "ycsb-c", "ycsb-i"} <= set(names)
    assert not any(name == "base" or name.startswith(("-", "_")) for name in names)
    assert (ROOT / "src/steelyard/site/kernel/__init__.py").is_file()
    assert {"docker", "fake", "local", "ssh", "vm"} <= set(find.names("site"))
    assert "kernel" not in find.names("site"), "what sites share has no `create`"
    with pytest.raises(StudyError, match="unknown site 'kernel'"):
        find.find("site", "kernel")

    assert find.find("workload", "ycsb").__name__ == "steelyard.workload.ycsb"


def test_a_shipped_file_is_another_plug_in_with_its_own_defaults() -> None:
    found = find.find("workload", "ycsb-i")
    assert found is find.find("workload", "ycsb-i")
    made = found.create(found.Settings(records=5))
    assert (made.name, made.settings.records, made.settings.insert_proportion) == ("ycsb-i", 5, 0.99)
    assert issubclass(found.Settings, find.find("workload", "ycsb").Settings)
    assert "sensor" in (found.__doc__ or "")


def test_every_shipped_plug_in_can_be_found() -> None:
    for seam in find.SEAMS:
        for name in find.names(seam):
            assert hasattr(find.find(seam, name), "create"), f"{seam} {name}"


def test_a_file_is_loaded_once_and_its_classes_know_their_module(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\nfrom typing import Literal\nfrom pydantic import BaseModel\n"
        "class Settings(BaseModel):\n    size: Literal[1, 2] = 1\ndef create(settings): return settings\n"
    )
    found = find.find("workload", str(path))
    assert find.find("workload", str(path)) is found
    assert found.Settings(size=2).size == 2
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.py").write_text(path.read_text())
    assert find.find("workload", str(tmp_path / "other" / "mine.py")) is not found


def test_what_cannot_be_found_is_said(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        find.find("workload", "ycbs-a")
    assert "did you mean 'ycsb-a'" in caught.value.hint
    with pytest.raises(StudyError, match="workload plug-in not found at"):
        find.find("workload", str(tmp_path / "none.py"))
    (tmp_path / "half.py").write_text("def create(settings): return settings\n")
    with pytest.raises(StudyError, match="does not define Settings"):
        find.find("workload", str(tmp_path / "half.py"))


def test_two_studies_at_a_time_find_each_its_own_files(tmp_path: Path) -> None:
    """Reading a study once moved the files of the study before: where they are looked for was global."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stamps.txt").write_text(name)
    first, second = (Plugins(tmp_path / name) for name in ("first", "second"))
    assert first.file("stamps.txt", "trace", "load.trace").read_text() == "first"
    assert second.file("stamps.txt", "trace", "load.trace").read_text() == "second"
    assert first.file("stamps.txt", "trace", "load.trace").read_text() == "first"
    with pytest.raises(StudyError, match=r"trace stamps\.txt not found"):
        Plugins().file("stamps.txt", "trace", "load.trace")


def test_a_workload_file_holds_as_it_was_read_first_while_its_study_is_at_work(tmp_path: Path) -> None:
    text = (ROOT / "studies" / "workloads" / "accounts.toml").read_text()
    (tmp_path / "w.toml").write_text(text)
    plugins = Plugins(tmp_path)
    found = plugins.find("workload", "w.toml")
    (tmp_path / "w.toml").write_text(f"{text}# changed\n")
    assert plugins.find("workload", "w.toml") is found
    assert Plugins(tmp_path).find("workload", "w.toml") is not found
