"""Requests for documents of one length, which the servers have from the start."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from steelyard.model.data_model import Schema
from steelyard.model.value import Value
from steelyard.wire.order import HTTP, Document, Requests

EASY: dict[str, Any] = {"easy": True}
"""The setting can change between trials of one start: the servers get the documents before the trial."""


class Settings(Value):
    """Documents, and how closely their bodies are looked at."""

    bytes: int = Field(default=1000, ge=0, le=1 << 30, json_schema_extra=EASY)
    """Length of a document."""
    count: int = Field(default=1, ge=1, le=10_000, json_schema_extra=EASY)
    """Documents of that length, each requested as often as the others."""
    validate_fraction: float = Field(default=1.0, ge=0, le=1, json_schema_extra=EASY)
    """Share of the bodies that are compared byte by byte. Status and length are checked always."""


class Documents:
    """Requests for documents."""

    name = "documents"
    protocols = (HTTP,)
    writes = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def schema(self) -> Schema:
        """The documents, by path and length."""
        of = self.settings
        paths = [f"/{of.bytes}.bin" if number == 0 else f"/{of.bytes}-{number}.bin" for number in range(of.count)]
        return Schema(documents=tuple((path, of.bytes) for path in paths))

    def data(self) -> dict[str, Any]:
        """No records: nothing is filled."""
        return {"records": 0}

    def order(self) -> Requests:
        """The `work` of an order."""
        asked = tuple(Document(path=path, bytes=size) for path, size in self.schema().documents)
        return Requests(documents=asked, validate_fraction=self.settings.validate_fraction)


def create(settings: Settings) -> Documents:
    """The workload under its settings."""
    return Documents(settings)
