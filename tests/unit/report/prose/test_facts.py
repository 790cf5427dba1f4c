"""Facts of nodes on the page, beside those that are shown by level."""

from __future__ import annotations

from steelyard.report.prose.method_and_facts import Fact, grouped

FACTS = {
    "n1": {"limit_cores": "0", "limit_cpus": "1"},
    "n2": {"limit_cores": "1", "limit_cpus": "1"},
    "l1": {"limit_cores": "none", "limit_cpus": "none"},
}


def test_what_is_shown_by_level_is_shown_of_nodes_only_where_these_differ() -> None:
    by_level = grouped(FACTS, system=False, by_level={"limit_cores", "limit_cpus"})
    assert by_level == (
        Fact("limit_cores", "0", "n1"), Fact("limit_cores", "1", "n2"), Fact("limit_cores", "none", "l1"),
        Fact("limit_cpus", "none", "l1"),
    )  # fmt: skip
    assert Fact("limit_cpus", "1", "n1, n2") in grouped(FACTS, system=False)
