"""Plug-in lookup by module name, entry point or path, at call time; nothing registers itself at import.

A plug-in of a seam is a module or package `steelyard.<seam>.<name>` (dashes in names are underscores in modules), an
entry point `steelyard.<seam>`, or the path of a Python file, relative to the study that names it. Modules whose name
begins with an underscore, and those that define no `create`, such as `base`, are a seam's own. A workload may be a TOML
file, too. Named values, such as profiles, are TOML files only: shipped ones `steelyard/<kind>/<name>.toml`, others by
their path.

To find a plug-in is to execute its module. Modules and entry points were installed by the user; a Python file came with
the study, so it is executed only if the caller's `Trust` lets it pass (docs/decisions/0017-whose-code-runs.md).
"""

from __future__ import annotations

import copy
import difflib
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.abc import InspectLoader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import BaseModel, create_model

from steelyard.model.errors import StudyError
from steelyard.tomlfile.parse import parsed, text_of

Model = TypeVar("Model", bound=BaseModel)
SEAMS = ("site", "system", "workload", "engine", "probe", "policy", "disruption")
HOWTO = {
    "site": "docs/howto/add-a-site.md",
    "system": "docs/howto/add-a-system.md",
    "workload": "docs/howto/add-a-workload.md",
    "engine": "docs/howto/add-an-engine.md",
    "probe": "docs/howto/add-a-probe.md",
    "policy": "docs/howto/add-a-policy.md",
    "disruption": "docs/howto/add-a-disruption.md",
    "link": "docs/howto/measure-over-other-links.md",
}
"""The page on how to write a plug-in of a seam, or a file of named values."""
WITH_SETTINGS = ("site", "system", "workload", "policy", "disruption")
WORKLOAD_FILE, PYTHON_FILE = ".toml", ".py"
MOST_BYTES = 4_000_000
"""Size of a plug-in's file above which it is not read."""


@dataclass(frozen=True)
class PluginFile:
    """A Python file that a study names as a plug-in, as it was read; `content` is executed."""

    seam: str
    path: Path
    """Absolute, without links."""
    content: bytes

    @property
    def sha256(self) -> str:
        """SHA-256 of its content."""
        return hashlib.sha256(self.content).hexdigest()


Trust = Callable[[PluginFile], None]
"""Decides whether a file may be executed. Raises StudyError if not."""


def no_file(file: PluginFile) -> None:
    """Trust in installed plug-ins, and in no file. Raises StudyError."""
    raise StudyError(
        f"{file.path} is the {file.seam}'s code, and it is not trusted",
        "pass `trust` to `steelyard.plugins.find.Plugins`, such as `any_file` for files of your own",
        key=f"{file.seam}.name",
        read=str(file.path),
    )


def any_file(file: PluginFile) -> None:
    """Trust in every file: for paths that the caller chose, not a study of another user."""
    del file


def names(seam: str) -> tuple[str, ...]:
    """Every plug-in of a seam that can be found by name: shipped modules and files, entry points `steelyard.<seam>`."""
    return tuple(sorted(_shipped(seam) | _installed(seam, tuple(sys.path)).names))


