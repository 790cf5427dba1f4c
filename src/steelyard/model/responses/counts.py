"""Counts: number of operations in a trial, and their outcomes."""

from __future__ import annotations

from steelyard.model.response import Recomputable, Response

RESPONSES = (
    Response(
        name="operations",
        label="operations",
        unit="operations",
        definition="Operations answered without error.",
        compute=lambda measured: measured.operations,
        whole=True,
        main=False,
        kept=Recomputable.OWN_ENGINE,
        on_page=False,
        order=20,
    ),
    Response(
        name="errors",
        label="errors",
        unit="operations",
        definition="Operations that failed or had no answer in time.",
        compute=lambda measured: measured.errors,
        whole=True,
        main=False,
        kept=Recomputable.OWN_ENGINE,
        on_page=False,
        order=21,
    ),
    Response(
        name="error_percent",
        label="share of failed operations",
        unit="%",
        definition="`errors` of all operations that were answered or failed. Computed when a store is read.",
        source="study",
        less_is_better=True,
        head="failed",
        order=49,
    ),
    Response(
        name="unsent",
        label="due and not sent",
        unit="operations",
        definition=(
            "Operations of an open loop that were due and never sent, because the system accepted no more: neither "
            "done nor failed. They count against the offered rate."
        ),
        compute=lambda measured: measured.unsent,
        whole=True,
        main=False,
        kept=Recomputable.NOT,
        on_page=False,
        order=22,
    ),
    Response(
        name="not_found",
        label="reads not found",
        unit="operations",
        definition="Reads of keys that must exist but returned no row.",
        compute=lambda measured: measured.not_found,
        whole=True,
        main=False,
        kept=Recomputable.NOT,
        on_page=False,
        order=23,
    ),
)  # fmt: skip
