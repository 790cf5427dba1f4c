"""`python -m tools.docs.site`: build the site into `build/site` with MkDocs; a broken link or anchor is an error.

The packages are in `requirements-docs.lock`; `make docs` installs them first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.docs.site.sources import navigation, stage

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = Path(__file__).with_name("mkdocs.yml")


def build(into: Path, root: Path = ROOT) -> int:
    """Builds the site into a folder, whose former files are removed. Returns MkDocs' exit code."""
    with tempfile.TemporaryDirectory(prefix="steelyard-docs-") as temporary:
        sources = Path(temporary, "sources")
        stage(root, sources)
        # JSON is YAML.
        settings = {
            "INHERIT": str(SETTINGS),
            "docs_dir": str(sources),
            "site_dir": str(into.resolve()),
            "nav": navigation(root, sources),
        }
        Path(temporary, "mkdocs.yml").write_text(json.dumps(settings), encoding="utf-8")
        argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-f", f"{temporary}/mkdocs.yml"]
        # Without the theme's notice of its successor.
        silent = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(argv, check=False, env=silent, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stderr, end="", file=sys.stderr)
    return done.returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or MkDocs' exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs.site", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "site", help="the folder of the site")
    into: Path = parser.parse_args(arguments).into
    code = build(into)
    if code == 0:
        print(f"{into / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
