"""The example of docs/howto/add-a-site.md keeps the contract, exactly as it is printed there. A study on it:
tests/e2e/test_howto_site.py."""

from __future__ import annotations

from tests.contract.howto import Printed

PAGE = Printed("add-a-site.md")

_names = PAGE.names("test_shelf.py", __name__)


class TestPrinted(_names["TestShelf"]):  # type: ignore[misc]
    module = PAGE.file("shelf.py")
