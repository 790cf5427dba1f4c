"""Steps of lending are undone if one fails; taking back goes on after an error and keeps the record then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from steelyard.leases import records as lease_records
from steelyard.leases.lease import Lease
from steelyard.leases.steps import Step, perform, taking_back, undone_on_error
from steelyard.model.errors import EngineError, SiteError
from tests.unit.leases.test_records import record


@pytest.fixture
def lease(tmp_path: Path) -> Lease:
    path = lease_records.record_path(tmp_path, "0a1b2c3d")
    lease_records.write(path, record())
    return record().lease(path)


def test_a_failing_step_is_undone_and_its_error_wins() -> None:
    done: list[str] = []

    async def release() -> None:
        done.append("released")
        raise SiteError("the disk is gone")

    async def fail() -> None:
        raise EngineError("no agent")

    async def lend() -> None:
        async with undone_on_error(release):
            await perform(Step("fails", fail))

    with pytest.raises(EngineError, match="no agent") as failed:
        asyncio.run(lend())
    assert done == ["released"]
    assert failed.value.__notes__ == ["while taking the lease back: the disk is gone"]


def test_steps_that_succeed_stay() -> None:
    done: list[str] = []

    async def note(word: str) -> None:
        done.append(word)

    async def lend() -> None:
        async with undone_on_error(lambda: note("released")):
            await perform(Step("first", lambda: note("first")))

    asyncio.run(lend())
    assert done == ["first"]


def test_a_cancelled_lease_is_released_to_the_end_although_it_is_cancelled_again() -> None:
    done: list[str] = []

    async def release() -> None:
        done.append("begun")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        done.append("ended")

    async def lend() -> None:
        async with undone_on_error(release):
            await asyncio.sleep(60)

    async def cancelled() -> None:
        task = asyncio.ensure_future(lend())
        await asyncio.sleep(0)
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert done == ["begun", "ended"]


async def _take_back(lease: Lease, *errors: SiteError | EngineError | None) -> list[str]:
    done: list[str] = []

    async def act(number: int, error: SiteError | EngineError | None) -> None:
        done.append(str(number))
        if error is not None:
            raise error

    async with taking_back(lease, "say it again") as attempt:
        for number, error in enumerate(errors):
            await attempt(act(number, error))
        await attempt(*(act(number, error) for number, error in enumerate(errors)))
    return done


def test_the_record_goes_last(lease: Lease) -> None:
    assert asyncio.run(_take_back(lease, None, None)) == ["0", "1", "0", "1"]
    assert not lease.record.exists()


def test_every_error_is_named_and_the_record_is_kept(lease: Lease) -> None:
    with pytest.raises(SiteError) as failed:
        asyncio.run(_take_back(lease, SiteError("first"), None, EngineError("second")))
    assert failed.value.message == ("lease 0a1b2c3d was not fully taken back: first; second; first; second")
    assert failed.value.hint == "say it again"
    assert lease.record.exists()
