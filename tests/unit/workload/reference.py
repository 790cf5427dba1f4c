"""The fixture with what YCSB itself gives, and YCSB's property names in ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
REFERENCE: dict[str, Any] = json.loads((ROOT / "tests" / "fixtures" / "ycsb" / "reference.json").read_text())
EXAMPLE: dict[str, Any] = json.loads((ROOT / "schema" / "order.example.json").read_text())

SETTING = {
    "recordcount": "records",
    "fieldcount": "field_count",
    "fieldlength": "field_length",
    "minfieldlength": "min_field_length",
    "fieldlengthdistribution": "field_length_distribution",
    "readproportion": "read_proportion",
    "updateproportion": "update_proportion",
    "insertproportion": "insert_proportion",
    "scanproportion": "scan_proportion",
    "readmodifywriteproportion": "read_modify_write_proportion",
    "requestdistribution": "request_distribution",
    "readallfields": "read_all_fields",
    "minscanlength": "min_scan_length",
    "maxscanlength": "max_scan_length",
    "scanlengthdistribution": "scan_length_distribution",
    "hotspotdatafraction": "hotspot_data_fraction",
    "hotspotopnfraction": "hotspot_operation_fraction",
    "exponential.percentile": "exponential_percentile",
    "exponential.frac": "exponential_fraction",
}


def settings_of(properties: dict[str, str]) -> dict[str, str]:
    """YCSB's properties as our settings; `operationcount` belongs to the load."""
    return {SETTING[name]: value for name, value in properties.items() if name != "operationcount"}
