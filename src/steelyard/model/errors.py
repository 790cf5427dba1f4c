"""Exceptions for users: each carries a message, a hint, and its facts as fields."""

from __future__ import annotations

from collections.abc import Sequence


class SteelyardError(Exception):
    """An error (`message`), and how to fix it (`hint`), which a traceback ends with."""

    _hint = ""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def hint(self) -> str:
        """How to fix it."""
        return self._hint

    @hint.setter
    def hint(self, hint: str) -> None:
        self.__notes__ = [*filter(None, [hint]), *self.notes]
        self._hint = hint

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that were added to the error while it was passed on."""
        return tuple(getattr(self, "__notes__", ())[bool(self._hint) :])

    @property
    def in_a_line(self) -> str:
        """Message and hint, where there is room for one text only."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class StudyError(SteelyardError):
    """The user's study file is wrong: where, what was read, what is allowed. `errors` lists each error if there are
    several."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        path: str = "",
        line: int = 0,
        key: str = "",
        read: object = None,
        allowed: Sequence[str] = (),
        errors: Sequence[StudyError] = (),
    ) -> None:
        super().__init__(message, hint)
        self.path = path
        self.line = line
        self.key = key
        self.read = read
        self.allowed = tuple(allowed)
        self.errors = tuple(errors) or (self,)


class NotQuiet(SteelyardError):
    """The machine was not quiet in time: no trial was begun, and none is lost."""


class SiteError(SteelyardError):
    """The site could not lend nodes, or take them back."""


class LastingSiteError(SiteError):
    """The site could not lend nodes, nor will it when it is asked again: an image that cannot be had, a setting that it
    refuses. A study ends at the first."""


class NodeError(SteelyardError):
    """A node did not do what it was asked to do."""

    def __init__(self, message: str, hint: str = "", *, node: str = "") -> None:
        super().__init__(message, hint)
        self.node = node


class CommandFailed(NodeError):
    """A command on a node ended with an exit code other than 0, or timed out (`exit_code` None)."""

    def __init__(
        self, node: str, argv: Sequence[str], exit_code: int | None, stderr_tail: str = "", hint: str = ""
    ) -> None:
        end = "did not end in time" if exit_code is None else f"exited with code {exit_code}"
        tail = f": {stderr_tail.strip()}" if stderr_tail.strip() else ""
        super().__init__(f"{node or 'this machine'}: {' '.join(argv[:6])} {end}{tail}", hint, node=node)
        self.argv = tuple(argv)
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


class ClockError(NodeError):
    """The clock of a node could not be read: times that the node says cannot be put on the conductor's clock."""


class SystemFault(SteelyardError):
    """The system under test failed (never ready, died, wrong settings in force): a result, not an accident."""

    def __init__(self, message: str, hint: str = "", *, node: str = "", system: str = "") -> None:
        super().__init__(message, hint)
        self.node = node
        self.system = system
        self.evidence: dict[str, dict[str, bytes]] = {}
        """Node to log name to the end of that log, saved before the nodes were released."""


class EngineError(SteelyardError):
    """The load generator failed: the laboratory's fault."""


class ProbeError(SteelyardError):
    """An instrument failed: the laboratory's fault."""


class FileError(SteelyardError):
    """A file cannot be read or written: its disk is full, read-only or failing, or permission is missing."""

    def __init__(self, message: str, hint: str = "", *, path: str = "") -> None:
        super().__init__(message, hint)
        self.path = path


class StoreError(SteelyardError):
    """The store cannot be read or written: not sealed, another format, wrong checksum. `what` is wrong with the file at
    `path`: the message without its name."""

    def __init__(self, message: str, hint: str = "", *, path: str = "", what: str = "") -> None:
        super().__init__(message, hint)
        self.path = path
        self.what = what or message


class OtherFormatError(StoreError):
    """A file of the store was written by another version: whole, but not for this one to read."""
