"""What a node of Cassandra is started with: settings, tokens, yaml, command line, jars, Java."""

from __future__ import annotations

import asyncio
import io
import json
import re
import tarfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from steelyard.model.data_model import Schema
from steelyard.model.errors import SystemFault
from steelyard.model.load import Load
from steelyard.node import artifacts
from steelyard.node.base import Node
from steelyard.system.cassandra import (
    Cassandra,
    Settings,
    _archive,
    _beans,
    _build,
    _config,
    _jars,
    _java,
    _lines,
    _snapshots,
)
from steelyard.system.cassandra._system import Installed

JAVA = _java.Java(Path("/opt/java/bin/java"), "17.0.15")


def nodes(folder: Path, count: int) -> list[Node]:
    return [Node(f"n{i + 1}", "database", f"10.0.0.{i + 1}", (), folder / f"n{i + 1}") for i in range(count)]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"yaml": {"concurent_reads": 8}}, "did you mean 'concurrent_reads'"),
        ({"yaml": {"num_tokens": 8}}, "use the setting num_tokens"),
        ({"yaml": {"seed_provider": []}}, "set by the laboratory"),
        ({"yaml": {"commitlog_total_space": "1GiB"}}, "use the setting commitlog_total_space_mb"),
        ({"jvm_options": ["-Xmx1g"]}, "heap_mb"),
        ({"jvm_options": ["no option"]}, "pattern"),
        ({"jvm_options": ["-Dcom.sun.management.jmxremote.authenticate=false"]}, "is reserved: the laboratory opens"),
        ({"jvm_options": ["-Dcom.sun.management.config.file=/tmp/own"]}, "management beans, with a password"),
        ({"jvm_options": ["-Dcassandra.jmx.remote.port=7200"]}, "management beans, with a password"),
        ({"jvm_options": ["-Djava.rmi.server.useCodebaseOnly=false"]}, "management beans, with a password"),
        ({"jvm_options": ["-agentlib:jdwp=transport=dt_socket,server=y,address=*:5005"]}, "a debugger's port"),
        ({"heap": 256}, "Extra inputs"),
        ({"version": "4.0.3"}, "pattern"),
        ({"version": "3.9", "yaml": {"commitlog_segment_size": "8MiB"}}, "'commitlog_segment_size_in_mb'"),
        ({"version": "3.9", "yaml": {"commitlog_total_space_in_mb": 64}}, "use the setting commitlog_total_space_mb"),
        ({"version": "3.9", "yaml": {"start_rpc": True}}, "set by the laboratory"),
        ({"source": "3.11.19", "compression": "zstd"}, "Cassandra 3.11 has no compression 'zstd': lz4, snappy"),
        ({"version": "4.1.9", "compaction": "unified"}, "has no compaction 'unified': size-tiered, leveled, time"),
        ({"compression": "lzo"}, "'lz4', 'snappy'"),
    ],
)
def test_wrong_settings_are_refused_with_what_is_right(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(told)):
        Settings.model_validate(wrong)


def test_known_keys_are_those_of_the_release() -> None:
    of_5 = {"memtable", "commitlog_segment_size", "trickle_fsync", "storage_compatibility_mode"}
    assert of_5 <= _lines.of("5.0.5").keys
    of_3 = {"commitlog_segment_size_in_mb", "trickle_fsync", "memtable_allocation_type", "start_rpc"}
    assert all(of_3 <= _lines.of(version).keys for version in ("3.11.19", "3.9", "3.0.8"))
    assert Settings(yaml={"trickle_fsync": True, "memtable": {"configurations": {}}}).yaml["trickle_fsync"] is True


@given(st.integers(1, 40), st.integers(1, 64))
def test_every_node_owns_exactly_its_share(count: int, per_node: int) -> None:
    owned = [_config.tokens(index, count, per_node) for index in range(count)]
    together = [token for mine in owned for token in mine]
    assert len(set(together)) == count * per_node
    assert all(-(2**63) < token < 2**63 for token in together)
    ring = sorted((token, node) for node, mine in enumerate(owned) for token in mine)
    assert [node for _, node in ring] == [*range(count)] * per_node
    gaps = [(after - before) % 2**64 or 2**64 for (before, _), (after, _) in pairwise([*ring, ring[0]])]
    assert max(gaps) - min(gaps) <= 1


