"""YCSB's core workload with every property free; the defaults are those of its CoreWorkload.

The files `ycsb-*.toml` are its mixes; they differ only in their defaults.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from steelyard.model.data_model import Schema
from steelyard.model.value import Value, later
from steelyard.wire.order import CQL, ETCD, POSTGRESQL, RESP, YCSB_BINDING, Proportions, Ycsb
from steelyard.wire.program import Chooser

KEYSPACE = "ycsb"
TABLE = "usertable"
KEY = "y_id"

HARD: dict[str, Any] = {"easy": False}
"""The filled data depends on the setting."""
EASY: dict[str, Any] = {"easy": True}
"""The setting can change between trials on the same data."""

PROPORTIONS = ("read", "update", "insert", "scan", "read_modify_write")
VALUES = 3
"""Format of the values' bytes: a kept snapshot with values of another format is not used."""
DATA = (
    "records",
    "insert_start",
    "field_count",
    "field_length",
    "min_field_length",
    "field_length_distribution",
    "insert_order",
    "zero_padding",
)


class Settings(Value):
    """YCSB 0.17's core properties under readable names, with the defaults of its CoreWorkload."""

    records: int = Field(default=1000, ge=1, le=2**40, json_schema_extra=HARD)
    """Number of records that fill the table before the load (recordcount)."""
    insert_start: int = Field(default=0, ge=0, le=2**40, json_schema_extra=HARD)
    """Number of the first key (insertstart)."""
    field_count: int = Field(default=10, ge=1, le=1000, json_schema_extra=HARD)
    """Value columns per record (fieldcount)."""
    field_length: int = Field(default=100, ge=0, le=2**24, json_schema_extra=HARD)
    """Bytes per value; the maximum if lengths vary (fieldlength)."""
    min_field_length: int = Field(default=1, ge=0, le=2**24, json_schema_extra=HARD)
    """Minimum bytes per value if lengths vary (minfieldlength)."""
    field_length_distribution: Literal["constant", "uniform", "zipfian"] = Field(
        default="constant", json_schema_extra=HARD
    )
    """Distribution of value lengths; zipfian favours short ones (fieldlengthdistribution)."""
    insert_order: Literal["hashed", "ordered"] = Field(default="hashed", json_schema_extra=HARD)
    """Whether key names are hashes of key numbers or the numbers themselves (insertorder)."""
    zero_padding: int = Field(default=1, ge=1, le=64, json_schema_extra=HARD)
    """Minimum number of digits in a key name (zeropadding)."""
    read_proportion: float = Field(default=0.95, ge=0, json_schema_extra=EASY)
    """Share of reads; the shares are divided by their sum (readproportion)."""
    update_proportion: float = Field(default=0.05, ge=0, json_schema_extra=EASY)
    """Share of updates (updateproportion)."""
    insert_proportion: float = Field(default=0.0, ge=0, json_schema_extra=EASY)
    """Share of inserts (insertproportion)."""
    scan_proportion: float = Field(default=0.0, ge=0, json_schema_extra=EASY)
    """Share of scans (scanproportion)."""
    read_modify_write_proportion: float = Field(default=0.0, ge=0, json_schema_extra=EASY)
    """Share of reads followed by an update of the same key (readmodifywriteproportion)."""
    request_distribution: Chooser = Field(default="uniform", json_schema_extra=EASY)
    """Distribution of requested keys (requestdistribution)."""
    read_all_fields: bool = Field(default=True, json_schema_extra=EASY)
    """Whether reads and scans request the whole record or one field (readallfields)."""
    write_all_fields: bool = Field(default=False, json_schema_extra=EASY)
    """Whether updates write the whole record or one field (writeallfields)."""
    min_scan_length: int = Field(default=1, ge=1, le=2**24, json_schema_extra=EASY)
    """Minimum number of records per scan (minscanlength)."""
    max_scan_length: int = Field(default=1000, ge=1, le=2**24, json_schema_extra=EASY)
    """Maximum number of records per scan (maxscanlength)."""
    scan_length_distribution: Literal["uniform", "zipfian"] = Field(default="uniform", json_schema_extra=EASY)
    """Distribution of scan lengths; zipfian favours short ones (scanlengthdistribution)."""
    hotspot_data_fraction: float = Field(default=0.2, ge=0, le=1, json_schema_extra=EASY)
    """hotspot: share of the records that are hot (hotspotdatafraction)."""
    hotspot_operation_fraction: float = Field(default=0.8, ge=0, le=1, json_schema_extra=EASY)
    """hotspot: share of the operations that go to hot records (hotspotopnfraction)."""
    exponential_percentile: float = Field(default=95.0, gt=0, lt=100, json_schema_extra=EASY)
    """exponential: percentage of the operations that go to the newest `exponential_fraction` of the records
    (exponential.percentile)."""
    exponential_fraction: float = Field(default=0.8571428571, gt=0, json_schema_extra=EASY)
    """exponential: the share of the records that gets that percentage (exponential.frac)."""
    expected_new_keys: int | None = Field(default=None, ge=0, le=2**40, json_schema_extra=EASY)
    """zipfian: keys reserved for inserts, so that popularity does not shift as they are inserted; None: operations x
    insert share x 2, as in YCSB."""
    insert_lag: int | None = Field(default=None, ge=0, le=2**40, json_schema_extra=EASY)
    """Requests see only keys inserted more than this many operations ago, because later ones may be in flight; None: 16
    for each other operation that may be in flight."""
    validate_fraction: float = later(0.1, ge=0, le=1, json_schema_extra=EASY)
    """Share of the reads and scans whose values are compared with those written; 0 for rows that another program has
    written."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if sum(self.proportions().values()) <= 0:
            raise ValueError("the proportions are all 0: give at least one of " + ", ".join(PROPORTIONS))
        if self.field_length_distribution != "constant" and self.min_field_length > self.field_length:
            raise ValueError(f"min_field_length {self.min_field_length} is above field_length {self.field_length}")
        if self.min_scan_length > self.max_scan_length:
            raise ValueError(f"min_scan_length {self.min_scan_length} is above max_scan_length {self.max_scan_length}")
        if self.request_distribution == "latest" and self.insert_start + self.records < 2:
            raise ValueError("request_distribution 'latest' needs 2 records or more")
        if self.request_distribution == "hotspot":
            self._hotspot_has_records()
        return self

    def _hotspot_has_records(self) -> None:
        hot = int(self.records * self.hotspot_data_fraction)
        sides = (
            (hot, self.hotspot_operation_fraction, "hot"),
            (self.records - hot, 1 - self.hotspot_operation_fraction, "cold"),
        )
        for records, share, name in sides:
            if records == 0 and share > 0:
                raise ValueError(
                    f"hotspot_data_fraction {self.hotspot_data_fraction} of {self.records} records leaves no {name} one"
                )

    def proportions(self) -> dict[str, float]:
        """Share of each kind of operation, by its name in the order."""
        return {name: getattr(self, f"{name}_proportion") for name in PROPORTIONS}


class Core:
    """A mix of YCSB's core operations on one table."""

    protocols: tuple[str, ...] = (CQL, RESP, ETCD, POSTGRESQL, YCSB_BINDING)

    def __init__(self, name: str, settings: Settings, schema: Schema | None = None) -> None:
        self.name = name
        self.settings = settings
        self._schema = schema
        """Another table than YCSB's own."""
        shares = settings.proportions()
        self.writes = any(shares[kind] > 0 for kind in ("update", "insert", "read_modify_write"))

    def schema(self) -> Schema:
        """YCSB's table: a text key and equal text fields."""
        if self._schema is not None:
            return self._schema
        fields = tuple(f"field{number}" for number in range(self.settings.field_count))
        return Schema(keyspace=KEYSPACE, table=TABLE, key=KEY, fields=fields)

    def data(self) -> dict[str, Any]:
        """The settings that determine the filled table; equal for mixes with the same data."""
        return {**self.settings.model_dump(mode="json", include=set(DATA)), "values": VALUES}

    def order(self) -> Ycsb:
        """The `work` of an order."""
        left_out = {"field_count", *(f"{name}_proportion" for name in PROPORTIONS)}
        # A dump lacks fields of the settings that have their default, which need not be the order's.
        rest = {name: getattr(self.settings, name) for name in Settings.model_fields.keys() - left_out}
        return Ycsb(fields=self.schema().fields, proportions=Proportions(**self.settings.proportions()), **rest)


def create(settings: Settings, name: str = "ycsb") -> Core:
    """The workload under its settings; `name`: of the mix."""
    return Core(name, settings)
