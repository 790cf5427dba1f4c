"""Inventories: what each line means, which machine is which node, and where every problem is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steelyard.model.errors import StudyError
from steelyard.site.ssh import inventory as ssh_inventory
from steelyard.site.ssh.inventory import Inventory, Machine, of_ansible, of_toml, places, read

SHELF = """\
user = "pi"
hardware = "Raspberry Pi 4, 4 GB"
folder = "/mnt/ssd/steelyard"

[[machine]]
name = "pi1"
address = "10.0.0.11"
role = "database"

[[machine]]
name = "pi2"
connect = "second"
address = "fd00::12"
port = 2222
role = "database"

[[machine]]
name = "desk"
user = "anna"
hardware = ""
folder = "~/steelyard"
role = "load"
"""

ANSIBLE = """\
# the shelf
gateway ansible_host=10.0.0.1   ; not a database

[database]
pi[1:3] ansible_user=pi steelyard_hardware="Raspberry Pi 4, 4 GB #2"
pi9.local:2222

[load]
desk ansible_host=10.0.0.20 ansible_port=2200 ansible_user=anna # under the desk

[cluster:children]
database
load

[cluster:vars]
ansible_user=ops
steelyard_folder=/mnt/ssd/steelyard
http_port=80

[all:vars]
ansible_python_interpreter=/usr/bin/python3
ansible_port = 22
"""


def test_toml() -> None:
    first, second, third = of_toml(SHELF, "shelf.toml").machines
    assert (first.destination, first.address, first.user, first.port) == ("10.0.0.11", "10.0.0.11", "pi", None)
    assert (second.destination, second.address, second.port) == ("second", "fd00::12", 2222)
    assert (third.destination, third.user, third.hardware, third.folder) == ("desk", "anna", "", "~/steelyard")
    assert [machine.role for machine in (first, second, third)] == ["database", "database", "load"]
    assert second.hardware == "Raspberry Pi 4, 4 GB"


def test_ansible() -> None:
    machines = {machine.name: machine for machine in of_ansible(ANSIBLE, "hosts").machines}
    assert list(machines) == ["gateway", "pi1", "pi2", "pi3", "pi9.local", "desk"]
    assert machines["gateway"].role == ""
    assert (machines["gateway"].destination, machines["gateway"].port) == ("10.0.0.1", 22)
    assert (machines["pi2"].user, machines["pi2"].hardware) == ("pi", "Raspberry Pi 4, 4 GB #2")
    assert (machines["pi9.local"].user, machines["pi9.local"].port) == ("ops", 2222)
    assert (machines["desk"].user, machines["desk"].port, machines["desk"].role) == ("anna", 2200, "load")
    assert {machine.folder for machine in machines.values()} == {"~/.cache/steelyard", "/mnt/ssd/steelyard"}


def test_the_ending_says_which_kind_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "shelf.toml").write_text(SHELF)
    (tmp_path / "hosts.ini").write_text(ANSIBLE)
    assert len(read(tmp_path / "shelf.toml").machines) == 3
    assert len(read(tmp_path / "hosts.ini").machines) == 6
    with pytest.raises(StudyError, match=r"nowhere\.toml: cannot be read"):
        read(tmp_path / "nowhere.toml")


def test_a_configuration_of_ssh_is_beside_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    (tmp_path / "shelf.toml").write_text("ssh_config = 'config'\n[[machine]]\nname = 'a'\n")
    assert read(tmp_path / "shelf.toml").ssh_config == str(tmp_path / "config")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[[machine]]\nname = 'a'\nprot = 22\n", 3, r"machine\.0\.prot = 22: no such key; did you mean '.*port'"),
        ("[[machine]]\nname = 'a'\nport = 70000\n", 3, r"machine\.0\.port = 70000: must be at most 65535"),
        ("[[machine]]\nname = '-oProxyCommand=x'\n", 2, r"machine\.0\.name"),
        ("[[machine]]\nname = 'a'\nconnect = '-oProxyCommand=x'\n", 3, "must be a name or an address"),
        ("[[machine]]\nname = 'a'\nuser = '-lroot'\n", 3, "must be a user's name"),
        ("[[machine]]\nname = 'a'\naddress = 'pi1.local'\n", 3, "must be an IP address"),
        ("[[machine]]\nname = 'a'\nrole = 'server'\n", 3, "not allowed"),
        ("[[machine]]\nname = 'a'\nfolder = '/'\n", 3, "must be an absolute path"),
        ("[[machine]]\nname = 'a'\nfolder = '~'\n", 3, "must be an absolute path"),
        ("[[machine]]\nname = 'a'\nfolder = '/srv/../etc'\n", 3, "must not contain"),
        ("folder = 'steelyard'\n[[machine]]\nname = 'a'\n", 1, "folder = 'steelyard': must be an absolute path"),
        ("[[machine]]\naddress = '10.0.0.1'\n", 1, r"machine\.0\.name: must be given"),
        ("[[machine]]\nname = 'a'\n[[machine]]\nname = 'a'\n", 4, "is also a's"),
        (
            "[[machine]]\nname = 'a'\naddress = '10.0.0.1'\n[[machine]]\nname = 'b'\naddress = '10.0.0.1'\n", 6,
            "is also a's",
        ),
        ("machine = []\n", 1, "machine"),
        ("user = 'pi'\n", 0, "machine: must be given"),
        ("machin = 1\n[[machine]]\nname = 'a'\n", 1, "no such key"),
        ("[[machine]\n", 1, "not TOML"),
        ("\nssh_config = 'nowhere'\n[[machine]]\nname = 'a'\n", 2, "ssh_config = 'nowhere': .*does not exist"),
    ],
)  # fmt: skip
def test_problems_of_toml(text: str, line: int, message: str) -> None:
    with pytest.raises(StudyError, match=message) as refused:
        of_toml(text, "shelf.toml")
    assert refused.value.line == line
    assert refused.value.message.startswith(f"shelf.toml:{line}: " if line else "shelf.toml: ")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("pi1 ansible_port=ssh\n", 1, "port"),
        ("\npi1 10.0.0.1\n", 2, "the name of a machine is followed by variables"),
        ("pi1 ansible_ssh_private_key_file=~/key\n", 1, "Steelyard does not read it"),
        ("pi1 ansible_connection=local\n", 1, "only ssh"),
        ("pi1 steelyard_adress=10.0.0.1\n", 1, "no such variable"),
        ("pi1 steelyard_address=pi1\n", 1, "must be an IP address"),
        ("pi[1:x]\n", 1, "a range is"),
        ("pi[6:1]\n", 1, "upwards"),
        ("[database:hosts]\npi1\n", 1, "a section is"),
        ("pi1 ansible_host='x\n", 1, "No closing quotation"),
        ("pi1 ansible_host=10.0.0.1\npi2 ansible_host=10.0.0.1\n", 2, "is also pi1's"),
        ("# nobody\n", 0, "no machine"),
    ],
)
def test_problems_of_ansible(text: str, line: int, message: str) -> None:
    with pytest.raises(StudyError, match=message) as refused:
        of_ansible(text, "hosts")
    assert refused.value.line == line


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(StudyError) as refused:
        of_toml("[[machine]]\nname = 'a'\nport = 0\n[[machine]]\nname = 'b'\naddress = 'x'\n", "shelf.toml")
    assert [error.line for error in refused.value.errors] == [3, 6]


ROLES = st.lists(st.sampled_from(["", "database", "load"]), min_size=1, max_size=8)


def shelf_of(roles: list[str]) -> Inventory:
    return Inventory(
        machines=tuple(
            Machine.model_validate({"name": f"pi{number}", "role": role}) for number, role in enumerate(roles)
        )
    )


@given(ROLES, st.integers(1, 8), st.integers(0, 4))
def test_places(roles: list[str], databases: int, loads: int) -> None:
    """Every node has a machine of its own that may be what it is; or the request is refused, if nobody could."""
    inventory = shelf_of(roles)
    need = max(0, databases - roles.count("database")) + max(0, loads - roles.count("load"))
    if need > roles.count(""):
        with pytest.raises(ValueError, match="were requested, but of"):
            places(inventory, databases, loads)
        return
    chosen = places(inventory, databases, loads)
    assert [place.name for place in chosen] == [
        *(f"n{number + 1}" for number in range(databases)), *(f"l{number + 1}" for number in range(loads))
    ]  # fmt: skip
    assert len({place.machine.name for place in chosen}) == databases + loads
    assert all(place.machine.role in ("", place.role) for place in chosen)


@given(ROLES, st.integers(1, 8), st.integers(0, 4))
def test_a_node_is_on_the_same_machine_in_every_lease(roles: list[str], databases: int, loads: int) -> None:
    inventory = shelf_of(roles)
    try:
        larger = {place.name: place.machine for place in places(inventory, databases, loads)}
    except ValueError:
        return
    for fewer in range(1, databases):
        assert all(larger[place.name] == place.machine for place in places(inventory, fewer, loads))


@example("\ufeff")
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for reader in (of_toml, of_ansible):
        message = "x"
        try:
            assert reader(text, "x").machines
        except StudyError as error:
            message = error.message
        assert message.startswith("x")


@given(
    st.lists(
        st.tuples(st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True), st.integers(1, 65535)),
        min_size=1, max_size=6, unique_by=lambda pair: pair[0],
    )
)  # fmt: skip
def test_both_kinds_say_the_same(machines: list[tuple[str, int]]) -> None:
    toml = "".join(f"[[machine]]\nname = '{name}'\nport = {port}\nrole = 'database'\n" for name, port in machines)
    ansible = "[database]\n" + "".join(f"{name} ansible_port={port}\n" for name, port in machines)
    assert of_toml(toml, "x") == of_ansible(ansible, "x")


def test_most() -> None:
    inventory = shelf_of(["", "database", "load"])
    assert [ssh_inventory.most(inventory, role) for role in ("database", "load")] == [2, 2]
