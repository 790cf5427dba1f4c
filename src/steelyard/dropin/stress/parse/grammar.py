"""Grammar of one section of a command line: its words, the valid combinations of them, and their defaults.

A section has forms (`-rate threads=? ...` or `-rate threads>=? ... auto`). A word belongs to the first option whose
prefix it begins with; all words together must belong to one form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from steelyard.dropin.stress.parse import distributions
from steelyard.dropin.stress.parse.refusal import Refused, unknown, without_secrets

Kind = Literal["value", "flag", "distribution", "ratio", "group"]


@dataclass(frozen=True)
class Option:
    """One word that a section takes: `prefix` and then a value (`cl=ONE`), a flag, or a group (`ratio(read=1)`)."""

    prefix: str
    kind: Kind = "value"
    pattern: str = ".*"
    default: str | None = None
    required: bool = False
    refused: str = ""
    """Why the option is not supported; if set, the word is refused by name."""
    ignored: str = ""
    """Why the word changes nothing; if set, the word is accepted and named on standard error."""
    allowed: str = ""
    """The allowed values for the error message, if the pattern is not readable."""

    def accepts(self, word: str) -> bool:
        """Whether the word belongs to this option."""
        if self.kind == "flag":
            return word.lower() == self.prefix.lower()
        if self.kind == "group":
            return word.lower().startswith(f"{self.prefix.lower()}(") and word.endswith(")")
        return word.lower().startswith(self.prefix.lower())

    @property
    def what_is_allowed(self) -> str:
        """The allowed values, for error messages."""
        return self.allowed or self.pattern

    def value_of(self, section: str, word: str) -> str:
        """The text after the prefix. Raises Refused if it does not match, or if the option is not supported."""
        name = f"{section} {self.prefix}".rstrip()
        if self.refused:
            raise Refused(name, word, self.refused)
        if self.kind == "flag":
            return "set"
        if self.kind == "group":
            return word[len(self.prefix) + 1 : -1]
        value = word[len(self.prefix) :]
        if self.kind == "distribution":
            distributions.parse(value, name)
        elif self.kind == "ratio":
            distributions.parse_ratio(value, name)
        elif not re.fullmatch(self.pattern, value, re.IGNORECASE):
            raise Refused(name, word, "the value does not fit", self.what_is_allowed)
        return value

    @property
    def shown(self) -> str:
        """How it is typed, with `?` for its value."""
        if self.kind == "group":
            return f"{self.prefix}(?)"
        if self.kind in ("distribution", "ratio"):
            return f"{self.prefix}DIST(?)"
        return f"{self.prefix}?" if self.prefix.endswith(("=", "<", ">")) else self.prefix


@dataclass(frozen=True)
class Section:
    """A command or a `-option` with its forms; the first form whose options hold all words is taken."""

    name: str
    forms: tuple[tuple[Option, ...], ...]

    @property
    def options(self) -> tuple[Option, ...]:
        """Every option once, in order. An option without a prefix takes all remaining words, so it comes last."""
        named = {option.prefix: option for form in self.forms for option in form}
        return tuple(sorted(named.values(), key=lambda option: option.prefix == ""))

    def read(self, words: Sequence[str]) -> Given:
        """Parse the words of the section. Raises Refused."""
        values: dict[str, str] = {}
        for word in words:
            option = next((one for one in self.options if one.accepts(word)), None)
            if option is None:
                raise unknown(self.name, word, "unknown option", (one.shown for one in self.options))
            if option.prefix in values:
                raise Refused(f"{self.name} {option.prefix}", word, "it is given more than once", "once")
            values[option.prefix] = option.value_of(self.name, word)
        self._form_of(values, words)
        return Given(self, values)

    def _form_of(self, values: Mapping[str, str], words: Sequence[str]) -> None:
        for form in self.forms:
            has_all = set(values) <= {option.prefix for option in form}
            if has_all and all(option.prefix in values for option in form if option.required):
                return
        raise Refused(self.name, " ".join(words), "these words do not match any of its forms", " | ".join(self.usages))

    @property
    def usages(self) -> tuple[str, ...]:
        """One usage line per form."""
        lines = []
        for form in self.forms:
            shown = (one.shown if one.required else f"[{one.shown}]" for one in form if one.shown)
            lines.append(" ".join([self.name, *shown]))
        return tuple(lines)


@dataclass(frozen=True)
class Given(Mapping[str, str]):
    """Prefix to value for the words given in a section; `value` adds the defaults of the others."""

    section: Section
    words: Mapping[str, str]

    def __getitem__(self, prefix: str) -> str:
        return self.words[prefix]

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __len__(self) -> int:
        return len(self.words)

    def without_effect(self) -> list[str]:
        """A sentence about each given word that changes nothing here."""
        return [
            f"{self.section.name} {without_secrets(self._word(one))} is ignored: {one.ignored}"
            for one in self.section.options
            if one.ignored and one.prefix in self
        ]

    def _word(self, option: Option) -> str:
        return option.prefix + (self.words[option.prefix] if option.kind != "flag" else "")

    def value(self, prefix: str) -> str:
        """The given value, otherwise the option's default. Raises KeyError for an option without a default."""
        if prefix in self.words:
            return self.words[prefix]
        default = next((one.default for one in self.section.options if one.prefix == prefix), None)
        if default is None:
            raise KeyError(f"{self.section.name} {prefix} has no default")
        return default


def pairs(option: str, inner: str) -> dict[str, str]:
    """The pairs of a group such as `a=1,b=2`. Raises Refused for a malformed or repeated pair."""
    by_name: dict[str, str] = {}
    for part in inner.split(","):
        name, equals, value = part.partition("=")
        if not equals or not name or not value:
            raise Refused(option, part, "this is not name=value", "name=value, separated by commas")
        if name in by_name:
            raise Refused(option, part, f"{name} is given more than once", "each name once")
        by_name[name] = value
    return by_name
