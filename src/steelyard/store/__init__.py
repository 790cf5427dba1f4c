"""Store: plain files that every tool can read. The only interface between measuring and reading."""

from steelyard.store.read import Store
from steelyard.store.write import StoreWriter, TrialDraft

__all__ = ["Store", "StoreWriter", "TrialDraft"]
