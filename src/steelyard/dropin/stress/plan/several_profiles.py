"""Several profiles in one load: which profile an operation of `ops(...)` belongs to, and one plan out of several.

Operations are named `SPECNAME.OPERATION`; those without a spec name belong to the first profile, as in cassandra-stress
5.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from steelyard.dropin import table_definition
from steelyard.dropin.stress.parse.profile import Profile, load
from steelyard.dropin.stress.parse.refusal import Refused, unknown
from steelyard.dropin.stress.parse.settings import Settings
from steelyard.dropin.stress.plan import profile_orders
from steelyard.dropin.stress.plan.orders import Plan

INSERT = "insert"


def read(settings: Settings) -> tuple[Profile, ...]:
    """The profiles of `profile=`. Raises Refused, also for an operation that is in none of them."""
    profiles: dict[str, Profile] = {}
    for path in settings.command.profile.split(","):
        profile = load(path)
        if profile.spec_name in profiles:
            first = profiles[profile.spec_name].path
            why = f"its specname {profile.spec_name!r} is that of {first} too"
            raise Refused(
                "user profile=", path, why, "each name once; `specname:` is keyspace.table where there is none"
            )
        profiles[profile.spec_name] = profile
    seen: dict[tuple[str, str], str] = {}
    for name in settings.command.ratios:
        profile, operation = _of(name, tuple(profiles.values()))
        same = seen.setdefault((profile.spec_name, operation.lower()), name)
        if same != name:
            raise Refused("user ops", name, f"it is the same operation as {same}", "each operation once")
        if operation.lower() in profile.queries:
            profile_orders.markers(profile, profile.queries[operation.lower()])
        elif operation.lower() != INSERT:
            known = [INSERT, *profile.queries]
            if len(profiles) > 1:
                known = [f"{one.spec_name}.{name}" for one in profiles.values() for name in (INSERT, *one.queries)]
            absent = operation == "validate"
            why = "validate and token_range_queries are not supported" if absent else f"no such query in {profile.path}"
            raise unknown("user ops", name, why, known)
    return tuple(profiles.values())


def _of(name: str, profiles: Sequence[Profile]) -> tuple[Profile, str]:
    """The profile of an operation, and the operation's name within it."""
    spec, dot, operation = name.rpartition(".")
    if not dot or name.lower() in profiles[0].queries:
        return profiles[0], name
    for profile in profiles:
        if profile.spec_name == spec:
            return profile, operation
    known = [f"{profile.spec_name}.{operation}" for profile in profiles]
    raise unknown("user ops", name, f"no profile has the specname {spec!r}", known)


def columns_before(profile: Profile, rows: Sequence[Mapping[str, Any]]) -> tuple[profile_orders.Column, ...] | None:
    """The columns of the table before anything is created: as the server has them (`rows`), else as the definition
    will make them. None if only the server knows."""
    if rows or not profile.creations():
        return profile_orders.columns_of(rows)
    expected = table_definition.described(profile.table_cql or "")
    return None if expected is None else profile_orders.columns_of(expected)


def plan(settings: Settings, tables: Sequence[profile_orders.ProfileTable]) -> Plan:
    """One plan of all profiles. Raises Refused for what is not supported."""
    profiles = [table.profile for table in tables]
    plans = []
    for table in tables:
        names = {}
        for name in settings.command.ratios:
            profile, operation = _of(name, profiles)
            if profile is table.profile:
                names[operation] = name
        if names:
            own = {operation: settings.command.ratios[name] for operation, name in names.items()}
            command = replace(settings.command, ratios=own)
            plans.append(_renamed(profile_orders.plan(replace(settings, command=command), table), names))
    place_by_name = {name: place for place, name in enumerate(settings.command.ratios)}
    operations = sorted((one for plan in plans for one in plan.operations), key=lambda one: place_by_name[one["name"]])
    return replace(
        plans[0],
        statements=tuple(statement for plan in plans for statement in plan.statements),
        operations=tuple(operations),
        counted={name: counting for plan in plans for name, counting in plan.counted.items()},
    )


def _renamed(plan: Plan, names: Mapping[str, str]) -> Plan:
    """The plan with the names that `ops(...)` has; `names`: by that within the profile."""
    by_lower = {operation.lower(): name for operation, name in names.items()}
    statements = tuple({**one, "name": by_lower[one["name"].lower()]} for one in plan.statements)
    operations = [
        {**one, "name": names[one["name"]], "steps": _steps(one["steps"], by_lower)} for one in plan.operations
    ]
    counted = {names[name]: counting for name, counting in plan.counted.items()}
    return replace(plan, statements=statements, operations=tuple(operations), counted=counted)


def _steps(steps: Sequence[Mapping[str, Any]], by_lower: Mapping[str, str]) -> list[dict[str, Any]]:
    renamed = []
    for step in steps:
        fields = dict(step)
        if "statement" in fields:
            fields["statement"] = by_lower[fields["statement"].lower()]
        if "statements" in fields:
            fields["statements"] = [by_lower[one.lower()] for one in fields["statements"]]
        renamed.append(fields)
    return renamed
