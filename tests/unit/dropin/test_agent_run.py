"""Orders carried out outside of a study: what is merged, what is passed on, how it ends."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from steelyard.dropin import agent_run
from steelyard.dropin.shortfall import DRAIN_S
from steelyard.model.errors import EngineError, SystemFault
from steelyard.wire.order import Tls
from steelyard.wire.record import Interval
from tests.unit.dropin.fake_agent import CONNECTED, HELLO, FakeAgent, counts, done, interval
from tests.unit.wire import orders

ORDER = orders.order(seed=7)
FIRST = interval(
    "measure",
    100.0,
    [
        counts("read", [(10, 19, 1), (20, 29, 2)]),
        counts("update", [(10, 19, 1)]),
        counts("read", [(10, 19, 3)], measure="service"),
    ],
)
SECOND = interval(
    "measure",
    101.0,
    [
        counts("read", [(20, 29, 4), (90, 99, 1)]),
        counts("read", [(10, 19, 1)], outcome="not-found"),
        counts("read", [(1000, 1009, 1)], outcome="timeout"),
        counts("read", [(2000, 2009, 1)], outcome="overloaded"),
    ],
    errors=2,
)
DONE = done("measure", 10, errors=2, errors_by_kind={"timeout": 1, "overloaded": 1}, error_texts={"overloaded": ["no"]})


def drive(**more: object) -> agent_run.LoadResult:
    return asyncio.run(agent_run.drive(ORDER, **more))  # type: ignore[arg-type]


def test_intervals_are_merged_and_handed_on(fake_agent: FakeAgent) -> None:
    fake_agent.says("load", [HELLO, CONNECTED, FIRST, SECOND, DONE])
    seen: list[Interval] = []
    outcome = drive(on_interval=seen.append, workers=2, variables=agent_run.credentials("ada", "secret"))
    assert [(one.t_s, one.done, one.errors) for one in seen] == [(100.0, 4, 0), (101.0, 8, 2)]
    assert not outcome.interrupted
    assert outcome.connected.server == "fake 1.0"
    main = outcome.main
    assert (main.totals.operations, main.totals.rate_per_s, main.totals.execution_s) == (10, 5.0, 2.0)
    assert main.totals.errors_by_kind == {"timeout": 1, "overloaded": 1}
    assert main.totals.texts == (("overloaded", "no"),)
    reads = main.histogram("response", "read")
    assert reads.buckets == ((10, 19, 2), (20, 29, 6), (90, 99, 1))
    assert (reads.n, reads.max_ns, reads.quantile_ns(0.5)) == (9, 99, 24.5)
    assert main.histogram("response").n == 10
    assert main.histogram("response", outcomes=None).n == 12
    assert main.histogram("service", "read").n == 3
    assert main.tables.operations() == ("read", "update")
    assert main.tables.outcomes("read") == {"ok": 8, "not-found": 1, "timeout": 1, "overloaded": 1}
    assert main.tables.errors("read").buckets == ((1000, 1009, 1), (2000, 2009, 1))
    call = fake_agent.calls[0]
    # Outside of a study one node may be down, and a time limit ends the run.
    assert call["order"] == {**orders.sent(ORDER), "some_contacts": True, "drain_s": DRAIN_S}
    assert call["argv"][-2:] == ["--workers", "2"]
    assert "secret" not in " ".join(call["argv"])
    assert call["variables"] == {agent_run.USER_VARIABLE: "ada", agent_run.PASSWORD_VARIABLE: "secret"}


def test_warm_up_is_a_phase_of_its_own(fake_agent: FakeAgent) -> None:
    warm = interval("warm-up", 99.0, [counts("read", [(1, 1, 5)])])
    fake_agent.says("load", [HELLO, CONNECTED, warm, done("warm-up", 5), FIRST, DONE])
    ended: list[str] = []
    outcome = drive(on_phase=lambda name, _: ended.append(name))
    assert (list(outcome.phases), ended) == (["warm-up", "measure"], ["warm-up", "measure"])
    assert outcome.main.histogram("response").n == 4
    assert outcome.phases["warm-up"].histogram("response").n == 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_totals_so_far(fake_agent: FakeAgent, number: signal.Signals) -> None:
    fake_agent.says("load", [HELLO, CONNECTED, FIRST], waits=True, after_stop=[SECOND, DONE])
    outcome = drive(on_interval=lambda one: os.kill(os.getpid(), number) if one.t_s == 100.0 else None)
    assert outcome.interrupted
    assert (outcome.main.totals.operations, outcome.main.histogram("response").n) == (10, 10)


def test_whoever_drives_can_end_it(fake_agent: FakeAgent) -> None:
    fake_agent.says("load", [HELLO, CONNECTED, FIRST], waits=True, after_stop=[DONE])

    async def until_the_first_interval() -> agent_run.LoadResult:
        stop = asyncio.Event()
        return await agent_run.drive(ORDER, on_interval=lambda _: stop.set(), stop=stop)

    outcome = asyncio.run(until_the_first_interval())
    assert outcome.interrupted
    assert outcome.main.totals.operations == 10


def test_a_second_signal_waits_for_nothing(fake_agent: FakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    # A deaf agent is waited for as long as this.
    monkeypatch.setattr("steelyard.engine.agent.DRAIN_GRACE_S", 0.2)
    fake_agent.says("load", [HELLO, CONNECTED, FIRST], waits=True, deaf=True)

    async def twice() -> None:
        loop = asyncio.get_running_loop()

        def interrupt(_: Interval) -> None:
            # Apart, for signals that come together may be heard as one.
            loop.call_later(0.0, os.kill, os.getpid(), signal.SIGINT)
            loop.call_later(0.1, os.kill, os.getpid(), signal.SIGINT)

        await agent_run.drive(ORDER, on_interval=interrupt)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(twice())


def test_an_agent_that_fails_is_told_with_its_hint(fake_agent: FakeAgent) -> None:
    error = {"record": "error", "message": "127.0.0.1:9: connection refused", "hint": "is the cluster started?"}
    fake_agent.says("load", [HELLO, error], code=3)
    with pytest.raises(EngineError) as caught:
        drive()
    assert "connection refused" in caught.value.message
    assert caught.value.hint == "is the cluster started?"


def test_an_agent_that_dies_is_told_with_its_last_words(fake_agent: FakeAgent) -> None:
    fake_agent.says("load", [HELLO], code=101, stderr="thread 'main' panicked")
    with pytest.raises(EngineError, match=r"exited with code 101: thread 'main' panicked"):
        drive()


def test_an_agent_that_says_nothing_is_given_up(fake_agent: FakeAgent) -> None:
    fake_agent.says("load", [], waits=True)
    with pytest.raises(EngineError, match="printed nothing for"):
        asyncio.run(agent_run.drive(ORDER, silence_limit_s=-0.9))


def test_no_more_workers_than_pay() -> None:
    assert [agent_run.workers_for(places, processors=8) for places in (1, 64, 65, 609, 100_000)] == [1, 1, 2, 8, 8]
    assert agent_run.workers_for(609, rate_per_s=2000.0, processors=8) == 1
    assert agent_run.workers_for(609, rate_per_s=120_000.0, processors=8) == 3


def test_statements_and_their_rows(fake_agent: FakeAgent) -> None:
    fake_agent.says("cql", [{"rows": []}, {"columns": ["a"], "rows": [{"a": 1}]}])
    rows = asyncio.run(agent_run.cql(["127.0.0.1:25001"], ["USE x", "SELECT a FROM t"]))
    assert rows == ((), ({"a": 1},))
    assert fake_agent.calls[0]["argv"][:3] == ["cql", "--contact", "127.0.0.1:25001"]


def test_statements_over_tls(fake_agent: FakeAgent) -> None:
    fake_agent.says("cql", [{"rows": []}])
    asyncio.run(agent_run.cql(["127.0.0.1:25001"], ["USE x"], tls=Tls(ca="/ca.pem", verify="chain")))
    assert fake_agent.calls[0]["argv"][5:] == ["--tls", "--tls-ca", "/ca.pem", "--tls-verify", "chain", "USE x"]


def test_a_refused_statement_is_named(fake_agent: FakeAgent) -> None:
    fake_agent.says("cql", [{"error": {"code": 8704, "message": "no keyspace x"}}], code=1)
    with pytest.raises(SystemFault, match=r"no keyspace x: USE x"):
        asyncio.run(agent_run.cql(["127.0.0.1:25001"], ["USE x"]))


def test_every_contact_is_tried(fake_agent: FakeAgent) -> None:
    fake_agent.says("cql", [], code=3, stderr="refused")
    with pytest.raises(SystemFault, match="refused"):
        asyncio.run(agent_run.cql(["127.0.0.1:25001", "127.0.0.2:25001"], ["USE x"]))
    (call,) = fake_agent.calls
    words = call["argv"]
    named = [words[at + 1] for at, word in enumerate(words) if word == "--contact"]
    assert named == ["127.0.0.1:25001", "127.0.0.2:25001"]
    with pytest.raises(EngineError, match="no node is named"):
        asyncio.run(agent_run.cql([], ["USE x"]))
