"""`python -m tools.wireless`: simulate the 802.11 medium beside Bianchi's model, write the page and its figure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.wireless.page import FIGURE, figure, kept, page


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 if a cell is too far from its model."""
    parser = argparse.ArgumentParser(prog="python -m tools.wireless", description=__doc__)
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the page and its figure instead of printing it")
    parser.add_argument("--figures", metavar="DIR", type=Path, help="where the figure goes; default: ../figures from FILE")
    asked = parser.parse_args(arguments)
    if asked.write:
        asked.write.write_text(page(), encoding="utf-8")
        folder = asked.figures or asked.write.parent.parent / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FIGURE).write_text(figure(), encoding="utf-8")
    else:
        print(page())
    return 0 if kept() else 1


if __name__ == "__main__":
    sys.exit(main())
