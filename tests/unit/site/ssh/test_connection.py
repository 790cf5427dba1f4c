"""How ssh is called, and what its errors mean."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from steelyard.model.errors import SiteError
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.ssh.connection import Unreachable, connection, control_folder, of_node
from steelyard.site.ssh.inventory import Machine


def machine(**fields: object) -> Machine:
    return Machine.model_validate({"name": "pi1", **fields})


def test_host_keys_are_checked_and_nothing_is_asked() -> None:
    argv = connection(machine(user="pi", port=2222, address="fd00::11"), Path("/run/x%y"), "/cfg").argv
    assert argv[:7] == ("ssh", "-F", "/cfg", "-l", "pi", "-p", "2222")
    assert argv[-2:] == ("--", "fd00::11")
    assert {"StrictHostKeyChecking=yes", "BatchMode=yes", "ControlMaster=auto", "ControlPath=/run/x%%y"} <= set(argv)


def test_without_more_words_everything_is_ssh_config_s() -> None:
    argv = connection(machine(), Path("/run/x")).argv
    assert argv[1] == "-o"
    assert argv[-1] == "pi1"


CHANGED = """\
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
Please contact your system administrator.
Add correct host key in /home/a b/known to get rid of this message.
Offending ED25519 key in /home/a b/known:3
Host key for [10.77.0.12]:2222 has changed and you have requested strict checking.
Host key verification failed."""


def test_a_changed_host_key_is_forgotten_where_ssh_found_it() -> None:
    error = connection(machine(user="pi", port=2222), Path("/run/x"), "/x/ssh_config").unreachable(CHANGED)
    assert "`ssh-keygen -R '[10.77.0.12]:2222' -f '/home/a b/known'`" in error.hint
    assert "(`ssh -F /x/ssh_config -p 2222 pi@" in error.hint


@pytest.mark.parametrize(
    ("stderr", "meaning", "hint"),
    [
        (
            "No ED25519 host key is known for pi1.\nHost key verification failed.\n",
            "not known here",
            "ssh -p 22 pi@pi1",
        ),
        ("@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@\nHost key verification failed.", "has changed", "-R"),
        ("pi@pi1: Permission denied (publickey).", "refuses this user", "ssh-copy-id"),
        ("ssh: connect to host pi1 port 22: Connection timed out", "does not answer", "switched on"),
        ("ssh: Could not resolve hostname pi1: Name or service not known", "does not resolve", "connect"),
        ("ssh: connect to host pi1 port 22: Connection refused", "sshd does not answer", "systemctl"),
        ("kex_exchange_identification: banner line\nodd end\n", "odd end", "try `ssh"),
        ("", "the connection ended", "try `ssh"),
    ],
)
def test_errors_carry_a_hint(stderr: str, meaning: str, hint: str) -> None:
    error = connection(machine(user="pi", port=22), Path("/run/x")).unreachable(stderr)
    assert error.message.startswith("pi1 cannot be reached: ")
    assert meaning in error.message
    assert hint in error.hint


def test_an_address_is_the_inventory_s_or_that_of_the_name() -> None:
    assert asyncio.run(ssh_connection.address(machine(address="10.0.0.1"))) == "10.0.0.1"
    assert asyncio.run(ssh_connection.address(machine(connect="localhost"))) in ("127.0.0.1", "::1")


def test_an_alias_of_ssh_config_has_an_address(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host shelf\n  HostName 127.0.0.9\n")
    assert asyncio.run(ssh_connection.address(machine(connect="shelf"), str(config))) == "127.0.0.9"
    with pytest.raises(Unreachable, match=r"nowhere\.invalid has no address") as unknown:
        asyncio.run(ssh_connection.address(machine(connect="nowhere.invalid"), str(config)))
    assert "address" in unknown.value.hint


def test_control_sockets_are_of_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/dev/shm")
    folder = control_folder()
    assert folder == Path("/dev/shm/steelyard")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 90)))
    assert len(str(control_folder())) < ssh_connection.LONGEST_SOCKET
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(SiteError, match="not private to this user"):
        ssh_connection._private(tmp_path / "open")


def test_a_node_lent_in_another_session_has_its_socket_where_sockets_are_now() -> None:
    prefix = connection(machine(), Path("/run/user/1000/steelyard/0123abcd-n1")).argv
    assert of_node("n1", prefix).argv == prefix
    argv = of_node("n1", prefix, Path("/tmp/steelyard-1000")).argv
    assert "ControlPath=/tmp/steelyard-1000/0123abcd-n1" in argv
    assert not [word for word in argv if "/run/user" in word]


def test_without_ssh_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unreachable, match="ssh cannot be run") as missing:
        asyncio.run(connection(machine(), Path("/run/x")).shell("true"))
    assert "openssh-client" in missing.value.hint
