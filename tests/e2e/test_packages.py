"""Two wheels build and install into a clean environment, and the program is found there without activating it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.e2e.laboratory import ROOT

pytestmark = pytest.mark.agent

SCRIPTS = Path(sys.executable).parent
TIMEOUT_S = 600


def call(*argv: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "STEELYARD_AGENT"}
    places = [place for place in environment["PATH"].split(os.pathsep) if Path(place) != SCRIPTS]
    environment |= {"PATH": os.pathsep.join(places), "NO_COLOR": "1"}
    return subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with our two wheels; what they depend on is borrowed from this one."""
    folder = tmp_path_factory.mktemp("clean")
    dist = folder / "dist"
    built = call(SCRIPTS / "python", "-m", "build", "--no-isolation", "--wheel", "--outdir", dist, ".")
    assert built.returncode == 0, built.stderr
    # As `make setup` builds it, so that nothing is compiled a second time; stripping would be another build.
    maturin = (SCRIPTS / "maturin", "build", "--release", "--locked", "--strip", "false", "--out", dist)
    agent = call(*maturin, cwd=ROOT / "crates/steelyard-agent")
    assert agent.returncode == 0, agent.stderr
    venv.create(folder / "env", with_pip=True)
    wheels = sorted(dist.glob("*.whl"))
    assert [wheel.name.split("-")[0] for wheel in wheels] == ["steelyard", "steelyard_agent"]
    python = folder / "env" / "bin" / "python"
    installed = call(python, "-m", "pip", "install", "--no-deps", "--no-index", *wheels)
    assert installed.returncode == 0, installed.stderr
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "env" / "bin"


def test_the_command_and_the_agent_are_there(clean: Path, tmp_path: Path) -> None:
    version = call(clean / "steelyard", "--version", cwd=tmp_path)
    assert version.stdout.startswith("steelyard "), version.stderr
    found = call(clean / "python", "-c", "from steelyard.node.agent import find; print(find())", cwd=tmp_path)
    assert found.stdout.strip() == str(clean / "steelyard-agent")
    agent = call(clean / "steelyard", "agent", "--version", cwd=tmp_path)
    assert agent.stdout.startswith("steelyard-agent "), agent.stderr


def test_what_is_not_code_came_along(clean: Path, tmp_path: Path) -> None:
    code = (
        "from importlib.resources import files\n"
        "root = files('steelyard')\n"
        "import steelyard; assert steelyard.__file__.startswith(%r)\n"
        "paths = ('system/cassandra/pom.xml', 'report/templates/page.css', 'reference/data/speedup.csv')\n"
        "print(*(root.joinpath(path).is_file() for path in paths))"
    )
    found = call(clean / "python", "-c", code % str(clean.parent), cwd=tmp_path)
    assert found.stdout.split() == ["True", "True", "True"], found.stderr


def test_the_finder_says_where_it_looked(clean: Path, tmp_path: Path) -> None:
    (clean / "steelyard-agent").rename(clean / "gone")
    try:
        found = call(clean / "steelyard", "agent", "--version", cwd=tmp_path)
    finally:
        (clean / "gone").rename(clean / "steelyard-agent")
    assert found.returncode == 3
    assert str(clean / "steelyard-agent") in found.stderr
    assert "STEELYARD_AGENT" in found.stderr
