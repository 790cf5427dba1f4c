"""Contract tests of a workload; authors of workloads inherit them.

    class TestMyWorkload(WorkloadContract):
        module = "path/to/my_workload.py"       # module name, entry point, path or workload file, as in a study
        settings = {"records": 1000}

Nothing is sent: the agent prints the operations that it would send, so `steelyard-agent` must be installed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from steelyard import engine_order
from steelyard.field_docs import field_docs
from steelyard.model.load import Load
from steelyard.model.trial_settings import TrialSettings
from steelyard.node import agent
from steelyard.plugins.find import Plugins, any_file
from steelyard.plugins.parts import Parts
from steelyard.system.base import Endpoint
from steelyard.wire.order import Jobs, Order
from steelyard.workload.base import Explains, Workload

OPERATIONS = 200
AGENT_TIMEOUT_S = 60.0
KINDS = frozenset({"read", "update", "insert", "scan", "read_modify_write"})
"""YCSB operations with a known cost for estimates."""
NOWHERE = ("127.0.0.1:9",)
"""Contacts of an order that is never executed."""


class WorkloadContract:
    """Inherit it and set `module`; everything else has a default."""

    module: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}

    def workload(self) -> Workload:
        """The workload that a study with these settings would get."""
        return Parts(Plugins(trust=any_file)).workload(
            TrialSettings.model_validate({"workload": {"name": self.module, **self.settings}})
        )

    def orders(self, seed: int) -> tuple[Order, Order]:
        """The orders that fill the tables and load them."""
        workload = self.workload()
        schema = workload.schema()
        endpoint = Endpoint(workload.protocols[0], NOWHERE, schema.keyspace, schema.table)
        filling = engine_order.populate(endpoint, schema, workload, 1)
        return filling, engine_order.measure(Load(operations=OPERATIONS), endpoint, schema, workload, seed)

    def test_says_what_it_is(self) -> None:
        """A workload states its name, and whether a trial changes the data."""
        workload = self.workload()
        assert workload.name
        assert workload.protocols
        assert isinstance(workload.writes, bool)

    def test_refuses_misspelt_settings(self) -> None:
        """A setting that does not exist is refused before anything starts."""
        model = Plugins(trust=any_file).settings_model("workload", self.module)
        with pytest.raises(ValidationError, match="no_such_setting"):
            model.model_validate({**self.settings, "no_such_setting": 1})

    def test_complete_settings_mean_the_same_again(self) -> None:
        """Settings with all defaults filled in, as stored in JSON, give the same workload."""
        model = Plugins(trust=any_file).settings_model("workload", self.module)
        complete = json.loads(model.model_validate(dict(self.settings)).model_dump_json())
        settings = TrialSettings.model_validate({"workload": {"name": self.module, **complete}})
        again = Parts(Plugins(trust=any_file)).workload(settings)
        first = self.workload()
        assert again.order() == first.order()
        assert again.data() == first.data()
        assert json.loads(model.model_validate(complete).model_dump_json()) == complete

    def test_every_setting_says_what_it_means(self) -> None:
        """Every setting has a description, which is shown to authors of studies."""
        model = Plugins(trust=any_file).settings_model("workload", self.module)
        bare = sorted(model.model_fields.keys() - field_docs(model).keys())
        assert not bare, f"no description: {', '.join(bare)}"

    def test_is_the_same_every_time_it_is_asked(self) -> None:
        """Its work survives JSON, and its data are copies: changing them does not change the workload."""
        workload, other = self.workload(), self.workload()
        work, data = workload.order(), workload.data()
        assert type(work).model_validate_json(work.model_dump_json()) == work
        assert json.loads(json.dumps(data)) == data
        data["no such key"] = 1
        assert "no such key" not in workload.data()
        assert workload.order() == other.order()
        assert workload.data() == other.data()
        assert workload.schema() == other.schema()

    def test_its_tables_can_be_made(self) -> None:
        """The schema is complete: a keyspace, and a statement for every table."""
        schema = self.workload().schema()
        assert schema.keyspace in schema.create_keyspace(1)
        statements = schema.create_rest()
        for table in schema.all_tables():
            assert any(schema.full_name(table.name) in text for text in statements), table.name

    def test_data_say_how_many_records_there_are(self) -> None:
        """The data that identify a filled state include its size."""
        assert int(self.workload().data()["records"]) >= 0

    def test_operations_follow_from_seed_and_index(self) -> None:
        """The same seed gives the same operations, from any index on; another seed gives others. Jobs are all alike."""
        if isinstance(self.workload().order(), Jobs):
            return
        _, load = self.orders(seed=1)
        _, other = self.orders(seed=2)
        whole = operations(load, 0, OPERATIONS)
        assert len(whole) == OPERATIONS
        assert operations(load, 0, OPERATIONS) == whole
        half = OPERATIONS // 2
        assert operations(load, half, OPERATIONS - half) == whole[half:], "an operation depends on those before it"
        assert operations(other, 0, OPERATIONS) != whole

    def test_filling_writes_every_record(self) -> None:
        """The agent also accepts the order that fills the tables."""
        filling, _ = self.orders(seed=1)
        if isinstance(filling.work, Jobs):
            return
        count = min(OPERATIONS, engine_order.filling_operations(self.workload()))
        assert len(operations(filling, 0, count)) == count

    def test_explains_what_it_does(self) -> None:
        """An explanation has shares with sum 1, and cost kinds that estimates know."""
        workload = self.workload()
        if not isinstance(workload, Explains):
            return
        explanation = workload.explain()
        assert explanation.about
        assert explanation.filling
        assert explanation.records == int(workload.data()["records"])
        assert sum(operation.share for operation in explanation.operations) == pytest.approx(1.0)
        assert {operation.kind for operation in explanation.operations} <= KINDS
        assert all(operation.bytes >= 0 and operation.does for operation in explanation.operations)
        writes = any(operation.kind not in ("read", "scan") for operation in explanation.operations if operation.share)
        assert writes <= workload.writes, "an operation that writes changes the data"


def operations(order: Order, first: int, count: int) -> list[str]:
    """The operations that the agent would send for an order, one per line with all values."""
    words = ["ops", "--order", "-", "--first", str(first), "--count", str(count), "--values"]
    argv = [str(agent.find()), *words]
    text = order.text
    done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=AGENT_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
