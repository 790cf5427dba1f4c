"""docs/reference/workloads.md says what the settings say."""

from __future__ import annotations

import re
import typing

from pydantic import BaseModel

from steelyard.field_docs import field_docs
from steelyard.workload.ycsb import Settings
from tests.unit.workload.reference import ROOT

SIGNS = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
PAGE = ROOT / "docs" / "reference" / "workloads.md"


def row(model: type[BaseModel], name: str) -> str:
    """The setting's line of the page's table."""
    field = model.model_fields[name]
    allowed = typing.get_args(field.annotation)
    choices = [f"`{one}`" for one in allowed if isinstance(one, str)]
    bounds = [f"{sign} {getattr(one, name)}" for one in field.metadata for name, sign in SIGNS if hasattr(one, name)]
    values = ", ".join(choices) or ("true, false" if field.annotation is bool else ", ".join(bounds))
    extra = field.json_schema_extra
    easy = isinstance(extra, dict) and extra["easy"]
    default = "from the order" if field.default is None else str(field.default).lower()
    says = re.sub(r"\s+", " ", field_docs(model)[name])
    return f"| `{name}` | {default} | {values} | {'easy' if easy else 'hard'} | {says} |"


def test_every_setting_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    for name in Settings.model_fields:
        assert row(Settings, name) in page
