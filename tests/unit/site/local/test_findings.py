"""Findings of `steelyard doctor` of site `local`."""

from __future__ import annotations

from steelyard.site.local import findings


def test_tap_devices() -> None:
    assert findings.tap(usable=True, there=True).state == "good"
    missing = findings.tap(usable=False, there=False)
    assert (missing.state, missing.found) == ("poor", "/dev/net/tun missing")
    assert "modprobe tun" in missing.hint
    assert "802.11" in missing.hint
    assert "root" in findings.tap(usable=False, there=True).hint


def test_netem_is_no_fault_because_the_program_does_without() -> None:
    assert findings.netem_of(True).state == findings.netem_of(False).state == "good"
    assert "link program" in findings.netem_of(False).found
    assert findings.netem_of(None).state == "poor"


def test_filters_on_bridges() -> None:
    assert findings.bridge_filters("").state == findings.bridge_filters("0").state == "good"
    on = findings.bridge_filters("1")
    assert on.state == "poor"
    assert "sysctl -w net.bridge.bridge-nf-call-iptables=0" in on.hint
