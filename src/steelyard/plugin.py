"""Plug-in lookup by module name, entry point or path, at call time; nothing registers itself at import.

A plug-in of a seam is a module or package `steelyard.<seam>.<name>` (dashes in names are underscores in modules), an
entry point `steelyard.<seam>`, or the path of a Python file, relative to the working directory. Modules whose name
begins with an underscore, and `base`, are a seam's own. A workload may be a TOML file, too, relative to the study that
names it. Named values, such as profiles, are TOML files only: shipped ones `steelyard/<kind>/<name>.toml`, others by
their path.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from steelyard.model.errors import StudyError
from steelyard.tomlfile.parse import parsed, text_of

SEAMS = ("site", "system", "workload", "engine", "probe")
HOWTO = {
    "site": "docs/howto/add-a-site.md",
    "system": "docs/howto/add-a-system.md",
    "workload": "docs/howto/add-a-workload.md",
    "engine": "docs/howto/add-an-engine.md",
    "probe": "docs/howto/add-a-probe.md",
    "link": "docs/howto/measure-over-other-links.md",
}
"""The page on how to write a plug-in of a seam, or a file of named values."""
WITH_SETTINGS = ("site", "system", "workload")
WORKLOAD_FILE = ".toml"


def names(seam: str) -> tuple[str, ...]:
    """Every plug-in of a seam that can be found by name: shipped modules and entry points `steelyard.<seam>`."""
    return tuple(sorted(_shipped(seam) | _installed(seam, tuple(sys.path)).names))


@functools.cache
def _shipped(seam: str) -> frozenset[str]:
    package = importlib.import_module(f"steelyard.{seam}")
    modules = (info.name for info in pkgutil.iter_modules(package.__path__))
    return frozenset(name.replace("_", "-") for name in modules if name != "base" and not name.startswith("_"))


@functools.cache
def _installed(seam: str, import_path: tuple[str, ...]) -> importlib.metadata.EntryPoints:
    """Entry points of a seam in the distributions of an import path, which are read once: a study of many treatments
    asks thousands of times."""
    del import_path  # the key
    return importlib.metadata.entry_points(group=f"steelyard.{seam}")


def is_path(name: str) -> bool:
    """Whether a plug-in name is a file path."""
    return name.endswith((".py", WORKLOAD_FILE)) or "/" in name


class Plugins:
    """Finds plug-ins and files that a study names. A study keeps one instance while it runs: each workload file is read
    once, and later edits have no effect."""

    def __init__(self, beside: Path | None = None) -> None:
        """`beside`: the folder of the study, where its files are looked for first; then in the working directory."""
        self._places = (Path(),) if beside is None else (beside, Path())
        self._files: dict[Path, ModuleType] = {}
        self._values: dict[tuple[str, str], dict[str, Any]] = {}

    def find(self, seam: str, name: str) -> ModuleType:
        """The module of a plug-in. Raises StudyError that says what is allowed and the nearest right name."""
        if seam == "workload" and name.endswith(WORKLOAD_FILE):
            return self._workload_file(name)
        return _named(seam, name)

    def settings_model(self, seam: str, name: str) -> type[BaseModel]:
        """The `Settings` of a plug-in. Raises StudyError if there is none of that name."""
        model: type[BaseModel] = self.find(seam, name).Settings
        return model

    def file(self, name: str, what: str, key: str) -> Path:
        """A file that a study names in `key`, relative to the study or to the working directory. Raises StudyError."""
        places = [folder / name for folder in self._places]
        path = next((place for place in places if _is_file(place)), None)
        if path is None:
            looked = " and ".join(dict.fromkeys(str(place) for place in places))
            raise StudyError(f"there is no {what} {name}", f"looked at {looked}", key=key, read=name)
        return path

    def has_values(self, kind: str, name: str) -> bool:
        """Whether there may be a file of this name: a shipped one, or any path."""
        return is_path(name) or name in shipped_values(kind)

    def values_file(self, kind: str, name: str, key: str) -> dict[str, Any]:
        """The content of a named value's file, read once; `key` names it in the study. Raises StudyError."""
        if (kind, name) not in self._values:
            path = self.file(name, f"{kind} file", key) if is_path(name) else _values_folder(kind) / f"{name}.toml"
            self._values[kind, name] = parsed(text_of(path, f"{kind} file"), str(path))
        return self._values[kind, name]

    def _workload_file(self, name: str) -> ModuleType:
        """The plug-in of a workload file. Raises StudyError, also for errors in the file."""
        path = self.file(name, "workload file", "workload.name")
        if path not in self._files:
            from steelyard.workload import of_file

            self._files[path] = of_file(path)
        return self._files[path]


def shipped_values(kind: str) -> tuple[str, ...]:
    """Names of the shipped files of a kind of named values, such as profile."""
    return tuple(sorted(path.stem for path in _values_folder(kind).glob("*.toml")))


def _values_folder(kind: str) -> Path:
    return Path(__file__).parent / kind


def _is_file(path: Path) -> bool:
    """Whether there is such a file; False also for names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def find(seam: str, name: str) -> ModuleType:
    """The module of a plug-in outside of a study. Raises StudyError."""
    return Plugins().find(seam, name)


def how_to_add(seam: str) -> str:
    """Where it is described how a plug-in of a seam is written."""
    return f"to add one: {HOWTO[seam]}"


def _named(seam: str, name: str) -> ModuleType:
    if is_path(name):
        return _checked(seam, name, _from_path(seam, Path(name)))
    if entries := tuple(_installed(seam, tuple(sys.path)).select(name=name)):
        return _checked(seam, name, entries[0].load())
    known = names(seam)
    if name in known:
        return _checked(seam, name, importlib.import_module(f"steelyard.{seam}.{name.replace('-', '_')}"))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise StudyError(
        f"there is no {seam} {name!r}",
        f"{hint}allowed: {', '.join(known)}; {how_to_add(seam)}",
        key=f"{seam}.name",
        read=name,
        allowed=known,
    )


def _checked(seam: str, name: str, module: object) -> ModuleType:
    """The plug-in, if it is a module with the definitions that the seam requires."""
    wanted = ("create", "Settings") if seam in WITH_SETTINGS else ("create",)
    lacking = [item for item in wanted if not hasattr(module, item)]
    if isinstance(module, ModuleType) and not lacking:
        return module
    what = f"it does not define {' and '.join(lacking)}" if isinstance(module, ModuleType) else "it is not a module"
    raise StudyError(
        f"{name!r} is no {seam} plug-in: {what}", f"see steelyard/{seam}/base.py", key=f"{seam}.name", read=name
    )


def _from_path(seam: str, path: Path) -> ModuleType:
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"steelyard_{seam}_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if not _is_file(path) or spec is None or spec.loader is None:
        raise StudyError(
            f"there is no {seam} plug-in at {path}",
            "give the path of a Python file",
            key=f"{seam}.name",
            read=str(path),
        )
    module = importlib.util.module_from_spec(spec)
    # pydantic and dataclasses look up a class's module there to understand its annotations
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
