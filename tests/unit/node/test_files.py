"""Files on a node: here, and on a node that only commands reach; both must do the same."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from steelyard.model.errors import NodeError, SteelyardError
from steelyard.node import files
from steelyard.node.base import Node

pytestmark = pytest.mark.agent


@pytest.fixture(params=["same", "through"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    """The same machine, with and without the short cut through its own file system."""
    here = Node("n1", "database", "127.0.0.1", (), tmp_path / "node", cache=tmp_path / "cache")
    return here if request.param == "same" else dataclasses.replace(here, files="through", programs="own")


def test_what_is_put_can_be_read_in_parts(node: Node) -> None:
    path = node.folder / "new" / "file"
    assert asyncio.run(files.read(node, path)) == b""
    asyncio.run(files.put(node, path, b"0123456789", mode=0o600))
    assert asyncio.run(files.read(node, path)) == b"0123456789"
    assert asyncio.run(files.read(node, path, from_byte=4)) == b"456789"
    assert asyncio.run(files.read(node, path, from_byte=4, most=2)) == b"89"
    assert asyncio.run(files.read(node, path, from_byte=40)) == b""
    assert path.stat().st_mode & 0o777 == 0o600
    asyncio.run(files.put(node, path, b""))
    assert asyncio.run(files.read(node, path)) == b""


def test_sizes_are_of_every_file_below(node: Node) -> None:
    assert asyncio.run(files.sizes(node, node.folder / "none")) == {}
    asyncio.run(files.make_folders(node, node.folder / "a" / "b", node.folder / "empty"))
    for name, content in (("z", b"1"), ("a/b/c", b"123"), ("a/\u00fc", b"")):
        asyncio.run(files.put(node, node.folder / name, content))
    (node.folder / "link").symlink_to("z")
    assert asyncio.run(files.sizes(node, node.folder)) == {"a/b/c": 3, "a/\u00fc": 0, "z": 1}


def test_only_what_is_below_is_removed(node: Node, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    asyncio.run(files.put(node, node.folder / "tree" / "file", b"x"))
    (node.folder / "tree" / "link").symlink_to(outside)
    asyncio.run(files.remove(node, node.folder / "tree", node.folder / "missing", below=node.folder))
    assert not (node.folder / "tree").exists()
    assert (outside / "precious").exists()
    for path in (outside, node.folder, node.folder / ".." / "outside"):
        with pytest.raises(NodeError, match="not below"):
            asyncio.run(files.remove(node, path, below=node.folder))
    assert (outside / "precious").exists()


def test_a_clone_shares_the_bytes(node: Node) -> None:
    for name in ("one", "deep/two"):
        asyncio.run(files.put(node, node.folder / "source" / name, b"bytes"))
    asyncio.run(files.clone(node, node.folder / "source", node.folder / "copies" / "target"))
    target = node.folder / "copies" / "target"
    assert asyncio.run(files.sizes(node, target)) == {"deep/two": 5, "one": 5}
    assert (target / "one").stat().st_ino == (node.folder / "source" / "one").stat().st_ino
    with pytest.raises((OSError, SteelyardError)):
        asyncio.run(files.clone(node, node.folder / "none", node.folder / "nothing"))


def test_copies_where_links_cannot_be(tmp_path: Path) -> None:
    """Links do not lead from one file system to another."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second file system")
    (tmp_path / "a").write_text("bytes")
    with TemporaryDirectory(dir=memory) as folder:
        files.link_or_copy(tmp_path / "a", Path(folder, "b"))
        assert Path(folder, "b").read_text() == "bytes"


def test_texts_leave_out_what_cannot_be_read(node: Node) -> None:
    path = node.folder / "text"
    asyncio.run(files.put(node, path, "gr\u00fc\u00df dich\n".encode()))
    assert asyncio.run(files.texts(node, path, node.folder / "none")) == {path: "gr\u00fc\u00df dich\n"}
    boot = Path("/proc/sys/kernel/random/boot_id")
    assert asyncio.run(files.texts(node, boot)) == {boot: boot.read_text()}


@pytest.mark.parametrize("tree", [True, False])
def test_a_program_is_brought_once(node: Node, tmp_path: Path, tree: bool) -> None:
    what = tmp_path / "here" / "lib"
    if tree:
        (what / "deep").mkdir(parents=True)
        (what / "deep" / "a.jar").write_bytes(b"jar")
        (what / "run").write_bytes(b"#!")
        (what / "run").chmod(0o755)
        (what / "link").symlink_to("run")
    else:
        what.parent.mkdir()
        what.write_bytes(b"jar")
    node = dataclasses.replace(node, programs="own")
    place = asyncio.run(files.bring(node, what, "key-1"))
    assert place == tmp_path / "cache" / "brought" / "key-1" / "lib"
    if tree:
        assert (place / "deep" / "a.jar").read_bytes() == b"jar"
        assert os.access(place / "run", os.X_OK)
        assert (place / "link").read_bytes() == b"#!"
        file = place / "deep" / "a.jar"
    else:
        file = place
    before = file.stat()
    assert asyncio.run(files.bring(node, what, "key-1")) == place
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert asyncio.run(files.bring(node, what)).parent.name == files.checksum(what)[: files.KEY_CHARS]
    # Not written to, as it may be a link to what it was brought from.
    file.unlink()
    file.write_bytes(b"not")
    with pytest.raises(NodeError, match=r"n1: .*/key-1/lib differs from the file that was copied") as caught:
        asyncio.run(files.bring(node, what, "key-1"))
    assert f"remove {place.parent} on the node" in caught.value.hint


def test_what_is_there_already_is_not_brought(tmp_path: Path) -> None:
    here = Node("n1", "database", "127.0.0.1", (), tmp_path)
    assert asyncio.run(files.bring(here, tmp_path / "anything")) == tmp_path / "anything"
