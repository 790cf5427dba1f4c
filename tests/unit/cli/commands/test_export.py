"""`steelyard export`: what is written, what is refused, and what a damaged store says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from steelyard.cli.commands.export import export
from steelyard.cli.main import main
from steelyard.model.errors import StoreError, StudyError
from tests.unit.cli.screen import printed
from tests.unit.export import stores


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stores.write(tmp_path_factory.mktemp("known"))


def test_every_format_at_once(known: Path, tmp_path: Path) -> None:
    exported = printed(
        lambda: export(
            known, hdr=tmp_path / "logs", openmetrics=tmp_path / "load.om", otava=tmp_path / "history",
            parquet=tmp_path / "trials.parquet", markdown=tmp_path / "page.md",
        )
    )  # fmt: skip
    assert (exported.code, exported.out) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "load.om", "history", "trials.parquet", "page.md"}
    assert exported.err.splitlines() == [
        "without 1 voided attempt: --voided exports them too",
        f"parquet      {tmp_path / 'trials.parquet'} (8 rows)",
        f"otava        {tmp_path / 'history'} (2 cells)",
        f"hdr          {tmp_path / 'logs'} (16 logs)",
        f"openmetrics  {tmp_path / 'load.om'} (11 metrics)",
        f"markdown     {tmp_path / 'page.md'}",
    ]


def test_voided_attempts_are_exported_where_they_are_asked_for(known: Path, tmp_path: Path) -> None:
    exported = printed(lambda: export(known, parquet=tmp_path / "t.parquet", voided=True))
    assert exported.err == f"parquet      {tmp_path / 't.parquet'} (9 rows)\n"
    assert pl.read_parquet(tmp_path / "t.parquet")["outcome"].to_list().count("invalid") == 1


def test_damaged_files_are_named_and_passed_over(known: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(known, tmp_path / "store"))
    trial = min((store / "trials").iterdir())
    (trial / "intervals" / "load1.parquet").write_bytes(b"torn")
    exported = printed(lambda: export(store, hdr=tmp_path / "logs", openmetrics=tmp_path / "load.om"))
    assert exported.code == 1
    assert f"damaged: trials/{trial.name}/intervals/load1.parquet: it was changed after it was sealed" in exported.err
    assert not (tmp_path / "logs" / f"{trial.name}.load1.hdr").exists()
    assert (tmp_path / "logs" / f"{trial.name}.load2.hdr").exists()


def test_a_damaged_record_is_named_and_passed_over(known: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(known, tmp_path / "store"))
    (min((store / "trials").iterdir()) / "trial.json").write_text("{", encoding="utf-8")
    exported = printed(lambda: export(store, parquet=tmp_path / "t.parquet"))
    assert exported.code == 1
    assert "damaged: trials/" in exported.err
    assert pl.read_parquet(tmp_path / "t.parquet").height == stores.TRIALS - 1


def test_what_cannot_be_exported_is_refused(known: Path, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no format is named"):
        export(known)
    with pytest.raises(StudyError, match="is named twice"):
        export(known, parquet=tmp_path / "a", markdown=tmp_path / "b" / ".." / "a")
    with pytest.raises(StudyError, match="is a file, but a folder is needed"):
        export(known, hdr=known / "study.json")
    with pytest.raises(StoreError, match="is not a study's folder"):
        export(tmp_path, parquet=tmp_path / "a")
    with pytest.raises(StoreError) as caught:
        export(Path("lz4.toml"), parquet=tmp_path / "a")
    assert "such as store/lz4" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--parquet", "--openmetrics", "--markdown"])
def test_a_folder_in_place_of_a_file_is_named(
    option: str, known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", str(known), option, str(tmp_path)])
    assert ended.value.code == 3
    assert f"error: {tmp_path}: is a directory" in capsys.readouterr().err
    assert list(tmp_path.parent.glob(".*tmp")) == []


def test_a_pipe_is_written_to(known: Path) -> None:
    """As `--markdown /dev/stdout | less` does."""
    words = [sys.executable, "-m", "steelyard", "export", str(known), "--openmetrics", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("# TYPE steelyard_limit info\n")
    assert done.stdout.endswith("\n# EOF\n")
