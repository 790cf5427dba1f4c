"""A second try, alone, for what failed beside other tests; it is named even if it passes then.

Tests of real servers share two processors with others, and a busy machine can break one that is right. What fails alone
fails the run. What passes alone is unstable: the run passes, and its last lines say which test must be mended.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

MOST: Final = 5
"""More failures than this are no accident of a busy machine."""


def run_again(session: pytest.Session, reporter: pytest.TerminalReporter) -> None:
    """Run a few failures of several processes again, alone, and let the run pass if they do."""
    failed = sorted({report.nodeid for kind in ("failed", "error") for report in reporter.stats.get(kind, [])})
    several = session.config.getoption("numprocesses", None)
    if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not several or not 0 < len(failed) <= MOST:
        return
    reporter.write_line(f"\nfailed beside other tests, and run again alone: {', '.join(failed)}")
    argv = [sys.executable, "-m", "pytest", *failed]
    alone = subprocess.run(argv, cwd=session.config.rootpath, check=False)
    if alone.returncode == pytest.ExitCode.OK:
        reporter.write_line(f"UNSTABLE, to be mended: failed beside other tests, passed alone: {', '.join(failed)}")
        session.exitstatus = pytest.ExitCode.OK
