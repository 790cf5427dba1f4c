"""Events: one hierarchy for the journal and for views. Its class says whether an event is kept on the disk.

A kept event is a frozen value with a name; the fields that only watchers need (`live`) are not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, Self

from pydantic import ConfigDict, Field, ValidationError

from steelyard.model.value import Value


class Event:
    """Something that happened while a study was measured; it is written to the journal if it is `Kept`."""


KINDS: Final[dict[str, type[Kept]]] = {}
"""Every kept event by its name."""


def live(default: Any) -> Any:
    """A field that watchers get and that is not written."""
    return Field(default=default, exclude=True)


class Kept(Value, Event):
    """An event of the journal, without its time. Fields that this version does not know are ignored when reading."""

    model_config = ConfigDict(extra="ignore")

    name: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        super().__pydantic_init_subclass__(**settings)
        KINDS[cls.name] = cls

    def fields(self) -> dict[str, Any]:
        """The fields as written to the journal: those that were set."""
        return self.model_dump(mode="json", exclude_unset=True)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """The event with the fields of a line. Raises pydantic's ValidationError."""
        return cls.model_validate({key: fields[key] for key in fields if not cls._is_live(key)})

    @classmethod
    def _is_live(cls, name: str) -> bool:
        return name in cls.model_fields and bool(cls.model_fields[name].exclude)


@dataclass(frozen=True)
class Unknown:
    """An event with an unknown name, or one whose fields do not match its name."""

    name: str
    given: Mapping[str, Any]
    """Its fields."""
    problem: str = ""
    """Problem with its fields; empty if its name is unknown."""

    def fields(self) -> dict[str, Any]:
        """The fields as written in the journal."""
        return dict(self.given)


def event_of(fields: Mapping[str, Any]) -> Kept | Unknown:
    """The event described by a line's fields."""
    written = fields.get("event")
    given = {key: value for key, value in fields.items() if key not in ("event", "t_s")}
    if not isinstance(written, str):
        return Unknown("", given, "no name")
    if written not in KINDS:
        return Unknown(written, given)
    try:
        return KINDS[written].of(given)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        return Unknown(written, given, f"{where}: {fault['msg']}")


class Watcher(Protocol):
    """Anything that listens. It must return quickly and must not raise."""

    def tell(self, event: Event) -> None:
        """Take note of an event."""
        ...


class Silent:
    """Listens and says nothing."""

    def tell(self, event: Event) -> None:
        """Take no note."""
