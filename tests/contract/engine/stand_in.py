"""Stands in for a foreign load generator: says at the end of an order what the real one once said, and waits while a
long order would last. What is under test is what Steelyard makes of the tool, not the tool.

    stand_in.py latte REPORT -d LENGTH ... -o WHERE
    stand_in.py cassandra-stress OUTPUT command ... duration=LENGTH
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from pathlib import Path


def _contacts_nobody(words: list[str]) -> bool:
    return any(re.search(r"(?:^|[ =,/])(?:127\.0\.0\.1:1|native=1)$", word) for word in words)


def main() -> int:
    """As the tool would."""
    tool, recorded, *words = sys.argv[1:]
    if _contacts_nobody(words):
        sys.stderr.write("no node could be reached\n")
        return 1
    line = " ".join(words)
    length = re.search(r"(?:-d |duration=)(\d+)s", line)
    if tool == "cassandra-stress":
        sys.stdout.write(Path(recorded).read_text(encoding="utf-8").partition("\nResults:")[0] if length else "")
        sys.stdout.flush()
    if length and int(length[1]) > 60:
        time.sleep(int(length[1]))
    if tool == "latte":
        shutil.copy(recorded, words[words.index("-o") + 1])
    elif not length:
        sys.stdout.write(Path(recorded).read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
