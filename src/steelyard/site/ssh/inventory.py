"""Inventory of site `ssh`: its machines, their roles, and how ssh reaches them.

A TOML file, or the host lines of an Ansible inventory (`_ansible_inventory`). Reading it has no side effects; every
problem names file and line.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError, field_validator

from steelyard.format import count
from steelyard.model.errors import StudyError
from steelyard.model.facts import Role
from steelyard.model.value import Value
from steelyard.tomlfile.parse import parsed, text_of
from steelyard.tomlfile.positions import key_lines, line_of
from steelyard.tomlfile.problems import from_validation, problem, raise_all
from steelyard.tomlfile.validated import validated

WHAT = "inventory"
DEFAULT_FOLDER = "~/.cache/steelyard"
MOST_MACHINES = 1000
LETTERS: dict[Role, str] = {"database": "n", "load": "l"}
ENDING = ".toml"


class Common(Value):
    """Settings given once for all machines, or for each."""

    user: str = ""
    """User to log in as; otherwise from ssh_config."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """Port of sshd; otherwise from ssh_config."""
    hardware: str = Field(default="", max_length=100)
    """Label of the hardware, such as `Raspberry Pi 4, 4 GB`; it is among the facts of the node."""
    folder: str = DEFAULT_FOLDER
    """Steelyard's own folder on the machine; nothing is ever created or removed outside it. `~/` is the user's
    home there."""
    role: Literal["", "database", "load"] = ""
    """Role of the machine; either, if empty."""

    @field_validator("folder")
    @classmethod
    def _own_folder(cls, text: str) -> str:
        path = text.rstrip("/")
        if not path.startswith(("/", "~/")) or len(path) < 3 or not path.isprintable():
            raise ValueError("must be an absolute path or begin with ~/, and be a folder used only by Steelyard")
        if any(part in (".", "..") for part in path.split("/")):
            raise ValueError("must not contain . or ..")
        return path

    @field_validator("user")
    @classmethod
    def _user_name(cls, text: str) -> str:
        if text.startswith("-") or any(not letter.isprintable() or letter.isspace() for letter in text):
            raise ValueError("must be a user's name")
        return text


class Machine(Common):
    """One machine: it lends one node."""

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$", max_length=255)
    """Name of the machine in messages and facts."""
    connect: str = ""
    """Name or address for ssh, which may be an alias of ssh_config; otherwise `address`, otherwise `name`."""
    address: str = ""
    """IP address under which the other nodes reach it; otherwise that of the name that ssh connects to."""

    @field_validator("connect")
    @classmethod
    def _destination(cls, text: str) -> str:
        if text.startswith("-") or any(not letter.isprintable() or letter.isspace() for letter in text):
            raise ValueError("must be a name or an address")
        return text

    @field_validator("address")
    @classmethod
    def _ip_address(cls, text: str) -> str:
        if not text:
            return text
        try:
            return str(ipaddress.ip_address(text.removeprefix("[").removesuffix("]")))
        except ValueError:
            raise ValueError("must be an IP address, such as 10.0.0.11 or fd00::11") from None

    @property
    def destination(self) -> str:
        """Destination for ssh."""
        return self.connect or self.address or self.name


class Inventory(Value):
    """The machines of a file, in its order."""

    machines: tuple[Machine, ...]
    ssh_config: str = ""
    """Configuration of ssh in the place of the user's own, as an absolute path; empty for the user's own."""


class Place(NamedTuple):
    """A machine as a node: `n1` is the first database, `l1` the first load node."""

    role: Role
    name: str
    machine: Machine


class _File(Common):
    """The content of a TOML inventory."""

    machine: tuple[dict[str, object], ...] = Field(min_length=1, max_length=MOST_MACHINES)
    ssh_config: str = ""
    """Configuration of ssh to use instead of the user's own; relative to the inventory."""


def read(path: Path) -> Inventory:
    """The inventory in a file: TOML by its suffix, otherwise Ansible's. Raises StudyError with file and line."""
    text = text_of(path, WHAT)
    return of_toml(text, str(path)) if path.suffix == ENDING else of_ansible(text, str(path))


