"""The example of docs/howto/add-a-workload.md keeps the contract, exactly as it is printed there."""

from __future__ import annotations

import pytest

from tests.contract.howto import Printed

pytestmark = pytest.mark.agent

PAGE = Printed("add-a-workload.md")

_names = PAGE.names("test_mostly_new.py", __name__)


class TestPrinted(_names["TestMostlyNew"]):  # type: ignore[misc]
    module = PAGE.file("mostly_new.py")
