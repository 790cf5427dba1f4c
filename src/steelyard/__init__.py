"""Steelyard: a laboratory that weighs distributed databases. `measure` runs a study, `read` reads its store."""

import importlib

__version__ = "0.1.0"

_HOMES = {"begin": "steelyard.lab.session", "measure": "steelyard.lab.session", "read": "steelyard.reading"}


def __getattr__(name: str) -> object:
    """The functions of `_HOMES`, imported when they are first asked for: a command must not wait for all libraries."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