def of_toml(text: str, path: str) -> Inventory:
    """The inventory in a TOML text; `path` is for messages. Raises StudyError."""
    tree = parsed(text, path)
    lines = key_lines(text)
    try:
        file = validated(_File, tree)
    except ValidationError as error:
        raise_all(from_validation(error, "", _File), path, lambda key: line_of(lines, key))
        raise
    common = file.model_dump(include=set(Common.model_fields), exclude_unset=True)
    entries = [({**common, **entry}, f"machine.{index}") for index, entry in enumerate(file.machine)]
    inventory = checked(entries, path, lambda key: line_of(lines, key))
    if not file.ssh_config:
        return inventory
    config = (Path(path).parent / Path(file.ssh_config).expanduser()).absolute()
    if not config.is_file():
        lost = problem("ssh_config", file.ssh_config, f"{config} does not exist")
        raise_all([lost], path, lambda key: line_of(lines, key))
    return inventory.model_copy(update={"ssh_config": str(config)})


def of_ansible(text: str, path: str) -> Inventory:
    """The inventory in the text of an Ansible inventory of the ini kind. Raises StudyError."""
    from steelyard.site.ssh import ansible_inventory

    entries, line_by_key = ansible_inventory.entries(text, path)
    if not entries:
        raise StudyError(
            f"{path}: no machines", "write a line for each, such as: pi1 ansible_host=10.0.0.11", path=path
        )
    return checked(entries, path, lambda key: line_by_key.get(key, line_by_key.get(key.rpartition(".")[0], 0)))


def checked(entries: Sequence[tuple[dict[str, object], str]], path: str, find_line: Callable[[str], int]) -> Inventory:
    """Machines from their fields; each has the key of its entry. Raises StudyError for all problems at once."""
    errors: list[StudyError] = []
    machines: dict[str, Machine] = {}
    for fields, key in entries:
        try:
            machines[key] = Machine.model_validate(fields)
        except ValidationError as error:
            errors += from_validation(error, key, Machine)
    errors += _twice(machines)
    raise_all(errors, path, find_line)
    return Inventory(machines=tuple(machines.values()))


def _twice(machines: dict[str, Machine]) -> Iterator[StudyError]:
    """A machine twice: by its name, by its address, or by the way to it."""
    ways: dict[str, Callable[[Machine], str]] = {
        "name": lambda machine: machine.name,
        "address": lambda machine: machine.address,
        "connect": way_to,
    }
    known: dict[str, dict[str, str]] = {field: {} for field in ways}
    for key, machine in machines.items():
        values = {field: way(machine) for field, way in ways.items()}
        same = next((field for field, value in values.items() if value and value in known[field]), None)
        if same is not None:
            other = known[same][values[same]]
            yield problem(f"{key}.{same}", values[same], f"is also {other}'s: one machine lends one node", near=False)
        for field, value in values.items():
            known[field].setdefault(value, machine.name)


def way_to(machine: Machine) -> str:
    """Address of a machine, by which it is recognised in another inventory."""
    return f"{machine.user}@{machine.destination}:{machine.port}"


def most(inventory: Inventory, role: Role) -> int:
    """Machines that may have a role."""
    return sum(machine.role in ("", role) for machine in inventory.machines)


def places(inventory: Inventory, databases: int, loads: int) -> tuple[Place, ...]:
    """Machines for that many nodes. A node's machine depends on its name alone: databases take machines without a role
    from the front, load nodes from the back. Raises ValueError with the reason if there are too few."""
    free = [machine for machine in inventory.machines if not machine.role]
    wanted: dict[Role, int] = {"database": databases, "load": loads}
    chosen: list[Place] = []
    short = 0
    for role, number in wanted.items():
        own = [machine for machine in inventory.machines if machine.role == role]
        spare = free if role == "database" else list(reversed(free))
        line = [*own, *spare][:number]
        short += max(0, number - len(own))
        chosen += [Place(role, f"{LETTERS[role]}{index + 1}", machine) for index, machine in enumerate(line)]
    if len(chosen) < databases + loads or short > len(free):
        raise ValueError(
            f"{count(databases, 'database node')} and {count(loads, 'load node')} were requested, but of "
            f"{count(len(inventory.machines), 'machine')} in the inventory {most(inventory, 'database')} may be "
            f"databases and {most(inventory, 'load')} may drive load"
        )
    return tuple(chosen)
