"""The store: plain files that every tool can read. The only place where measuring and reading meet."""

from steelyard.store.read import Store
from steelyard.store.write import StoreWriter, TrialDraft

__all__ = ["Store", "StoreWriter", "TrialDraft"]
