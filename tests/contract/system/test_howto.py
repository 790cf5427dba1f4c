"""The example of docs/howto/add-a-system.md keeps the contract, exactly as it is printed there."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[3] / "docs" / "howto" / "add-a-system.md"
BLOCKS = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
FOLDER = tempfile.TemporaryDirectory(prefix="steelyard-howto-")

_names: dict[str, Any] = {"__name__": __name__}
exec(compile(BLOCKS["test_shelf.py"], "test_shelf.py", "exec"), _names)
Path(FOLDER.name, "shelf.py").write_text(BLOCKS["shelf.py"], encoding="utf-8")


class TestPrinted(_names["TestShelf"]):  # type: ignore[misc]
    module = str(Path(FOLDER.name, "shelf.py"))
