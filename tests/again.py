"""A second try, alone, for tests of real processes that failed beside others; they are named even if they pass then.

They share two processors with others, and a busy machine can break one that is right. What fails alone fails the run.
What passes alone is unstable: the run passes, and its last lines say which test must be mended. Tests of functions get
no second try: what fails there now and then is a finding, such as an example that Hypothesis has drawn.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

MOST: Final = 5
"""More failures than this are no accident of a busy machine."""
REAL: Final = ("tests/contract/", "tests/e2e/")
"""Folders of tests that run real processes."""


def run_again(session: pytest.Session, reporter: pytest.TerminalReporter) -> None:
    """Run a few failures of a parallel run again, alone, if all are of real processes; let the run pass if they do."""
    failed = sorted({report.nodeid for kind in ("failed", "error") for report in reporter.stats.get(kind, [])})
    several = session.config.getoption("numprocesses", None)
    if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not several or not 0 < len(failed) <= MOST:
        return
    if not all(nodeid.startswith(REAL) for nodeid in failed):
        return
    reporter.write_line(f"\nfailed beside other tests, and run again alone: {', '.join(failed)}")
    argv = [sys.executable, "-m", "pytest", *failed]
    alone = subprocess.run(argv, cwd=session.config.rootpath, check=False)
    if alone.returncode == pytest.ExitCode.OK:
        reporter.write_line(f"UNSTABLE, to be mended: failed beside other tests, passed alone: {', '.join(failed)}")
        session.exitstatus = pytest.ExitCode.OK
