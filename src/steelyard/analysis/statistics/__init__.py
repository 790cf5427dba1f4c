"""Statistics: one module per table, with the table's name. A new one is a module with a `STATISTIC`.

`Statistic` has the interface; `summary` is a plain example, `effect_line` a small one.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from steelyard.analysis.row import Row
from steelyard.analysis.statistic import Section, Statistic


@cache
def every() -> tuple[Statistic[Any], ...]:
    """The statistic of each module here, by section and order. Raises ValueError if two have one name or row type."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    defined: list[Statistic[Any]] = [module.STATISTIC for module in modules]
    for names in ([one.name for one in defined], [one.row.__name__ for one in defined]):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two statistics have {twice}")
    places = list(Section)
    return tuple(sorted(defined, key=lambda one: (places.index(one.section), one.order, one.name)))


@cache
def by_row() -> Mapping[type[Row], Statistic[Any]]:
    """Row type to its statistic."""
    return {statistic.row: statistic for statistic in every()}
