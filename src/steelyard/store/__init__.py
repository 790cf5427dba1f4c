"""Store: plain files that every tool can read. The only interface between measuring and reading.

A reader does not load the writer: names are imported when they are asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from steelyard.store.read import Store
    from steelyard.store.write import StoreWriter, TrialDraft

__all__ = ["Store", "StoreWriter", "TrialDraft"]

_MODULES: Final = {"Store": "read", "StoreWriter": "write", "TrialDraft": "write"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
