"""`steelyard schema`: the JSON schema of study files, for editors."""

from __future__ import annotations

from steelyard.study import schema as study_schema

EXAMPLES = (("steelyard schema", "For studies with the first line: #:schema ./FILE"),)


def schema() -> int:
    """Print it, as this version reads study files. Returns 0."""
    print(study_schema.text(), end="")
    return 0
