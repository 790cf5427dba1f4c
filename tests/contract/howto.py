"""Snippets of a how-to page, exactly as they are printed there: modules, and the tests that the page says they pass."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

PAGES = Path(__file__).resolve().parents[2] / "docs" / "howto"


class Printed:
    """The files of a page: a block of Python that begins with `# name.py` is that file."""

    def __init__(self, page: str) -> None:
        text = (PAGES / page).read_text(encoding="utf-8")
        self.blocks: dict[str, str] = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", text, re.DOTALL))
        self._folder = tempfile.TemporaryDirectory(prefix="steelyard-howto-")

    def file(self, name: str) -> str:
        """Path of a file of the page."""
        path = Path(self._folder.name, name)
        path.write_text(self.blocks[name], encoding="utf-8")
        return str(path)

    def names(self, name: str, module: str) -> dict[str, Any]:
        """What a test file of the page defines."""
        found: dict[str, Any] = {"__name__": module}
        exec(compile(self.blocks[name], name, "exec"), found)
        return found
