"""Studies of plug-ins that exist on paper only, so that these tests need no Cassandra, no root and no agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard import study as studies
from steelyard.model.study import Study
from steelyard.plugins.find import Plugins, any_file

PLUGINS = Path(__file__).parent / "plugins"
SITE, SYSTEM = str(PLUGINS / "site.py"), str(PLUGINS / "system.py")
WORKLOAD, OTHER = str(PLUGINS / "workload.py"), str(PLUGINS / "other_workload.py")

HEAD = f"""\
format = 1
probes = []

[study]
name = "paper"
question = "?"

[site]
name = "{SITE}"

[system]
name = "{SYSTEM}"

[workload]
name = "{WORKLOAD}"
records = 5000

[load]
operations = 1000
"""
"""19 lines; what a test adds begins on line 20."""


def text(rest: str, head: str = HEAD) -> str:
    """A whole study file."""
    return head + rest


def read_text(text: str, path: str = "", **options: Any) -> Study:
    """The study in a text that names plug-ins on paper."""
    return studies.read_text(text, path, **{"plugins": Plugins(trust=any_file), **options})


def study(rest: str, scale: float = 1.0) -> Study:
    """A whole study."""
    return read_text(text(rest), "paper.toml", scale=scale)
