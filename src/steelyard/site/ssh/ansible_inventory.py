"""Host lines of an Ansible inventory (ini): machines, their groups and variables, as far as site `ssh` reads them.

Read are `ansible_host`, `ansible_user`, `ansible_port`, the groups `database` and `load`, and `steelyard_address`,
`steelyard_hardware`, `steelyard_folder`. Variables of other programs are skipped; those that would change how ssh
connects are refused, as ssh_config is the place for them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from steelyard.model.errors import StudyError
from steelyard.model.secret import literals_in
from steelyard.tomlfile.parse import IN_PLAIN_SIGHT
from steelyard.tomlfile.problems import placed

FIELDS = {
    "ansible_host": "connect",
    "ansible_ssh_host": "connect",
    "ansible_user": "user",
    "ansible_ssh_user": "user",
    "ansible_port": "port",
    "ansible_ssh_port": "port",
    "steelyard_address": "address",
    "steelyard_hardware": "hardware",
    "steelyard_folder": "folder",
    "steelyard_role": "role",
}
"""Variable to the field of a machine."""
OF_SSH_CONFIG = (
    "ansible_ssh_private_key_file", "ansible_private_key_file", "ansible_ssh_common_args", "ansible_ssh_extra_args",
    "ansible_password", "ansible_ssh_pass", "ansible_ssh_executable",
)  # fmt: skip
"""Variables that change how ssh connects."""
ROLES = ("database", "load")
MOST_OF_A_RANGE = 1000
HEADER = re.compile(r"^\[([^\[\]]+)\]\s*(?:[#;].*)?$")
RANGE = re.compile(r"\[(\w+):(\w+)(?::(\d+))?\]")
WITH_PORT = re.compile(r"^(?P<name>[^:\s]+|\[[^\]]+\]):(?P<port>\d+)$")
LOOKED_UP = re.compile(r"\"?\{\{.*?\}\}\"?")
"""A value that Ansible computes."""
COMMENT = re.compile(r"\s[#;].*$")


@dataclass
class _Group:
    """Entries of one group in a file."""

    names: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    variables: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Name to value and line."""


