"""Heavy libraries, imported on first use: together they cost seconds of processor time, which a command that computes
nothing with them need not take from a study that is measured meanwhile. `tests/tidy/test_heavy.py` holds all to it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["distributed", "holtwinters", "linalg", "np", "optimize", "pl", "signal", "special", "stats"]

if TYPE_CHECKING:
    import distributed
    import numpy as np
    import polars as pl
    from scipy import linalg, optimize, signal, special, stats
    from statsmodels.tsa import holtwinters
else:

    class _OnFirstUse:
        """Stands for a module. Importing is safe from several threads, as always."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(importlib.import_module(self._name), attribute)
            self.__dict__[attribute] = value
            return value

    distributed = _OnFirstUse("distributed")
    np = _OnFirstUse("numpy")
    pl = _OnFirstUse("polars")
    holtwinters = _OnFirstUse("statsmodels.tsa.holtwinters")
    linalg = _OnFirstUse("scipy.linalg")
    optimize = _OnFirstUse("scipy.optimize")
    signal = _OnFirstUse("scipy.signal")
    special = _OnFirstUse("scipy.special")
    stats = _OnFirstUse("scipy.stats")
