"""`steelyard serve STORE`: stores and a study in progress in the browser of this machine."""

from __future__ import annotations

import contextlib
import fcntl
import html
import os
import shutil
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from steelyard import no_links
from steelyard.cli import completion
from steelyard.cli.terminal.output import message_console, say
from steelyard.format import count
from steelyard.model.errors import StoreError
from steelyard.node.signals import as_keyboard_interrupt
from steelyard.serve.access import new_token, page_key, write_private
from steelyard.serve.pages import address as page_of
from steelyard.serve.report_jobs import ENDS_WITH_US, FIGURES, PAGE, TABLES, Kind, Maker
from steelyard.serve.routes import Routes
from steelyard.serve.store_cache import Shelf, find
from steelyard.serve.web import PageServer
from steelyard.store import layout

EXAMPLES = (
    ("steelyard serve", "All studies below ./store; prints the address to open."),
    ("steelyard serve store/quickstart --open", "One study, opened in the browser."),
    ("steelyard serve --port 0", "On any free port."),
)
EXIT_INTERRUPTED = 130
POLL_S = 0.2
SCRATCH, LOCK, DOOR = "steelyard-serve-", ".lock", "open.html"
COMMAND = f"{ENDS_WITH_US}from steelyard.cli.main import main; main()"
ANSWERING = f"{ENDS_WITH_US}import sys; from steelyard.serve.finished_answers import write; write(*sys.argv[1:])"


def serve(
    store: Annotated[
        Path,
        typer.Argument(
            metavar="STORE",
            help="The folder of one study, or a folder of several.",
            autocompletion=completion.stores,
        ),
    ] = Path("store"),
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="The port; 0 takes any free one.")
    ] = 8765,
    address: Annotated[
        str, typer.Option("--address", metavar="ADDRESS", help="127.0.0.1 or ::1; no other is allowed.")
    ] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> int:
    """Serve until interrupted, so the exit code is always 130. Raises StoreError if there is no such
    folder, StudyError for an address that is not loopback, SteelyardError if the port is taken."""
    console = message_console()
    root = store.resolve()
    if not root.is_dir():
        raise StoreError(
            f"{store} is not a folder", "name the folder of one study or of several; `steelyard run` creates one"
        )

    token = new_token()

    def complain(text: str) -> None:
        say(console, text, style="red")

    try:
        with (
            as_keyboard_interrupt(),
            scratch_folder() as scratch,
            contextlib.closing(Shelf(root)) as shelf,
            contextlib.closing(Maker(_argv, scratch)) as maker,
            PageServer(address, port, token, Routes(shelf, maker, page_key=page_key(token)).answer, complain) as server,
        ):
            _say(server, root, console)
            if open_browser:
                # A browser without a window would hold the terminal.
                page = _door(_url(server, root), scratch)
                threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
            server.serve_forever(poll_interval=POLL_S)
    except KeyboardInterrupt:
        say(console, "ended")
    return EXIT_INTERRUPTED


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for generated files that no other user can read. Those of servers that were killed are removed: a lock
    that is free belongs to no running server."""
    shared = Path(tempfile.gettempdir())
    for lock in shared.glob(f"{SCRATCH}*/{LOCK}"):
        with contextlib.suppress(OSError), os.fdopen(no_links.open_file(lock, shared, os.O_RDWR), "rb+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.parent.lstat().st_uid == os.getuid():
                shutil.rmtree(lock.parent, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as folder,
        (Path(folder) / LOCK).open("wb") as held,
    ):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Path(folder)


def _door(url: str, scratch: Path) -> Path:
    """A page that leads to the address. Every user of the machine sees with which words a browser was started, so the
    token must not be one of them."""
    page = scratch / DOOR
    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(url)}"><title>Steelyard</title>'
    write_private(page, text)
    return page


def _url(server: PageServer, root: Path) -> str:
    """The page to begin with, and the token that opens it."""
    alone = (root / layout.STUDY_JSON).is_file()
    return server.access.address(f"{server.url}{page_of(root.name) if alone else '/'}")


def _say(server: PageServer, root: Path, console: Console) -> None:
    print(_url(server, root), flush=True)
    stores = len(find(root))
    say(console, f"{count(stores, 'store')} in {root}")
    say(console, "this machine only, read-only; the token keeps other users out")
    say(console, "press ctrl-C to stop")


def _argv(kind: Kind, store: Path, into: Path) -> list[str]:
    """`steelyard report`, or the answer alone, by this interpreter and from these sources."""
    if kind == "answer":
        return [sys.executable, "-P", "-c", ANSWERING, str(store), str(into)]
    options = {"report": ["--tables", str(into / TABLES)], "figures": ["--figures", str(into / FIGURES)]}[kind]
    return [sys.executable, "-P", "-c", COMMAND, "report", str(store), "--output", str(into / PAGE), *options]
