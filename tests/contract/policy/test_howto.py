"""The example of docs/howto/add-a-policy.md keeps the contract, exactly as it is printed there."""

from __future__ import annotations

from tests.contract.howto import Printed

PAGE = Printed("add-a-policy.md")

_names = PAGE.names("test_one_more.py", __name__)
_names["TestOneMore"].module = PAGE.file("one_more.py")

TestPrinted = _names["TestOneMore"]
test_it_adds_one_node_after_the_last_is_warm = _names["test_it_adds_one_node_after_the_last_is_warm"]
