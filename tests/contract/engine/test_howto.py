"""The example of docs/howto/add-an-engine.md keeps the contract, exactly as it is printed there."""

from __future__ import annotations

import pytest

from tests.contract.howto import Printed

pytestmark = pytest.mark.agent

PAGE = Printed("add-an-engine.md")

_names = PAGE.names("test_knock.py", __name__)


class TestPrinted(_names["TestKnock"]):  # type: ignore[misc]
    module = PAGE.file("knock.py")
