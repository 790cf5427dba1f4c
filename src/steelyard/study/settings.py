"""Complete settings of a treatment: the study's tables with the treatment's levels and all plug-in defaults.

A trial's id hashes them (`judging.settings_hash`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from steelyard.format import listed
from steelyard.model.errors import StudyError
from steelyard.model.load import for_schedule
from steelyard.model.named_level import Level
from steelyard.model.policy import NONE, STATIC_MAX
from steelyard.model.study import SAME_FACTOR, Study
from steelyard.plugins.find import Plugins, how_to_add
from steelyard.plugins.find import names as names_of_plugins
from steelyard.study import links, profiles
from steelyard.study.fields import FIXED_AT_START, OF_CONTROLS, SEAMS, SECTIONS, dotted, hard, names_of, put
from steelyard.study.missing import misspelt, settings_model
from steelyard.tomlfile.problems import from_validation, problem
from steelyard.tomlfile.validated import validated

UNNAMED: Mapping[str, str] = {"load_site": "", **dict.fromkeys(OF_CONTROLS, NONE)}
"""Sections that need not name a plug-in, and which they then have; empty: none."""
NO_PLUGINS_NAMED: Mapping[str, Sequence[str]] = {}


def settings_of(
    study: Study,
    treatment: Mapping[str, Level],
    plugins: Plugins | None = None,
    named: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Complete settings under a treatment: site, system, workload, load, data, node, link, load_site, and policy and
    disruption where there is one. `named`: the plug-ins that the study names, if known already. Raises StudyError if
    not valid."""
    fields = study.fields_of(treatment)
    settings, errors = complete(tables_of(study), fields, plugins or Plugins(), named or names_of(study))
    if errors:
        raise errors[0]
    return settings


def tables_of(study: Study) -> dict[str, dict[str, Any]]:
    """The tables of a study that treatments change."""
    return {section: getattr(study, section).model_dump(mode="json") for section in SECTIONS}


def complete(
    tables: Mapping[str, Mapping[str, Any]],
    fields: Mapping[str, Level],
    plugins: Plugins,
    named: Mapping[str, Sequence[str]] = NO_PLUGINS_NAMED,
) -> tuple[dict[str, Any], list[StudyError]]:
    """Apply the fields that a treatment sets to a study's tables, and validate them; returns the settings and their
    problems. `named`: the plug-ins that the study names, by section, whose sub-tables are settings of one of them."""
    levels = {dotted(name): level for name, level in fields.items()}
    changed: dict[str, Any] = {section: dict(tables.get(section, {})) for section in SECTIONS}
    for seam in SEAMS:
        name = levels.get(f"{seam}.name", changed[seam].get("name"))
        changed[seam] = _of_plugin(changed[seam], name, named.get(seam, ()))
    if (schedule := levels.get("load.schedule", changed["load"].get("schedule"))) != changed["load"].get("schedule"):
        changed["load"] = for_schedule(changed["load"], schedule)
    for name, level in levels.items():
        put(changed, name, level)
    settings: dict[str, Any] = {}
    errors = _profile_problems(changed, plugins)
    try:
        links.resolve(changed, plugins)
    except StudyError as error:
        errors.append(error)
    for section, model in SECTIONS.items():
        table = changed[section]
        own = {key: item for key, item in table.items() if key in model.model_fields or section not in SEAMS}
        settings[section] = _validated(own, section, model, errors)
        name = table.get("name", UNNAMED.get(section))
        if section in SEAMS and isinstance(name, str):
            rest = {key: item for key, item in table.items() if key not in own}
            if section in OF_CONTROLS:
                rest = _without_others(section, rest, name, named.get(section, ()), plugins)
            settings[section] |= _plugin_settings(plugins, section, name, rest, errors)
    errors += [*misspelt(settings), *_load_nodes_twice(settings)]
    if settings["policy"].get("name") == STATIC_MAX:
        settings["site"] |= {"nodes": settings["policy"]["max_nodes"]}
    for section in OF_CONTROLS:
        if "name" not in settings[section]:
            del settings[section]  # as in settings written before there were such sections: ids hash them
    return _with_beginning_of_limits(settings, _own_processors(changed, plugins)), errors


def _profile_problems(changed: dict[str, Any], plugins: Plugins) -> list[StudyError]:
    """Resolve the profile of a treatment into its tables, in place; the problems with it."""
    try:
        system = settings_model(plugins, "system", str(changed["system"].get("name", "")))
    except StudyError:
        return []  # reported with the system's settings
    try:
        profiles.resolve(changed, plugins, system.model_fields)
    except StudyError as error:
        return [error]
    return []


def _of_plugin(table: Mapping[str, Any], name: object, named: Sequence[str]) -> dict[str, Any]:
    """A seam's table for one plug-in: keys shared with others, then those of its own sub-table."""
    subtables = subtables_of(table, named)
    shared = {key: item for key, item in table.items() if key not in subtables}
    return {**shared, **subtables.get(str(name), {}), **({"name": shared["name"]} if "name" in shared else {})}


