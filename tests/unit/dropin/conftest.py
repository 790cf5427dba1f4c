"""What the drop-ins' tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.dropin.fake_agent import FakeAgent


@pytest.fixture
def fake_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeAgent:
    """A stand-in for the agent's program, found in its place."""
    return FakeAgent(tmp_path, monkeypatch)
