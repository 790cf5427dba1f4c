"""Hash of a trial's complete settings, the first part of the trial's id; verification recomputes it.

The hashed text is canonical: it depends only on the meaning of the settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

HASH_DIGITS = 12


def canonical(settings: Mapping[str, Any]) -> str:
    """The canonical text of settings: JSON with sorted keys and without spaces."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def settings_hash(settings: Mapping[str, Any]) -> str:
    """First 12 hexadecimal digits of the SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(settings).encode()).hexdigest()[:HASH_DIGITS]