def test_tokens_of_a_node_that_is_not_in_the_ring() -> None:
    with pytest.raises(ValueError, match="node 3 of 3"):
        _config.tokens(3, 3, 16)


def test_yaml_lets_a_ring_start_in_parallel(tmp_path: Path) -> None:
    ring = nodes(tmp_path, 3)
    settings = Settings(
        num_tokens=4, commitlog_total_space_mb=512, yaml={"concurrent_reads": 8, "auto_snapshot_ttl": "1d"}
    )
    for _ in range(2):
        asyncio.run(_config.write(settings, ring[1], ring))
    read = json.loads((ring[1].folder / "conf" / "cassandra.yaml").read_text())
    assert read["listen_address"] == read["rpc_address"] == "10.0.0.2"
    assert read["seed_provider"][0]["parameters"][0]["seeds"] == "10.0.0.1:7000,10.0.0.2:7000,10.0.0.3:7000"
    assert read["initial_token"] == ",".join(map(str, _config.tokens(1, 3, 4)))
    assert read["auto_bootstrap"] is False
    assert (read["commitlog_total_space"], read["concurrent_reads"]) == ("512MiB", 8)
    assert "commitlog_total_space" not in _config.yaml_of(Settings(), ring[0], ring)


def test_server_command_line(tmp_path: Path) -> None:
    (node,) = nodes(tmp_path, 1)
    settings = Settings(heap_mb=512, gc="g1", jvm_options=("-Xlog:safepoint",))
    argv = _config.server_argv(
        settings, JAVA.path, [Path("/lib/a.jar"), Path("/lib/b.jar")], node, ["-XX:SharedArchiveFile=x"]
    )
    assert argv[:2] == ["/opt/java/bin/java", "-XX:SharedArchiveFile=x"]
    assert {"-Xms512M", "-Xmx512M", "-XX:+UseG1GC", "-Xlog:safepoint"} <= set(argv)
    assert argv[argv.index("-cp") + 1 :] == ["/lib/a.jar:/lib/b.jar", _config.MAIN]
    assert "-Dcom.sun.management.jmxremote.host=10.0.0.1" in argv
    # A compiler that stops early would be measured instead of Cassandra.
    assert not [word for word in argv if "TieredStopAtLevel" in word]


def test_management_beans_take_a_password_that_only_the_owner_reads(tmp_path: Path) -> None:
    node, other = nodes(tmp_path, 2)
    argv = _config.server_argv(Settings(), JAVA.path, [], node)
    passwords = []
    for written in (node, other, node):
        asyncio.run(_config.write(Settings(), written, [node, other]))
        passwords.append(_config.Folders(written.folder).management_password.read_text().split()[1])
    assert len(set(passwords)) == 3, "of one node and one start: whoever gets it from a dead node's port gains nothing"
    assert min(map(len, passwords)) == 43
    remote = "-Dcom.sun.management.jmxremote"
    (file,) = (word.partition("=")[2] for word in argv if word.startswith(f"{remote}.password.file="))
    (access,) = (word.partition("=")[2] for word in argv if word.startswith(f"{remote}.access.file="))
    assert {f"{remote}.authenticate=true", f"{remote}.password.toHashes=false"} <= set(argv)
    assert Path(file).read_text() == f"steelyard {passwords[-1]}\n"
    assert Path(access).read_text() == "steelyard readwrite\n", "without `create`, which loads classes"
    assert [Path(path).stat().st_mode & 0o777 for path in (file, access)] == [0o600, 0o600]
    assert not [word for word in argv if passwords[-1] in word]
    stored = Cassandra(Settings(), tmp_path).logs(node)
    assert not [folder for folder in stored if Path(file).is_relative_to(folder)], "it gets into no store"


