"""Reading in parallel: trials are read by other processes, of this machine or of a Dask cluster.

What is computed over trials is computed here, in their order and not in that in which they were read: numbers and pages
are the same to the last bit.
"""

from __future__ import annotations

import contextlib
import functools
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final, TypeVar

from steelyard import no_links
from steelyard.heavy import distributed
from steelyard.model.damage import Damage
from steelyard.model.errors import SteelyardError, StoreError, StudyError
from steelyard.store import layout
from steelyard.store.read import Store

Task = TypeVar("Task")
Result = TypeVar("Result")
ANSWER_S: Final = 10.0
"""Longest wait for the answer of a scheduler."""
ADDRESS: Final = re.compile(r"(tcp|tls|ws|wss|ucx)://\S+:\d+")
HINT: Final = "start one with `dask scheduler`, and name the address that it prints, such as tcp://192.0.2.1:8786"


@contextlib.contextmanager
def connected(address: str, answer_s: float = ANSWER_S) -> Iterator[distributed.Client]:
    """A client of a Dask scheduler. Raises SteelyardError if that is no address, if Dask is not installed, or if no
    scheduler answers."""
    if not ADDRESS.fullmatch(address):
        raise SteelyardError(f"{address!r} is no address of a Dask scheduler", f"{HINT}; its port is 8786 by default")
    try:
        client = distributed.Client(address, timeout=answer_s, set_as_default=False)
    except ModuleNotFoundError as error:
        hint = "pip install 'steelyard[labs]'"
        raise SteelyardError("Dask is not installed here: the package distributed is missing", hint) from error
    except (OSError, ValueError) as error:
        raise SteelyardError(f"no Dask scheduler answers at {address}: {error}", HINT) from error
    with client:
        yield client


@contextlib.contextmanager
def readers(workers: int = 1, cluster: str = "") -> Iterator[Executor | None]:
    """Who reads trials: a number of processes of this machine, or the workers of the Dask scheduler at an address;
    None: this process. Raises StudyError if both are asked for."""
    if cluster and workers > 1:
        raise StudyError("--workers and --cluster both say who reads", "ask for one of them", key="--cluster")
    if cluster:
        with connected(cluster) as client:
            yield client.get_executor(pure=False)
    elif workers > 1:
        # A new interpreter each: one that is forked would have the locks of this one's threads, but not the threads.
        with ProcessPoolExecutor(workers, get_context("spawn"), _not_interrupted) as pool:
            yield pool
    else:
        yield None


def _not_interrupted() -> None:
    """Leave ctrl-C to the process that asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def mapped(
    function: Callable[[Path, Task], Result], folder: Path, tasks: Iterable[Task], executor: Executor | None
) -> Iterator[Result]:
    """`function(folder, task)` of each task, in their order; `folder` is a store's. Raises StoreError if a worker does
    not see it."""
    if executor is None:
        return (function(folder, task) for task in tasks)
    return executor.map(functools.partial(_elsewhere, function, folder.absolute()), tasks)


def _elsewhere(function: Callable[[Path, Task], Result], folder: Path, task: Task) -> Result:
    if not no_links.is_there(folder / layout.STUDY_JSON):
        hint = "keep the store on a file system that all workers have at the same place, or read it with --workers"
        raise StoreError(f"a worker of the cluster does not see {folder}", hint, path=str(folder))
    return function(folder, task)


def of_store(
    function: Callable[[Store, Task], Result], store: Store, tasks: Sequence[Task], executor: Executor | None
) -> list[Result]:
    """`function(store, task)` of each task, in their order. Damages that other processes meet are the store's."""
    if executor is None:
        return [function(store, task) for task in tasks]
    results = []
    opened = functools.partial(_opened, function, type(store))
    for result, damages in mapped(opened, store.folder, tasks, executor):
        store.take(damages)
        results.append(result)
    return results


def _opened(
    function: Callable[[Store, Task], Result], kind: type[Store], folder: Path, task: Task
) -> tuple[Result, tuple[Damage, ...]]:
    store = kind(folder)
    return function(store, task), store.damages
