"""Read, check and complete a study file."""

from steelyard.study.read import located, read, read_text
from steelyard.study.settings import canonical, is_hard, settings_hash, settings_of
from steelyard.study.treatments import control_of, factors_of, treatments_of

__all__ = [
    "canonical",
    "control_of",
    "factors_of",
    "is_hard",
    "located",
    "read",
    "read_text",
    "settings_hash",
    "settings_of",
    "treatments_of",
]