@pytest.mark.parametrize(("processes", "calls"), [("same", [["n1", "n2"]]), ("through", [["n1"], ["n2"]])])
def test_beans_of_containers_are_called_by_a_client_in_each(
    processes: str, calls: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container sees its own folder alone, and so the password of no other."""
    made: list[list[str]] = []

    async def call(java: Path, classes: Path, node: Node, words: list[str], timeout_s: float) -> tuple[str, ...]:
        del java, classes, node, timeout_s
        made.append([Path(word).parts[-3] for word in words if word.endswith("management.password")])
        return ()

    class Provided(Cassandra):
        async def _provide(self, node: Node) -> Installed:
            return Installed(JAVA.path, (), tmp_path)

    # No node answers here.
    monkeypatch.setattr(_beans, "call", call)
    group = [replace(node, processes=processes) for node in nodes(tmp_path, 2)]
    targets = {node.name: [f"{node.address}=usertable"] for node in group}
    asyncio.run(Provided(Settings(), tmp_path)._call(group, "flush", "ycsb", targets))
    assert sorted(made) == calls


def test_options_with_secrets_are_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (node,) = nodes(tmp_path, 1)
    monkeypatch.setenv("STORE_PASSWORD", 'two words"\\%')
    settings = Settings(jvm_options=("-Xlog:safepoint", "-Djavax.net.ssl.keyStorePassword=env:STORE_PASSWORD", "-ea"))
    asyncio.run(_config.write(settings, node, [node]))
    argv = _config.server_argv(settings, JAVA.path, [], node)
    (file,) = (Path(word[1:]) for word in argv if word.startswith("@"))
    assert {"-Xlog:safepoint", "-ea"} <= set(argv)
    assert not [word for word in argv if "two words" in word or "keyStorePassword" in word]
    assert file.read_text() == '"-Djavax.net.ssl.keyStorePassword=two words\\"\\\\%"\n'
    assert file.stat().st_mode & 0o777 == 0o600
    assert not [word for word in _config.server_argv(Settings(), JAVA.path, [], node) if word.startswith("@")]


@pytest.mark.parametrize(
    ("printed", "parsed"),
    [
        ('openjdk version "17.0.15" 2025-04-15', (17, "17.0.15")),
        ('java version "1.8.0_412"', (8, "1.8.0_412")),
        ('openjdk version "21" 2023-09-19', (21, "21")),
        ("bash: java: not found", None),
    ],
)
def test_java_versions(printed: str, parsed: tuple[int, str] | None) -> None:
    assert _java.parse_version(printed) == parsed


def fake_java(folder: Path, version: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return path


def test_finds_the_first_java_17(tmp_path: Path) -> None:
    old, right = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "right", "17.0.1")
    found = asyncio.run(_java.find([tmp_path / "none", old, right]))
    assert (found.path, found.version, found.home) == (right, "17.0.1", tmp_path / "right")
    with pytest.raises(SystemFault, match=r"found .*11\.0\.2") as caught:
        asyncio.run(_java.find([old]))
    assert "apt-get install" in caught.value.hint


def test_jars_from_a_tarball_are_unpacked_once(tmp_path: Path) -> None:
    tarball = tmp_path / "apache-cassandra-5.0.5-bin.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        for name in ("lib/apache-cassandra-5.0.5.jar", "lib/b.jar", "tools/lib/stress.jar", "conf/cassandra.yaml"):
            member = tarfile.TarInfo(f"apache-cassandra-5.0.5/{name}")
            member.size = 3
            archive.addfile(member, io.BytesIO(b"jar"))
    settings, said = Settings(jars=str(tarball)), []
    jars = asyncio.run(_jars.ensure(settings, tmp_path / "cache", JAVA, said.append))
    assert [jar.name for jar in jars] == ["apache-cassandra-5.0.5.jar", "b.jar"]
    assert len(said) == 1
    assert asyncio.run(_jars.ensure(settings, tmp_path / "cache", JAVA, said.append)) == jars
    assert len(said) == 1
    assert [path.name for path in jars[0].parent.parent.iterdir() if "tmp" in path.name] == []


def test_jars_from_a_folder_are_used_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "release" / "lib").mkdir(parents=True)
    jar = tmp_path / "release" / "lib" / "cassandra-all-5.0.5.jar"
    jar.touch()
    settings = Settings(jars=str(tmp_path / "release"))
    assert _jars.installed_class_path(settings, tmp_path / "cache") == (jar,)
    assert not (tmp_path / "cache").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemFault, match="no jars"):
        _jars.installed_class_path(Settings(jars=str(tmp_path / "empty")), tmp_path / "cache")


def test_what_is_no_tarball_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_text("no tarball")
    with pytest.raises(SystemFault, match="cannot read"):
        asyncio.run(_jars.ensure(Settings(jars=str(tmp_path / "x.tar.gz")), tmp_path / "cache", JAVA, print))
    assert _jars.installed_class_path(Settings(jars=str(tmp_path / "x.tar.gz")), tmp_path / "cache") is None


def test_a_failed_maven_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text("#!/bin/sh\necho '[ERROR] no route to the repository'\nexit 1\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{maven.parent}:/usr/bin:/bin")
    with pytest.raises(SystemFault, match="no route to the repository"):
        asyncio.run(_jars.ensure(Settings(), tmp_path / "cache", JAVA, lambda _: None))
    assert [path.name for path in (tmp_path / "cache" / "cassandra-5.0.5").iterdir()] == ["lock"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemFault, match="no mvn") as caught:
        asyncio.run(_jars.ensure(Settings(), tmp_path / "cache", JAVA, lambda _: None))
    assert "apt-get install -y maven" in caught.value.hint


@pytest.mark.parametrize("java", ["on PATH", "in JAVA_HOME", "nowhere"])
def test_maven_runs_on_the_java_that_trusts_what_the_machine_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java: str
) -> None:
    """The Java of a system may be one of ours, with certificates of its own."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mvn", "java")[: 2 if java == "on PATH" else 1]:
        (programs / name).write_text('#!/bin/sh\necho "[ERROR] home: ${JAVA_HOME-none}"\nexit 1\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if java == "in JAVA_HOME":
        monkeypatch.setenv("JAVA_HOME", "/its/own")
    home = {"on PATH": "none", "in JAVA_HOME": "/its/own", "nowhere": str(JAVA.home)}[java]
    with pytest.raises(SystemFault, match=f"home: {home}"):
        asyncio.run(_jars.ensure(Settings(version="4.1.9"), tmp_path / "cache", JAVA, lambda _: None))


def test_maven_checks_what_it_fetches_and_so_does_the_list_of_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    script = '#!/bin/sh\necho "$@" > {0}/words\nfor word; do into=${{word#-DoutputDirectory=}}; done\n'
    maven.write_text(script.format(tmp_path) + "echo jar > $into/cassandra-all-5.0.5.jar\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{maven.parent}:/usr/bin:/bin")
    cache, said = tmp_path / "cache", []
    with pytest.raises(SystemFault, match=r"the SHA-256 of fetched files .* ST4-4\.0\.8\.jar is missing"):
        asyncio.run(_jars.ensure(Settings(), cache, JAVA, said.append))
    assert "--strict-checksums" in (tmp_path / "words").read_text().split()
    assert _jars.installed_class_path(Settings(), cache) is None, "nothing was kept"
    other = Settings(version="5.0.1")
    jars = asyncio.run(_jars.ensure(other, cache, JAVA, said.append))
    _jars.checked(other, cache, jars, said.append)
    assert "ships no checksums for it" in said[-1]
    assert "5.0.1" in Cassandra(other, cache).notes()[0]
    assert Cassandra(Settings(), cache).notes() == (
        "Cassandra 5.0.5 is not on this machine yet: `run` downloads it first, about 66 MB",
    )
    jars[0].write_text("another")
    with pytest.raises(SystemFault, match=r"cassandra-all-5\.0\.5\.jar has different content"):
        _jars.checked(other, cache, jars, said.append)


def test_a_list_is_shipped_for_the_default_version() -> None:
    listed = artifacts.parse(_jars.shipped_list(Settings()) or "")
    assert "cassandra-all-5.0.5.jar" in listed
    assert len(listed) == 100
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in listed.values())
    assert _jars.shipped_list(Settings(jars="/own")) is None, "a build of one's own may be called 5.0.5, too"


