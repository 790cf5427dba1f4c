"""Steelyard: a laboratory that weighs distributed databases. `measure` runs a study, `read` reads its store."""

import importlib

__version__ = "0.1.0"

_HOMES = {
    "steelyard.lab.session": ("begin", "measure"),
    "steelyard.report.notebook": ("read",),
    "steelyard.model.errors": ("NotQuiet", "SteelyardError"),
    "steelyard.events.kept": ("QuietAwaited", "QuietReached", "StartBegan", "StartFailed", "TrialSealed"),
    "steelyard.events.shown": ("PhaseEntered", "StillBusy", "TrialBegan", "Trouble"),
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """The names of `_HOMES`, imported when they are first asked for: a command must not wait for all libraries."""
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of the module, with those that are not imported yet."""
    return sorted({*globals(), *_NAMES})