def subtables_of(table: Mapping[str, Any], named: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The sub-tables of a seam's table that hold settings of one plug-in that the study names."""
    return {key: item for key, item in table.items() if key in named and isinstance(item, Mapping)}


def _load_nodes_twice(settings: Mapping[str, Any]) -> Iterator[StudyError]:
    """A number of load nodes of the databases' site where another site lends them."""
    load_nodes, load_site = settings["site"].get("load_nodes", 1), settings["load_site"]
    if load_site.get("name") and load_nodes != 1:
        what = f"the site {load_site['name']} of [load_site] lends the load nodes; write load_site.nodes = {load_nodes}"
        yield problem("site.load_nodes", load_nodes, what, near=False)


def _own_processors(changed: Mapping[str, Any], plugins: Plugins) -> bool:
    """Whether the nodes of the chosen site have their own processors, so that `node.cpus` is their number and no
    quota: modules of such sites say OWN_PROCESSORS."""
    try:
        return bool(getattr(plugins.find("site", str(changed["site"].get("name", ""))), "OWN_PROCESSORS", False))
    except StudyError:
        return False  # reported with the site's settings


def _with_beginning_of_limits(settings: dict[str, Any], own_processors: bool) -> dict[str, Any]:
    """The settings with `node.cpus_from` where processors are limited: by default warm for a quota, otherwise start."""
    node = settings["node"]
    if node.get("cpus") is None or node.get("cpus_from") is not None:
        return settings
    quota = node.get("cpu_limit") != "cpuset" and not own_processors
    return {**settings, "node": {**node, "cpus_from": "warm" if quota else "start"}}


def _validated(
    table: Mapping[str, Any], prefix: str, model: type[BaseModel], errors: list[StudyError], also: tuple[str, ...] = ()
) -> dict[str, Any]:
    try:
        return validated(model, table).model_dump(mode="json")
    except ValidationError as error:
        errors += from_validation(error, prefix, model, also)
        return {}


def _plugin_settings(
    plugins: Plugins, section: str, name: str, table: Mapping[str, Any], errors: list[StudyError]
) -> dict[str, Any]:
    own, seam = tuple(SECTIONS[section].model_fields), SEAMS[section]
    if not name:
        errors += [problem(f"{section}.{key}", table[key], f"needs {section}.name") for key in table]
        return {}
    try:
        model = settings_model(plugins, seam, name)
    except StudyError as error:
        errors.append(
            problem(f"{section}.name", name, error.message, error.allowed, hint=how_to_add(seam))
            if error.allowed
            else StudyError(error.in_a_line, key=f"{section}.name", read=name)
        )
        return {}
    unknown = [] if model.model_config.get("extra") == "allow" else [key for key in table if key not in _keys(model)]
    errors += [
        (_of_another(section, key, table[key], name, plugins) if section in OF_CONTROLS else None)
        or problem(f"{section}.{key}", table[key], "no such key", (*own, *_keys(model)))
        for key in unknown
    ]
    known = {key: item for key, item in table.items() if key not in unknown}
    return _validated(known, section, model, errors, own)


def _of_another(section: str, key: str, read: object, name: str, plugins: Plugins) -> StudyError | None:
    """The error of a key that is a setting of another policy or disruption than the named one; None if it is of
    none."""
    having = []
    for each in names_of_plugins(section):
        with contextlib.suppress(StudyError):  # one that cannot be loaded
            having += [each] if key in _keys(settings_model(plugins, section, each)) else []
    if not having:
        return None
    what = (
        f"a setting of {section} {listed(having, 'or')}, and the {section} is {name}; name it ({section}.name = "
        f'"{having[0]}"), or make the {section} a factor ({section} = ["{NONE}", "{having[0]}"])'
    )
    return problem(f"{section}.{key}", read, what, near=False)


def _without_others(
    section: str, table: Mapping[str, Any], name: str, named: Sequence[str], plugins: Plugins
) -> dict[str, Any]:
    """The settings of a policy or disruption without those that only others of the study have: a control has none."""
    keys = {}
    for each in {name, *named}:
        with contextlib.suppress(StudyError):  # reported with its name
            keys[each] = set(_keys(settings_model(plugins, section, each)))
    others = {key for of in keys.values() for key in of} - keys.get(name, set())
    return {key: item for key, item in table.items() if key not in others}


def _keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(model.model_fields)


def is_hard(study: Study, factor: str, plugins: Plugins | None = None) -> bool:
    """Whether a change of the factor needs a new cluster (see `fields.hard`). The label in a study of identical systems
    does, so that they are compared like any two clusters. A named factor does if any field of its levels does."""
    if study.design.kind == "same" and factor == SAME_FACTOR:
        return True
    names, plugins = names_of(study), plugins or Plugins()
    return any(hard(field, names, plugins) for field in study.fields_under(factor))


def hard_settings(settings: Mapping[str, Any], hard_fields: Iterable[str], plugins: Plugins) -> dict[str, Any]:
    """The settings that are fixed at a start: hard fields of site, system, data, node, link, load_site, policy and
    disruption, and those that hard factors set elsewhere."""
    fixed: dict[str, Any] = {}
    for section in FIXED_AT_START:
        if section not in settings:
            continue
        table = settings[section]
        names = {section: (table.get("name", ""),)}
        fixed[section] = {key: item for key, item in table.items() if hard(f"{section}.{key}", names, plugins)}
    for field in hard_fields:
        if field == SAME_FACTOR:
            continue
        section, _, rest = dotted(field).partition(".")
        if rest.split(".")[0] not in fixed.get(section, ()):
            fixed[dotted(field)] = settings.get(section, {}).get(rest)
    return fixed
