"""`steelyard replay STORE --policy NAME`: which size a scaling policy would have desired in stored trials, and when."""

from __future__ import annotations

import tomllib
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from steelyard.analysis.treatments import label
from steelyard.cli.signature import Json, StoreFolder
from steelyard.cli.terminal.output import data_console, print_table, print_wrapped, titled_table
from steelyard.format import number
from steelyard.model.policy import PolicyChoice
from steelyard.plugins import find
from steelyard.reading.replay import Replayed
from steelyard.reading.replay import replay as replay_policy
from steelyard.shown_text import json_text
from steelyard.store.modelled import open_store
from steelyard.tomlfile.problems import from_validation, problem

EXAMPLES = (
    (
        "steelyard replay store/grow --policy threshold --set threshold=75",
        "When would it have fired?",
    ),
    ("steelyard replay store/grow --policy hpa --set target=60 --json", "The same as data."),
)
JSON_TYPE = Replayed


def replay(
    store: StoreFolder,
    policy: Annotated[str, typer.Option("--policy", metavar="NAME", help="Policy by name, or the path of its file.")],
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, as in section [policy] of a study."),
    ] = None,
    trial: Annotated[str, typer.Option("--trial", metavar="ID", help="One trial; default: every valid one.")] = "",
    as_json: Json = False,
) -> int:
    """Ask a policy with the points of each valid trial; what is not set is as in section [policy] of the store's study.
    Returns 0. Raises StudyError for a policy or a setting that
    does not exist, StoreError where there is no store or no such trial."""
    opened = open_store(store)
    module = find.find("policy", policy)
    asked = {"name": policy, **dict(_setting(text) for text in sets or ())}
    try:
        replayed = replay_policy(opened, module, asked, trial)
    except ValidationError as error:
        raise from_validation(error, "--set", module.Settings, tuple(PolicyChoice.model_fields))[0] from error
    if as_json:
        print(json_text(replayed.model_dump(mode="json"), indent=1, ensure_ascii=False))
    else:
        _draw(replayed)
    return 0


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise problem("--set", text, "must be KEY=VALUE, such as threshold=75")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _draw(replayed: Replayed) -> None:
    console = data_console()
    table = titled_table(f"policy {replayed.policy}", "treatment", "trial", "at", "nodes", "why", right=("at", "nodes"))
    for trial in replayed.trials:
        at = "-" if trial.at_s is None else f"{number(trial.at_s, trim=True)} s"
        nodes = "" if trial.nodes is None else str(trial.nodes)
        table.add_row(label(trial.treatment), trial.trial_id, at, nodes, trial.reason or "did not fire")
    print_table(table, console)
    for sentence in (*replayed.sentences(), replayed.valid):
        print_wrapped(sentence, console)
