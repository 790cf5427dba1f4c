"""Every workload that is shipped keeps the contract of a workload, and so do the shipped workload files."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.testing.workload import WorkloadContract

pytestmark = pytest.mark.agent

FILES = Path(__file__).resolve().parents[3] / "studies" / "workloads"


class TestYcsb(WorkloadContract):
    module = "ycsb"
    settings: ClassVar = {"records": 5000, "read_proportion": 0.3, "insert_proportion": 0.2, "scan_proportion": 0.1}


class TestYcsbA(WorkloadContract):
    module = "ycsb-a"


class TestYcsbB(WorkloadContract):
    module = "ycsb-b"


class TestYcsbC(WorkloadContract):
    module = "ycsb-c"


class TestYcsbD(WorkloadContract):
    module = "ycsb-d"


class TestYcsbE(WorkloadContract):
    module = "ycsb-e"


class TestYcsbF(WorkloadContract):
    module = "ycsb-f"


class TestYcsbI(WorkloadContract):
    module = "ycsb-i"


class TestStress(WorkloadContract):
    module = "stress"
    settings: ClassVar = {"records": 1000, "column_size": "gaussian(1..90)"}


class TestDocuments(WorkloadContract):
    module = "documents"
    settings: ClassVar = {"bytes": 100, "count": 20}


class TestJob(WorkloadContract):
    module = "job"
    settings: ClassVar = {"program": __file__, "arguments": ["{input}"], "expected": '{"records": 1}'}


class TestWordcount(WorkloadContract):
    module = "wordcount"


class TestSort(WorkloadContract):
    module = "sort"
    settings: ClassVar = {"input_mb": 2}


class TestTerasort(WorkloadContract):
    module = "terasort"


class TestAccounts(WorkloadContract):
    module = str(FILES / "accounts.toml")


class TestCatalogue(WorkloadContract):
    module = str(FILES / "catalogue.toml")


class TestTimeseries(WorkloadContract):
    module = str(FILES / "timeseries.toml")
