"""The known store, written once; tests of this folder only read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.model.trial import TrialRecord
from steelyard.store.read import Store
from tests.unit.export import stores


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stores.write(tmp_path_factory.mktemp("known"))


@pytest.fixture
def store(known: Path) -> Store:
    return Store(known)


@pytest.fixture
def records(store: Store) -> tuple[TrialRecord, ...]:
    return store.trials()
