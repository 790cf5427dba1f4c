"""Study fields by dotted name: existence, owning plug-in, and whether they are hard to change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from steelyard.model.client import held
from steelyard.model.disruption import DisruptionChoice
from steelyard.model.link import LinkChoice
from steelyard.model.load import Load
from steelyard.model.named_level import Level
from steelyard.model.node_limits import NodeLimits
from steelyard.model.policy import PolicyChoice
from steelyard.model.study import ALIASES, Data, LoadSiteChoice, SiteChoice, Study
from steelyard.model.value import Choice
from steelyard.plugins.find import Plugins
from steelyard.study.missing import Unchecked, settings_model
from steelyard.tomlfile.fields import lookup

SECTIONS: dict[str, type[BaseModel]] = {
    "site": SiteChoice,
    "system": Choice,
    "workload": Choice,
    "load": Load,
    "data": Data,
    "node": NodeLimits,
    "link": LinkChoice,
    "load_site": LoadSiteChoice,
    "policy": PolicyChoice,
    "disruption": DisruptionChoice,
}
"""Tables whose fields can be factors, in the order of complete settings."""

SEAMS = {
    "site": "site", "system": "system", "workload": "workload", "load_site": "site", "policy": "policy",
    "disruption": "disruption",
}  # fmt: skip
"""Sections whose other keys are settings of a plug-in, and the seam whose plug-in it is."""
FIXED_AT_START = ("site", "system", "data", "node", "link", "load_site", "policy", "disruption")
"""Sections whose hard fields distinguish a start from others."""
OF_CONTROLS = ("policy", "disruption")
"""Sections that need not name a plug-in: a control then names none, and has none of the settings of others."""


def dotted(factor: str) -> str:
    """The field that a factor sets: `nodes` -> `site.nodes`, `client.routing` -> `load.routing`."""
    return ALIASES.get(factor, held(factor))


def short(factor: str) -> str:
    """The name used in plans and tables: `site.nodes` -> `nodes`, `client.routing` -> `load.routing`."""
    return next((alias for alias, name in ALIASES.items() if name == factor), held(factor))


def names_in_use(section: str, base: str, levels: Iterable[Mapping[str, Level]]) -> tuple[str, ...]:
    """Names of the plug-ins of a section in a study: the study's own, and those that treatments select."""
    alias = short(f"{section}.name")
    names = [base, *(str(treatment[alias]) for treatment in levels if alias in treatment)]
    return tuple(dict.fromkeys(name for name in names if name))


def names_of(study: Study) -> dict[str, tuple[str, ...]]:
    """The plug-ins that a study names, by section: its own, and those that its levels select."""
    levels: list[Mapping[str, Level]] = [study.fields_of(treatment) for treatment in study.design.treatments]
    levels += [study.fields_of({factor: level}) for factor, every in study.factors.items() for level in every]
    return {section: names_in_use(section, getattr(study, section).name, levels) for section in SEAMS}


def models_of(section: str, names: Sequence[str], plugins: Plugins) -> tuple[type[BaseModel], ...]:
    """The models that define a section's fields: the section's own, then the settings of each plug-in in use."""
    own = SECTIONS[section]
    if section not in SEAMS:
        return (own,)
    return (own, *(settings_model(plugins, SEAMS[section], name) for name in names))


def allowed_factors(section: str, names: Sequence[str], plugins: Plugins) -> tuple[str, ...]:
    """Every field of a section that can be a factor, by its short name."""
    fields = dict.fromkeys(field for model in models_of(section, names, plugins) for field in model.model_fields)
    return tuple(short(f"{section}.{field}") for field in fields)


def exists(factor: str, names: Mapping[str, Sequence[str]], plugins: Plugins) -> bool:
    """Whether the field of a factor exists. `names`: section -> names of the plug-ins in use."""
    section, _, rest = dotted(factor).partition(".")
    if section not in SECTIONS or not rest:
        return False
    return any(
        model is Unchecked or lookup(model, rest.split(".")) is not None
        for model in models_of(section, names.get(section, ()), plugins)
    )


def hard(factor: str, names: Mapping[str, Sequence[str]], plugins: Plugins) -> bool:
    """Whether a change of the factor needs a new cluster.

    For `load` only the engine does, for `site`, `data`, `node`, `link`, `load_site`, `policy` and `disruption` every
    field does. A system's settings do unless their field is marked `easy`; a workload's do not unless their field is
    marked `easy: False`.
    """
    section, _, rest = dotted(factor).partition(".")
    if rest == "engine" and section == "load":
        return True
    if section == "load" or dotted(factor) == "workload.name":
        return False
    if section in ("data", "node", "link", "load_site", *OF_CONTROLS) or rest in SECTIONS[section].model_fields:
        return True
    default = section == "workload"
    fields = [lookup(settings_model(plugins, section, name), rest.split(".")) for name in names.get(section, ())]
    return not all(_easy(field, default) for field in fields if field is not None)


def _easy(field: FieldInfo, default: bool) -> bool:
    extra = field.json_schema_extra
    return bool(extra.get("easy", default)) if isinstance(extra, dict) else default


def put(settings: dict[str, Any], field: str, level: Level) -> None:
    """Set a dotted field in nested tables, in place."""
    *outer, last = field.split(".")
    table = settings
    for part in outer:
        inner = table.get(part)
        table[part] = dict(inner) if isinstance(inner, Mapping) else {}
        table = table[part]
    table[last] = level
