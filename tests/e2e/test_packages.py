"""Two wheels install into a clean environment without Rust or a checkout, and measure there; the one of pure Python is
enough to read a store, for any account."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tools.campaigns.leftovers import left_behind

from tests.e2e.laboratory import BUSY_MACHINE, ROOT

pytestmark = pytest.mark.agent

SCRIPTS = Path(sys.executable).parent
TIMEOUT_S = 600
OURS = ("STEELYARD_AGENT", "PYTHONPATH")
"""Variables that would lead out of the clean environment."""
NOBODY = 65534
ANY_ACCOUNT = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
    "--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search", "--bounding-set=-all,+dac_read_search",
)  # fmt: skip
"""Another account, which may only read what lies in root's folders, as these tests' do."""
BRIEFER = {"nodes = [1, 2, 3, 4, 6, 8]": "nodes = [1, 2]", "duration_s = 1.5": "duration_s = 0.5"}


def call(*argv: str | Path, cwd: Path = ROOT, compilers: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in OURS}
    places = [Path(place) for place in environment["PATH"].split(os.pathsep)]
    places = [place for place in places if place != SCRIPTS and (compilers or not (place / "cargo").exists())]
    environment |= {"PATH": os.pathsep.join(map(str, places)), "NO_COLOR": "1", "STEELYARD_STATE": str(cwd / "state")}
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
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """Ours, of Python and of the agent."""
    dist = tmp_path_factory.mktemp("dist")
    python = (SCRIPTS / "python", "-m", "build", "--no-isolation", "--wheel", "--outdir", dist, ".")
    built = call(*python, compilers=True)
    assert built.returncode == 0, built.stderr
    # As `make setup` builds it, so that nothing is compiled a second time; stripping would be another build.
    maturin = (SCRIPTS / "maturin", "build", "--release", "--locked", "--strip", "false", "--out", dist)
    agent = call(*maturin, cwd=ROOT / "crates/steelyard-agent", compilers=True)
    assert agent.returncode == 0, agent.stderr
    files = sorted(dist.glob("*.whl"))
    assert [wheel.name.split("-")[0] for wheel in files] == ["steelyard", "steelyard_agent"]
    return files


def environment_of(folder: Path, wheels: Sequence[Path]) -> Path:
    """Programs of an environment with these wheels; what they depend on is borrowed from ours."""
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    installed = call(python, "-m", "pip", "install", "--no-deps", "--no-index", *wheels, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "env" / "bin"


@pytest.fixture(scope="module")
def clean(wheels: Sequence[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_of(tmp_path_factory.mktemp("clean"), wheels)


@pytest.fixture(scope="module")
def measured(clean: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside of the checkout, with a first study that is written, checked and measured there."""
    folder = tmp_path_factory.mktemp("elsewhere")
    written = call(clean / "steelyard", "new", "first", "--system", "simulated", cwd=folder)
    assert written.returncode == 0, written.stderr
    study = folder / "first.toml"
    text = study.read_text()
    for shipped, briefer in BRIEFER.items():
        assert shipped in text
        text = text.replace(shipped, briefer)
    study.write_text(text + BUSY_MACHINE)
    for command in ("check", "run"):
        done = call(clean / "steelyard", command, study.name, cwd=folder)
        assert done.returncode == 0, done.stderr
    assert left_behind(folder / "state") == []
    return folder


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
        "paths = ('system/cassandra/pom.xml', 'report/templates/page.css', 'cli/commands/completion.zsh')\n"
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


def test_a_first_study_is_measured_and_reported_without_a_checkout(clean: Path, measured: Path) -> None:
    schema = call(clean / "steelyard", "schema", cwd=measured)
    assert (measured / "study.schema.json").read_text() == schema.stdout
    report = call(clean / "steelyard", "report", "store/first", cwd=measured)
    assert report.returncode == 0, report.stderr
    assert "</html>" in (measured / "store" / "first" / "report.html").read_text()


@pytest.fixture
def store_of_others(measured: Path) -> Iterator[Path]:
    """A finished store of an account that is not root, in a folder that it can reach."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(measured / "store" / "first", folder / "store")
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        yield folder / "store"


def test_any_account_reads_a_store_without_the_agent(
    wheels: Sequence[Path], store_of_others: Path, tmp_path: Path
) -> None:
    steelyard = (*(ANY_ACCOUNT if os.geteuid() == 0 else ()), environment_of(tmp_path, wheels[:1]) / "steelyard")
    folder = store_of_others.parent
    report = call(*steelyard, "report", "store", cwd=folder)
    assert report.returncode == 0, report.stderr
    assert (store_of_others / "report.html").stat().st_uid == (NOBODY if os.geteuid() == 0 else os.getuid())
    compared = call(*steelyard, "compare", "store", "--a", "nodes=1", "--b", "nodes=2", cwd=folder)
    assert "1 node -> 2 nodes" in compared.stdout, compared.stderr
    refused = call(*steelyard, "agent", "--version", cwd=folder)
    assert (refused.returncode, "pip install steelyard-agent" in refused.stderr) == (3, True)