def test_an_archive_belongs_to_one_java_and_one_set_of_jars(tmp_path: Path) -> None:
    java = _java.Java(fake_java(tmp_path, "17.0.1"), "17.0.1")
    jar = tmp_path / "a.jar"
    jar.write_text("one")
    first = _archive.archive(tmp_path, java, [jar])
    assert first == _archive.archive(tmp_path, java, [jar])
    assert first.options == []
    first.server.touch()
    # This Java has no archive of its own classes, so one is made and comes first.
    assert first.options[0] == f"-XX:SharedArchiveFile={first.base}:{first.server}"
    own = java.home / "lib" / "server" / "classes.jsa"
    own.parent.mkdir(parents=True)
    own.touch()
    assert _archive.archive(tmp_path, java, [jar]).options[0] == f"-XX:SharedArchiveFile={first.server}"
    jar.write_text("three")
    assert _archive.archive(tmp_path, java, [jar]) != first


def test_without_a_compiler_among_the_jars(tmp_path: Path) -> None:
    with pytest.raises(SystemFault, match="ecj not found"):
        asyncio.run(_beans.ensure(tmp_path, JAVA, [tmp_path / "a.jar"], print))


def test_a_source_is_a_version_a_tarball_or_a_folder_with_a_label(tmp_path: Path) -> None:
    version, tarball, folder = (
        Settings(source=source).build for source in ("5.0.4", "x/cassandra-6.tar.gz", f"main={tmp_path}")
    )
    assert (version.label, version.release, version.files) == ("5.0.4", "5.0.4", None)
    assert (tarball.label, tarball.release, tarball.files) == ("cassandra-6.tar.gz", None, Path("x/cassandra-6.tar.gz"))
    assert (folder.label, folder.release, folder.files) == ("main", None, tmp_path)
    assert _jars.folder_of(Settings(source="5.0.4"), tmp_path) == _jars.folder_of(Settings(version="5.0.4"), tmp_path)
    for wrong in ("main", "main=", "=x", "a,b", "main=a=b", "5.1", ""):
        with pytest.raises(ValidationError, match="does not name a build: a version"):
            Settings(source=wrong)
    for twice in ({"version": "5.0.3"}, {"jars": "x"}):
        with pytest.raises(ValidationError, match="source already names the build"):
            Settings(source="5.0.4", **twice)


