"""The example of docs/howto/add-a-probe.md keeps the contract, exactly as it is printed there."""

from __future__ import annotations

from tests.contract.howto import Printed

PAGE = Printed("add-a-probe.md")

_names = PAGE.names("test_open_files.py", __name__)
_names["TestOpenFiles"].module = PAGE.file("open_files.py")

_meter = PAGE.names("test_meter.py", __name__)
_meter["TestMeter"].module = PAGE.file("meter.py")

TestPrinted = _names["TestOpenFiles"]
TestPrintedMeter = _meter["TestMeter"]
test_unused_handles_are_no_open_files = _names["test_unused_handles_are_no_open_files"]
