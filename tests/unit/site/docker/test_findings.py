"""Findings of `steelyard doctor` about containers."""

from __future__ import annotations

from steelyard.site.docker import findings


def test_client_and_daemon() -> None:
    runs = findings.daemon("/bin/docker", "unix:///d.sock", "", None)
    assert (runs.state, runs.found) == ("good", "/bin/docker; containers are made by the Docker at unix:///d.sock")
    own = findings.daemon("/bin/docker", "", "Cannot connect", None)
    assert own.state == "good"
    assert "a Docker daemon of Steelyard's own is started with the first lease" in own.found
    lacking = findings.daemon("/bin/docker", "", "Cannot connect", "starting one needs root")
    assert (lacking.state, lacking.found) == ("poor", "/bin/docker; starting one needs root")
    assert "steelyard setup docker" in lacking.hint
    assert findings.daemon(None, "", "", "no program docker").found == "no docker in PATH"


def test_a_docker_host_that_is_not_used_has_its_hint() -> None:
    elsewhere = findings.daemon("/bin/docker", "", "DOCKER_HOST = 'tcp://a:1': ...", None, "unset DOCKER_HOST")
    assert (elsewhere.state, elsewhere.hint) == ("poor", "unset DOCKER_HOST")
    assert "DOCKER_HOST = 'tcp://a:1'" in elsewhere.found


def test_image() -> None:
    assert findings.own_image(None, there=True).found == "the image is there"
    assert "the first lease builds it" in findings.own_image(None, there=False).found
    lacking = findings.own_image("building an image needs root", there=False)
    assert lacking.state == "poor"
    assert "site.image" in lacking.hint
