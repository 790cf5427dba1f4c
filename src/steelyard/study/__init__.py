"""Study files: reading, validation, completion with defaults."""

from steelyard.judging.design import factors_of
from steelyard.judging.settings_hash import canonical, settings_hash
from steelyard.study.read import located, read, read_text
from steelyard.study.settings import is_hard, settings_of
from steelyard.study.treatments import control_of, treatments_of

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