@functools.cache
def _shipped(seam: str) -> frozenset[str]:
    package = importlib.import_module(f"steelyard.{seam}")
    modules = [info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_")]
    own = frozenset(name.replace("_", "-") for name in modules if _creates(f"{package.__name__}.{name}"))
    return own.union(shipped_values(seam))


def _creates(module: str) -> bool:
    """Whether a module defines `create`, by its code, which is not executed: a list of names loads no plug-in."""
    spec = importlib.util.find_spec(module)
    code = spec.loader.get_code(module) if spec and isinstance(spec.loader, InspectLoader) else None
    return code is not None and "create" in code.co_names


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

    def __init__(self, study_folder: Path | None = None, trust: Trust = no_file) -> None:
        """`study_folder`: the folder of the study (default: the working directory), where its plug-ins are, and where
        its other files are looked for first; then in the working directory. `trust`: which Python files are
        executed."""
        self._trust = trust
        self._code: dict[tuple[str, Path], ModuleType | StudyError] = {}
        self._places = (Path(),) if study_folder is None else (study_folder, Path())
        self._files: dict[Path, ModuleType] = {}
        self.named: dict[str, Path] = {}
        """Files that the study has named so far, as it names them, to where they are."""
        self._values: dict[tuple[str, str], dict[str, Any]] = {}

    def find(self, seam: str, name: str) -> ModuleType:
        """The module of a plug-in. Raises StudyError with the allowed names and the nearest one."""
        if seam == "workload" and name.endswith(WORKLOAD_FILE):
            return self._workload_file(name)
        if is_path(name):
            return self._python_file(seam, name)
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
            looked = " and ".join(dict.fromkeys(str(place.absolute()) for place in places))
            raise StudyError(f"{what} {name} not found", f"looked at {looked}", key=key, read=name)
        self.named[name] = path
        return path

    def trust_program(self, seam: str, path: Path) -> None:
        """Ask whether a program that a study names may be executed. Raises StudyError if not."""
        self._trust(PluginFile(seam, path.resolve(), path.read_bytes()))

    def has_values(self, kind: str, name: str) -> bool:
        """Whether a file of this name may exist: a shipped one, or any path."""
        return is_path(name) or name in shipped_values(kind)

    def values_file(self, kind: str, name: str, key: str) -> dict[str, Any]:
        """The content of a named value's file, read once; `key` names it in the study. Raises StudyError."""
        if (kind, name) not in self._values:
            path = self.file(name, f"{kind} file", key) if is_path(name) else _values_folder(kind) / f"{name}.toml"
            self._values[kind, name] = parsed(text_of(path, f"{kind} file"), str(path))
        return self._values[kind, name]

    def _python_file(self, seam: str, name: str) -> ModuleType:
        """The plug-in of a Python file, which is read, and asked about, once. Raises StudyError."""
        path = self._places[0] / name
        if not name.endswith(PYTHON_FILE) or not _is_file(path):
            raise StudyError(f"{seam} plug-in not found at {path}", self._where(name), key=f"{seam}.name", read=name)
        self.named[name] = path = path.resolve()
        if (seam, path) not in self._code:
            try:
                self._code[seam, path] = _checked(seam, name, _executed(_read(seam, path), self._trust))
            except StudyError as error:
                self._code[seam, path] = error
        plug_in = self._code[seam, path]
        if isinstance(plug_in, StudyError):
            raise plug_in
        return plug_in

    def _where(self, name: str) -> str:
        """Hint for a plug-in that is not where the study says."""
        if name.endswith(PYTHON_FILE) and _is_file(Path(name)):
            there = os.path.relpath(Path(name).resolve(), self._places[0].resolve())
            return f"paths of plug-ins are relative to the study; that in the working directory is {there} from there"
        return "give the path of a Python file, relative to the study"

    def _workload_file(self, name: str) -> ModuleType:
        """The plug-in of a workload file. Raises StudyError, also for errors in the file."""
        path = self.file(name, "workload file", "workload.name")
        if path not in self._files:
            from steelyard.workload import of_file

            self._files[path] = of_file(path)
        return self._files[path]


@functools.cache
def shipped_values(kind: str) -> tuple[str, ...]:
    """Names of the shipped files of a kind of named values, such as profile."""
    return tuple(sorted(path.stem for path in _values_folder(kind).glob("*.toml")))


def _values_folder(kind: str) -> Path:
    return Path(__file__).parents[1] / kind


def _is_file(path: Path) -> bool:
    """Whether there is such a file; False also for names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def find(seam: str, name: str) -> ModuleType:
    """The module of a plug-in outside a study: installed, or a file whose path the user typed, which is trusted and
    relative to the working directory. Raises StudyError."""
    return Plugins(trust=any_file).find(seam, name)


def how_to_add(seam: str) -> str:
    """Hint naming the guide to plug-ins of a seam."""
    return f"to add one: {HOWTO[seam]}"


def _named(seam: str, name: str) -> ModuleType:
    if entries := tuple(_installed(seam, tuple(sys.path)).select(name=name)):
        return _checked(seam, name, entries[0].load())
    if name in shipped_values(seam):
        return _preset(seam, name)
    known = names(seam)
    if name in known:
        return _checked(seam, name, importlib.import_module(f"steelyard.{seam}.{name.replace('-', '_')}"))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise StudyError(
        f"unknown {seam} {name!r}",
        f"{hint}allowed: {', '.join(known)}; {how_to_add(seam)}",
        key=f"{seam}.name",
        read=name,
        allowed=known,
    )


@functools.cache
def _preset(seam: str, name: str) -> ModuleType:
    """The plug-in of a shipped file: the one that it names, with its defaults and under its own name."""
    path = _values_folder(seam) / f"{name}.toml"
    file = parsed(text_of(path, f"{seam} file"), str(path))
    base = _named(seam, file["plug_in"])
    module = ModuleType(f"steelyard.{seam}.{name}", file["about"])
    settings = with_defaults(base.Settings, file["about"], **file["defaults"])
    files = {"FILES": base.FILES} if hasattr(base, "FILES") else {}
    module.__dict__.update(Settings=settings, create=functools.partial(base.create, name=name), **files)
    return module


def with_defaults(settings: type[Model], doc: str | None, **defaults: float | str) -> type[Model]:
    """Settings with other defaults, for a plug-in that is another one under its own name."""
    fields: dict[str, Any] = {}
    for name, default in defaults.items():
        field = copy.copy(settings.model_fields[name])
        field.default = default
        fields[name] = (field.annotation, field)
    model: type[Model] = create_model("Settings", __base__=settings, __doc__=doc, **fields)
    return model


def _checked(seam: str, name: str, module: object) -> ModuleType:
    """The plug-in, if it is a module with the definitions that the seam requires."""
    wanted = ("create", "Settings") if seam in WITH_SETTINGS else ("create",)
    lacking = [item for item in wanted if not hasattr(module, item)]
    if isinstance(module, ModuleType) and not lacking:
        return module
    what = f"it does not define {' and '.join(lacking)}" if isinstance(module, ModuleType) else "it is not a module"
    raise StudyError(
        f"{name!r} is not a plug-in of kind {seam}: {what}",
        f"see steelyard/{seam}/base.py",
        key=f"{seam}.name",
        read=name,
    )


def _read(seam: str, path: Path) -> PluginFile:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}", key=f"{seam}.name", read=str(path)) from error
    if len(content) > MOST_BYTES:
        raise StudyError(f"{path} has more than {MOST_BYTES:,} bytes", key=f"{seam}.name", read=str(path))
    return PluginFile(seam, path, content)


def _executed(file: PluginFile, trust: Trust) -> ModuleType:
    """The module of a file: executed from the bytes that were judged, not from the disk, where others may be by now. A
    module that this process has executed already is not executed again."""
    at = hashlib.sha256(str(file.path).encode()).hexdigest()
    name = f"steelyard_{file.seam}_{file.path.stem}_{at[:16]}_{file.sha256}"
    if name in sys.modules:
        return sys.modules[name]
    trust(file)
    spec = importlib.util.spec_from_file_location(name, file.path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # pydantic and dataclasses look up a class's module there to understand its annotations
    sys.modules[name] = module
    try:
        exec(compile(file.content, str(file.path), "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, Exception) and not isinstance(error, StudyError):
            what = f"{file.path} fails when it is executed: {type(error).__name__}: {error}"
            raise StudyError(what, key=f"{file.seam}.name", read=str(file.path)) from error
        raise
    return module
