from __future__ import annotations

from steelyard.model.named_level import NamedLevel, level_key
from steelyard.model.study import Study
from tests.unit.verify.made import study


def mixed() -> Study:
    return Study.model_validate(
        {
            **study().model_dump(),
            "factors": {"place": ["here", "there"], "load.threads": [1, 8]},
            "levels": {"place": {"here": {}, "there": {"nodes": 5, "number": 2.5, "unit": "km"}}},
        }
    )


def test_keys_of_levels_are_texts() -> None:
    assert [level_key(level) for level in ("a", 1, 1.5, True)] == ["a", "1", "1.5", "true"]


def test_levels_in_words() -> None:
    level = NamedLevel.model_validate({"node.memory_mb": 1024, "number": 1.0, "unit": "GB"})
    assert (level.sets, level.fields_in_words(), level.number_in_words()) == (
        {"node.memory_mb": 1024}, "node.memory_mb = 1024", "1 GB",
    )  # fmt: skip
    assert (NamedLevel().fields_in_words(), NamedLevel().number_in_words()) == ("nothing", "")


def test_fields_and_numbers_of_a_study() -> None:
    asked = mixed()
    assert asked.fields_of({"place": "there", "load.threads": 8}) == {"nodes": 5, "load.threads": 8}
    assert asked.fields_under("place") == ("nodes",)
    assert asked.fields_under("load.threads") == ("load.threads",)
    assert [asked.number_of("place", level) for level in ("here", "there")] == [None, 2.5]
    assert (asked.number_of("load.threads", 8), asked.number_of("load.threads", True)) == (8.0, None)
    assert (asked.unit_of("place"), asked.unit_of("load.threads")) == ("km", "")


def test_values_of_a_field_hold_the_fixed_one_where_a_level_leaves_it() -> None:
    asked = mixed()
    assert asked.values_of(("nodes", "site.nodes"), 1) == (1, 5)
    assert asked.values_of(("load.threads",), 3) == (1, 8)
    assert asked.values_of(("workload", "workload.name"), "ycsb-a") == ("ycsb-a",)