def test_a_build_that_is_not_there_is_foretold(tmp_path: Path) -> None:
    load = Load(operations=1)
    missing, there = (
        list(Cassandra(Settings(source=f"main={folder}"), tmp_path).problems(1, load))
        for folder in (tmp_path / "none", tmp_path)
    )
    assert [error.key for error in missing] == ["system.source"]
    assert "the build main is missing" in missing[0].message
    assert there == []


def test_the_hash_of_a_build_is_of_names_and_contents(tmp_path: Path) -> None:
    jars = [tmp_path / "a.jar", tmp_path / "cassandra-all-5.0.6-SNAPSHOT.jar"]
    for jar in jars:
        jar.write_bytes(b"jar of " + jar.name.encode())
    before = _build.hash_of(artifacts.sums(jars))
    assert before == _build.hash_of(artifacts.sums(list(reversed(jars))))
    assert _build.version_of(jars) == "5.0.6-SNAPSHOT"
    assert _build.version_of(jars[:1]) is None
    jars[0].write_bytes(b"another build")
    assert _build.hash_of(artifacts.sums(jars)) != before
    jars[0].rename(tmp_path / "b.jar")
    renamed, one = artifacts.sums([tmp_path / "b.jar", jars[1]]), artifacts.sums(jars[1:])
    assert _build.hash_of(renamed) not in (before, _build.hash_of(one))


def test_builds_without_a_known_version_share_no_snapshot(tmp_path: Path) -> None:
    schema = Schema(keyspace="k", table="t", key="k", fields=("f",))
    keys = {
        _snapshots.key_of(Settings(source=source), [], schema, {}, jars_hash)
        for source, jars_hash in (("main=a", "1"), ("main=a", "2"), ("5.0.5", "3"))
    }
    assert len(keys) == 3
    assert _snapshots.key_of(Settings(), [], schema, {}) in keys, "5.0.5 is the default"