@dataclass
class _Groups:
    """Groups by name, and the variables on lines of machines."""

    groups: dict[str, _Group] = field(default_factory=lambda: {"all": _Group()})
    own: dict[str, dict[str, tuple[str, int]]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """First line of each machine."""


def entries(text: str, path: str) -> tuple[list[tuple[dict[str, object], str]], dict[str, int]]:
    """Fields of each machine with a key for messages, and the line of each key. Raises StudyError with the line."""
    _refuse_secrets(text, path)
    content = _Groups()
    section, kind = "ungrouped", ""
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.strip()
        if not words or words[0] in "#;":
            continue
        if header := HEADER.match(words):
            section, _, kind = header[1].strip().partition(":")
            content.groups.setdefault(section, _Group())
            if kind not in ("", "vars", "children"):
                raise _refused(path, number, f"[{header[1]}]: a section is [group], [group:vars] or [group:children]")
        elif kind == "children":
            content.groups[section].children.append(COMMENT.sub("", words))
        elif kind == "vars":
            name, _, value = COMMENT.sub("", words).partition("=")
            variable = _variable(name.strip(), _unquoted(value.strip()), path, number)
            content.groups[section].variables |= variable
        else:
            _read_machines(content, section, words, path, number)
    return _fields(content)


def _refuse_secrets(text: str, path: str) -> None:
    """Refuse secrets in plain text, before any other message could repeat one. What Ansible looks up is none."""
    for number, line in enumerate(text.split("\n"), start=1):
        name = next(literals_in(LOOKED_UP.sub("...", line)), None)
        if name is not None and name not in OF_SSH_CONFIG:
            raise _refused(path, number, f"{name or 'a secret'}: {IN_PLAIN_SIGHT}")


def _read_machines(content: _Groups, section: str, words: str, path: str, number: int) -> None:
    """One line of machines: a name, or a range of names, and variables."""
    lexer = shlex.shlex(words, posix=True)
    lexer.whitespace_split, lexer.commenters = True, "#;"
    try:
        pattern, *pairs = lexer
    except ValueError as error:
        raise _refused(path, number, f"{words}: {error}") from error
    variables: dict[str, tuple[str, int]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise _refused(path, number, f"{pair!r}: the name of a machine is followed by variables, name=value")
        variables |= _variable(name, value, path, number)
    if with_port := WITH_PORT.match(pattern):
        pattern = with_port["name"]
        variables.setdefault("port", (with_port["port"], number))
    group = content.groups.setdefault(section, _Group())
    for name in _expanded(pattern, path, number):
        content.lines.setdefault(name, number)
        content.own[name] = content.own.get(name, {}) | variables
        if name not in group.names:
            group.names.append(name)


def _variable(name: str, value: str, path: str, number: int) -> dict[str, tuple[str, int]]:
    """The field that a variable sets; nothing for one of other programs. Raises StudyError."""
    if name in OF_SSH_CONFIG:
        raise _refused(path, number, f"{name}: Steelyard does not read it", "set it in ssh_config for this machine")
    if name == "ansible_connection" and value not in ("ssh", "smart"):
        raise _refused(path, number, f"{name} = {value!r}: only ssh", "site local lends nodes of this machine")
    if name.startswith("steelyard_") and name not in FIELDS:
        known = ", ".join(known for known in FIELDS if known.startswith("steelyard_"))
        raise _refused(path, number, f"{name}: no such variable", f"allowed: {known}")
    return {FIELDS[name]: (value, number)} if name in FIELDS else {}


def _expanded(pattern: str, path: str, number: int) -> Iterator[str]:
    """Names of a pattern such as `pi[1:6]`, `pi[01:12:2]` or `pi[a:f]`."""
    match = RANGE.search(pattern)
    if match is None:
        yield pattern
        return
    first, last, step = match[1], match[2], int(match[3] or 1)
    if first.isdigit() and last.isdigit():
        items = [str(item).zfill(len(first)) for item in range(int(first), int(last) + 1, step or 1)]
    elif len(first) == len(last) == 1 and first.isalpha() and last.isalpha():
        items = [chr(item) for item in range(ord(first), ord(last) + 1, step or 1)]
    else:
        raise _refused(path, number, f"{pattern}: a range is [1:6], [01:12] or [a:f]")
    if not items or step < 1 or len(items) > MOST_OF_A_RANGE:
        raise _refused(path, number, f"{pattern}: a range of 1 to {MOST_OF_A_RANGE} names, upwards")
    for item in items:
        yield from _expanded(pattern[: match.start()] + item + pattern[match.end() :], path, number)


def _fields(content: _Groups) -> tuple[list[tuple[dict[str, object], str]], dict[str, int]]:
    line_by_key: dict[str, int] = {}
    machines = []
    for name, line in content.lines.items():
        found_in = _groups_of(content, name)
        values: dict[str, tuple[str, int]] = {}
        for group in ["all", *(other for other in content.groups if other in found_in and other != "all")]:
            values |= content.groups[group].variables
        values |= content.own.get(name, {})
        roles = [role for role in ROLES if role in found_in]
        if len(roles) == 1:
            values.setdefault("role", (roles[0], line))
        fields: dict[str, object] = {"name": name, **{key: value for key, (value, _) in values.items()}}
        if str(fields.get("port", "")).isdigit():
            fields["port"] = int(str(fields["port"]))
        machines.append((fields, name))
        line_by_key |= {name: line} | {f"{name}.{key}": at for key, (_, at) in values.items()}
    return machines, line_by_key


def _groups_of(content: _Groups, name: str) -> set[str]:
    """Groups that a machine is in, directly or through groups of groups."""
    groups = {group for group, members in content.groups.items() if name in members.names}
    while True:
        above = {group for group, members in content.groups.items() if groups & set(members.children)}
        if above <= groups:
            return groups
        groups |= above


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _refused(path: str, line: int, what: str, hint: str = "") -> StudyError:
    return placed(StudyError(what, hint), path, line)
