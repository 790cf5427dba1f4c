"""Links that a study names: resolved into the numbers of complete settings."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from steelyard.model.errors import StudyError
from steelyard.model.link import NODAL, LinkChoice, NamedLink
from steelyard.model.study import Study
from steelyard.plugins.find import Plugins
from steelyard.tomlfile.problems import from_validation
from steelyard.tomlfile.validated import validated

KIND = "link"
FIELD = "link.name"


def link_of(plugins: Plugins, name: str) -> NamedLink:
    """A shipped link, or that of a file in the study's folder. Raises StudyError."""
    table = plugins.values_file(KIND, name, FIELD)
    try:
        named = validated(NamedLink, table)
    except ValidationError as error:
        raise _refused(name, error, "", NamedLink) from error
    try:
        own = validated(LinkChoice, named.link)
    except ValidationError as error:
        raise _refused(name, error, "link", LinkChoice) from error
    if own.medium is None or "name" in named.link:
        what = "link.medium is missing" if own.medium is None else "link.name: a link's file names no other link"
        raise StudyError(f"{FIELD}: link {name}: {what}", 'medium = "switched" or "802.11"', key=FIELD, read=name)
    return named


def resolve(tables: dict[str, Any], plugins: Plugins) -> None:
    """Fill in section `link` of a treatment's tables from a named link, in place. The
    network of the site as it is stays unsaid. Raises StudyError; a link that does not exist is left to
    `study.missing`."""
    table = tables["link"]
    name = table.get("name", NODAL)
    written = {field for field, value in table.items() if value is not None and field != "name"}
    if not isinstance(name, str) or not plugins.has_values(KIND, name) or (name == NODAL and not written):
        return
    tables["link"] = {**link_of(plugins, name).link, "name": name, **{field: table[field] for field in written}}


def measures_links(study: Study) -> bool:
    """Whether every link is measured in full: where a study requires it, or where any of its trials has another link
    than the network of its site as it is, also in its other trials, so that they can be compared."""
    fields = [field for factor in study.tried for field in study.fields_under(factor)]
    return study.measure_links or not study.link.plain or any(field.partition(".")[0] == "link" for field in fields)


def _refused(name: str, error: ValidationError, prefix: str, model: type[NamedLink | LinkChoice]) -> StudyError:
    problems = from_validation(error, prefix, model)
    what = "; ".join(problem.message for problem in problems)
    return StudyError(f"{FIELD}: link {name}: {what}", problems[0].hint, key=FIELD, read=name)
