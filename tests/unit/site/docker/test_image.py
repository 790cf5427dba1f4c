"""Image of site docker: its recipe, the packages of a Debian release, and where it cannot be built."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.errors import SiteError
from steelyard.site.docker import image
from steelyard.site.kernel import debian

SOURCES = """\
# deb http://old.example/debian bookworm main
deb [signed-by=/usr/share/keyrings/a.gpg arch=amd64] http://one.example/debian bookworm main contrib
deb-src http://source.example/debian bookworm main
"""
SOURCES_822 = """\
Types: deb deb-src
URIs: http://two.example/debian http://three.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main
"""


def test_a_mirror_is_read_from_apt_s_files() -> None:
    assert list(debian.mirrors([SOURCES], "bookworm")) == ["http://one.example/debian"]
    assert list(debian.mirrors([SOURCES_822], "bookworm")) == ["http://two.example/debian"]
    assert list(debian.mirrors(["", SOURCES, SOURCES_822], "trixie")) == []


def test_the_image_is_named_by_its_recipe(tmp_path: Path) -> None:
    (tmp_path / "etc/apt/sources.list.d").mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text('ID=debian\nVERSION_CODENAME="bookworm"\n')
    (tmp_path / "etc/apt/sources.list.d/debian.sources").write_text(SOURCES_822)
    wanted = image.recipe(tmp_path)
    assert (wanted.suite, wanted.mirror) == ("bookworm", "http://two.example/debian")
    assert wanted.packages == ("openjdk-17-jre-headless",)
    assert image.name_of(wanted) == f"steelyard/node:{wanted.key}"
    other = debian.Recipe(wanted.suite, wanted.mirror, (*wanted.packages, "iproute2"), wanted.architecture)
    assert other.key != wanted.key
    assert image.archive(tmp_path, wanted).name == f"image-{wanted.key}.tar"


def test_packages_are_those_of_the_suite(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    packages = {}
    for suite in ("bookworm", "trixie"):
        (tmp_path / "etc/os-release").write_text(f"ID=debian\nVERSION_CODENAME={suite}\n")
        packages[suite] = image.packages_of(["dockerd", "docker", "debootstrap"], tmp_path)
    assert packages == {
        "bookworm": ["docker.io", "debootstrap"],
        "trixie": ["docker.io", "docker-cli", "debootstrap"],
    }


@pytest.mark.parametrize(
    ("release", "message"),
    [("ID=fedora\nVERSION_CODENAME=x\n", "on Debian or Ubuntu only"), ("ID=debian\nVERSION_CODENAME=sid\n", "mirror")],
)
def test_no_image_elsewhere(tmp_path: Path, release: str, message: str) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(release)
    with pytest.raises(SiteError, match=message):
        image.recipe(tmp_path)
