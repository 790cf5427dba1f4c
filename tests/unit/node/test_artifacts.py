"""Checksums of fetched programs: what is not what was fetched is refused by name, before anything of it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import EngineError
from steelyard.node import artifacts


def release(folder: Path, shipped: str | None) -> artifacts.Release:
    return artifacts.Release("Tool 1.2", folder, shipped, "steelyard setup tool", EngineError)


def fetched(folder: Path) -> list[Path]:
    paths = [folder / "lib" / name for name in ("b.jar", "a.jar")]
    paths[0].parent.mkdir(parents=True)
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def listed(paths: list[Path]) -> str:
    return "".join(f"{checksum}  {name}\n" for name, checksum in artifacts.sums(paths).items())


def test_files_of_the_shipped_list_pass_and_nothing_is_written(tmp_path: Path) -> None:
    paths, said = fetched(tmp_path), []
    one = release(tmp_path, listed(paths))
    one.check_fetched(paths)
    assert list(one.check(paths, said.append)) == ["a.jar", "b.jar"]
    assert said == []
    assert not (tmp_path / artifacts.LIST).exists()


@pytest.mark.parametrize("shipped", [True, False], ids=["shipped", "first use"])
@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (lambda lib: (lib / "a.jar").write_bytes(b"another"), "a.jar has different content"),
        (lambda lib: (lib / "b.jar").unlink(), "b.jar is missing"),
        (lambda lib: (lib / "c.jar").write_bytes(b"more"), "c.jar is not on the list"),
    ],
)
def test_what_was_changed_is_named_with_what_to_do(tmp_path: Path, shipped: bool, harm: object, named: str) -> None:
    paths, said = fetched(tmp_path), []
    one = release(tmp_path, listed(paths) if shipped else None)
    one.check(paths, said.append)
    assert callable(harm)
    harm(tmp_path / "lib")
    with pytest.raises(EngineError, match=named) as caught:
        one.check(sorted((tmp_path / "lib").glob("*.jar")), said.append)
    assert caught.value.message.startswith(f"Tool 1.2: files in {tmp_path / 'lib'} differ from those fetched")
    assert f"remove {tmp_path} and run `steelyard setup tool`" in caught.value.hint
    assert len(said) == (0 if shipped else 1), "the first use of a version without a list is told, once"


def test_what_a_mirror_gives_instead_is_refused(tmp_path: Path) -> None:
    paths = fetched(tmp_path)
    known = listed(paths)
    for path in paths:
        path.write_bytes(b"a mirror's own")
    with pytest.raises(EngineError, match=r"a\.jar has different content, b\.jar has different content"):
        release(tmp_path, known).check_fetched(paths)
    release(tmp_path, None).check_fetched(paths)


def test_many_are_not_all_named() -> None:
    wrong = artifacts.differences({}, {f"{index}.jar": "" for index in range(8)})
    assert artifacts._named(wrong) == "0.jar is missing, 1.jar is missing, 2.jar is missing, and 5 more"
