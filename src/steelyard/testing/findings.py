"""Contract of every plug-in that `Diagnoses`, for the contract suites."""

from __future__ import annotations

import asyncio

from steelyard.model.finding import Diagnoses


def check_findings(plug_in: object) -> None:
    """Every finding has a text, and a hint unless it is good."""
    if isinstance(plug_in, Diagnoses):
        findings = asyncio.run(plug_in.findings())
        assert findings
        assert all(finding.name and finding.found for finding in findings)
        assert all(bool(finding.hint) == (finding.state != "good") for finding in findings)
