"""The data state: whose tables there are, and how many operations fill them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from steelyard.events.base import Silent
from steelyard.lab.data_state import DataState
from steelyard.model.data_model import Schema, Table
from steelyard.model.errors import SystemFault
from steelyard.model.study import Data
from steelyard.node.base import Node
from steelyard.system.base import Endpoint
from steelyard.wire.order import Order
from steelyard.wire.program import Program
from tests.unit.wire import made


@dataclass
class Work:
    """A workload on a table of its own."""

    table: str
    records: int = 10
    stride: int = 1
    writes: bool = True
    name: str = "work"

    def schema(self) -> Schema:
        return Schema("k", self.table, tables=(Table(self.table, "id int PRIMARY KEY"),))

    def data(self) -> dict[str, Any]:
        return {"records": self.records}

    def order(self) -> Program:
        return Program(records=self.records, statements=(), populate=(), populate_stride=self.stride, operations=())


@dataclass
class Base:
    """A system that only remembers what it was asked for."""

    name: str = "base"
    created: list[str] = field(default_factory=list)

    async def create_schema(self, nodes: Sequence[Node], schema: Schema) -> None:
        self.created.append(schema.table)

    def endpoint(self, nodes: Sequence[Node], schema: Schema) -> Endpoint:
        return Endpoint("cql", ("127.0.0.1:9042",), schema.keyspace, schema.table)


@dataclass
class Engine:
    """Does as many operations as it is told."""

    operations: int
    driven: list[Order] = field(default_factory=list)

    async def drive(self, order: Order, nodes: Sequence[Node], on_record: Any, timeout_s: float) -> None:
        self.driven.append(order)
        on_record("l1", made.done(phase="populate", operations=self.operations))


def state_of(system: Base, engine: Engine, data: str = "reload") -> DataState:
    kept = Data.model_validate({"state": data})
    return DataState(cast(Any, system), cast(Any, engine), (), (), kept, Silent(), 1.0)


def test_tables_are_made_once_for_each_schema_and_again_after_a_wipe() -> None:
    system = Base()
    state = state_of(system, Engine(10), "continue")
    for table in ("a", "a", "b", "a"):
        asyncio.run(state.ensure(cast(Any, Work(table))))
    assert system.created == ["a", "b"]
    state.emptied()
    asyncio.run(state.ensure(cast(Any, Work("a"))))
    assert system.created == ["a", "b", "a"]


@pytest.mark.parametrize(("records", "stride", "operations"), [(10, 1, 10), (10, 5, 2), (11, 5, 3)])
def test_filling_has_an_operation_for_each_stride(records: int, stride: int, operations: int) -> None:
    work = cast(Any, Work("a", records, stride))
    assert asyncio.run(state_of(Base(), Engine(operations)).ensure(work)) == "filled"
    with pytest.raises(SystemFault, match=rf"{operations - 1:,} of {operations:,} operations"):
        asyncio.run(state_of(Base(), Engine(operations - 1)).ensure(work))


def test_empty_tables_need_no_filling() -> None:
    engine = Engine(0)
    assert asyncio.run(state_of(Base(), engine).ensure(cast(Any, Work("a", records=0)))) == "filled"
    assert engine.driven == []
