"""`python -m tools.agents`: static agents for nodes that are not this machine: x86-64, aarch64, armv7.

A build is kept in the cache under the hash of everything that it is made from, so the same crates are built once. The
standard library of another processor comes from rustup or from Debian's packages, whichever is there.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.node.agent import PROGRAM
from steelyard.node.folders import cache_folder

ROOT = Path(__file__).resolve().parents[1]
CRATE = "steelyard-agent"
RECIPE = 1
"""Part of the hash: raised when the same crates are built in another way."""
PROFILE = "CARGO_PROFILE_RELEASE_"
BUILD_TIMEOUT_S = 3600.0
ASK_TIMEOUT_S = 30.0
HASH_CHARS = 16
EXIT_DONE, EXIT_LABORATORY = 0, 3
INTERPRETER: Final = 3
"""Type of the header of an ELF file that names its dynamic linker: a static program has none."""


@dataclass(frozen=True)
class Target:
    """One kind of processor."""

    name: str
    """The end of the agent's name."""
    triple: str
    linkers: tuple[str, ...]
    hint: str
    """What installs compiler and libraries for it, on Debian."""


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target(
            "x86_64", "x86_64-unknown-linux-gnu", ("x86_64-linux-gnu-gcc", "cc"), "apt-get install -y gcc libc6-dev"
        ),
        Target(
            "aarch64",
            "aarch64-unknown-linux-gnu",
            ("aarch64-linux-gnu-gcc",),
            "dpkg --add-architecture arm64; apt-get update; apt-get install -y rustc-web libstd-rust-web-dev:arm64 "
            "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        ),
        Target(
            "armv7",
            "armv7-unknown-linux-gnueabihf",
            ("arm-linux-gnueabihf-gcc",),
            "dpkg --add-architecture armhf; apt-get update; apt-get install -y rustc-web libstd-rust-web-dev:armhf "
            "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross",
        ),
    )
}


Build = Callable[[Target, Path], Path]
"""Builds the agent of a target from a checkout: the path of the program."""


class NotBuilt(Exception):
    """An agent that could not be built, with a hint."""


def crates_hash(root: Path = ROOT) -> str:
    """Hash of everything that the agent is made from: crates, manifests, the lock, variables of its profile."""
    digest = hashlib.sha256(f"recipe {RECIPE}\n".encode())
    for name in sorted(name for name in os.environ if name.startswith(PROFILE)):
        digest.update(f"{name}={os.environ[name]}\n".encode())
    for path in sorted(_sources(root)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{content}  {path.relative_to(root)}\n".encode())
    return digest.hexdigest()[:HASH_CHARS]


def _sources(root: Path) -> Iterator[Path]:
    yield from (root / name for name in ("Cargo.toml", "Cargo.lock"))
    for path in (root / "crates").rglob("*"):
        if path.is_file() and "tests" not in path.relative_to(root).parts and path.suffix in (".rs", ".toml"):
            yield path


def agent_for(target: Target, root: Path = ROOT, build: Build | None = None) -> Path:
    """Path of the agent in the cache, built if need be. Raises NotBuilt."""
    kept = cache_folder() / "agents" / crates_hash(root) / f"{PROGRAM}-{target.name}"
    if kept.is_file():
        return kept
    built = (build or _build)(target, root)
    if not is_static(built):
        raise NotBuilt(f"{built} is not static: it would need this machine's libraries on every node")
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = kept.with_name(f".{kept.name}.{os.getpid()}")
    shutil.copy2(built, draft)
    draft.rename(kept)
    return kept


def _build(target: Target, root: Path) -> Path:
    """Build it with a compiler that has the target's standard library. Raises NotBuilt."""
    compiler = next((path for path in ("rustc", "/usr/bin/rustc") if _has_library(path, target.triple)), None)
    linker = next((name for name in target.linkers if shutil.which(name)), None)
    if compiler is None or linker is None:
        lacking = "no standard library of Rust" if compiler is None else f"no linker {' or '.join(target.linkers)}"
        raise NotBuilt(f"{lacking} for {target.name}; as root: {target.hint}")
    name = target.triple.upper().replace("-", "_")
    variables = {
        "RUSTC": compiler,
        "RUSTFLAGS": "-C target-feature=+crt-static",
        f"CARGO_TARGET_{name}_LINKER": linker,
        f"CC_{target.triple.replace('-', '_')}": linker,
    }
    argv = ["cargo", "build", "--release", "--locked", "--package", CRATE, "--target", target.triple]
    try:
        subprocess.run(argv, cwd=root, env={**os.environ, **variables}, check=True, timeout=BUILD_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotBuilt(f"the agent for {target.name} could not be built: {error}") from error
    folder = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    return folder / target.triple / "release" / PROGRAM


def _has_library(compiler: str, triple: str) -> bool:
    """Whether a compiler has the standard library of a target."""
    argv = [compiler, "--print", "target-libdir", "--target", triple]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=ASK_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and any(Path(done.stdout.strip()).glob("libstd-*.rlib"))


def is_static(path: Path) -> bool:
    """Whether a program of Linux (an ELF file of 32 or 64 bits, little endian) needs no dynamic linker."""
    content = path.read_bytes()
    if content[:4] != b"\x7fELF" or content[5] != 1:
        return False
    wide = content[4] == 2
    (first,) = struct.unpack_from("<Q" if wide else "<I", content, 32 if wide else 28)
    size, number = struct.unpack_from("<HH", content, 54 if wide else 42)
    kinds = [struct.unpack_from("<I", content, first + index * size)[0] for index in range(number)]
    return INTERPRETER not in kinds


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Returns 0, or 3 if one could not be built."""
    parser = argparse.ArgumentParser(prog="python -m tools.agents", description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="folder to put them into, beside steelyard-agent")
    parser.add_argument(
        "architectures", nargs="*", metavar="ARCHITECTURE", help=f"of {', '.join(TARGETS)}; default all"
    )
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.architectures if name not in TARGETS]:
        parser.error(f"no such architecture: {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    code = EXIT_DONE
    for name in options.architectures or TARGETS:
        try:
            path = agent_for(TARGETS[name], root)
        except NotBuilt as error:
            print(f"{PROGRAM}-{name}: {error}", file=sys.stderr)
            code = EXIT_LABORATORY
            continue
        draft = options.into / f".{path.name}.draft"
        shutil.copy2(path, draft)
        draft.rename(options.into / path.name)
        print(f"{options.into / path.name}: {path.stat().st_size / 1e6:.1f} MB")
    return code


if __name__ == "__main__":
    sys.exit(main())
