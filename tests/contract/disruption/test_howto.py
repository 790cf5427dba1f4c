"""The example of docs/howto/add-a-disruption.md keeps the contract, exactly as it is printed there."""

from __future__ import annotations

import pytest

from tests.contract.howto import Printed

pytestmark = pytest.mark.agent

PAGE = Printed("add-a-disruption.md")

_names = PAGE.names("test_restart.py", __name__)
_names["TestRestart"].module = PAGE.file("restart.py")

TestPrinted = _names["TestRestart"]
