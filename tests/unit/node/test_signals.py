from __future__ import annotations

import asyncio
import os
import signal

import pytest

from steelyard.node import signals


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_a_signal_is_heard_by_the_event_loop_and_by_nobody_afterwards() -> None:
    async def body() -> None:
        hup, term = asyncio.Event(), asyncio.Event()
        with signals.heard({signal.SIGHUP: hup.set, signal.SIGTERM: term.set}):
            send(signal.SIGHUP)
            await asyncio.wait_for(hup.wait(), 30)
            assert not term.is_set()
            send(signal.SIGTERM)
            await asyncio.wait_for(term.wait(), 30)

    began_with = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        before = [signal.getsignal(number) for number in signals.ENDING]
        asyncio.run(body())
        assert [signal.getsignal(number) for number in signals.ENDING] == before
    finally:
        signal.signal(signal.SIGHUP, began_with)


@pytest.mark.parametrize("ignored", [signal.SIGINT, signal.SIGHUP], ids=["background", "nohup"])
def test_a_signal_that_is_ignored_stays_ignored_and_sigterm_works(ignored: signal.Signals) -> None:
    async def body() -> None:
        term = asyncio.Event()
        with signals.heard({ignored: term.set, signal.SIGTERM: term.set}):
            send(ignored)
            await asyncio.sleep(0.05)
            assert not term.is_set()
            send(signal.SIGTERM)
            await asyncio.wait_for(term.wait(), 30)

    began_with = {number: signal.getsignal(number) for number in signals.ENDING}
    signal.signal(ignored, signal.SIG_IGN)
    try:
        asyncio.run(body())
        for block in (signals.as_keyboard_interrupt, signals.like_ctrl_c):
            with block():
                send(ignored)
            with pytest.raises(KeyboardInterrupt), block():
                send(signal.SIGTERM)
            assert signal.getsignal(ignored) is signal.SIG_IGN
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    finally:
        for number, handler in began_with.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_does_what_ctrl_c_does_in_an_event_loop_and_without_one(number: signal.Signals) -> None:
    done = []

    async def body() -> None:
        try:
            send(number)
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0)
            done.append("put away")

    began_with = {number: signal.signal(number, signal.SIG_DFL), signal.SIGINT: signal.getsignal(signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), signals.like_ctrl_c():
            asyncio.run(body())
        assert done == ["put away"]
        with pytest.raises(KeyboardInterrupt), signals.like_ctrl_c():
            send(number)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        for each, handler in began_with.items():
            signal.signal(each, handler)


@pytest.mark.parametrize("number", signals.ENDING)
def test_a_task_is_cancelled_once_and_may_put_away(number: signal.Signals) -> None:
    done = []

    async def body() -> None:
        with signals.interruptible():
            try:
                send(number)
                await asyncio.sleep(30)
            finally:
                send(number)
                await asyncio.sleep(0.05)
                done.append("put away")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(body())
    assert done == ["put away"]


def test_a_task_that_is_cancelled_for_another_reason_is_not_interrupted() -> None:
    async def waits() -> None:
        with signals.interruptible():
            await asyncio.sleep(30)

    async def body() -> None:
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(body())


@pytest.mark.parametrize("number", signals.ENDING)
def test_without_a_loop_a_signal_is_ctrl_c_and_the_next_changes_nothing(number: signal.Signals) -> None:
    before = [signal.signal(one, signal.SIG_DFL) for one in signals.ENDING]  # also where the tests run under nohup
    try:
        with pytest.raises(KeyboardInterrupt), signals.as_keyboard_interrupt():
            send(number)
        send(number)
    finally:
        for one, handler in zip(signals.ENDING, before, strict=True):
            signal.signal(one, handler)


def test_without_a_loop_nothing_is_left_behind() -> None:
    before = [signal.getsignal(one) for one in signals.ENDING]
    with signals.as_keyboard_interrupt():
        assert [signal.getsignal(one) for one in signals.ENDING] != before
    assert [signal.getsignal(one) for one in signals.ENDING] == before
