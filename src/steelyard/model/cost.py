"""Declared price and power of nodes, for cost and energy per million operations."""

from __future__ import annotations

from pydantic import Field, model_validator

from steelyard.model.value import Value, later


class Cost(Value):
    """Declared cost and power of a node, for cost and energy per million operations. Does not change any trial."""

    price_per_node_hour: float | None = Field(default=None, gt=0)
    """Price of one node per hour, in `currency`: rent, or purchase price over the hours of its life. Without it, no
    cost is shown."""
    currency: str = Field(default="", pattern=r"^([A-Z]{3})?$")
    """ISO 4217 code of the price, such as EUR or USD; required with the price."""
    node_watts_idle: float | None = Field(default=None, ge=0)
    """Power that an idle node draws, in W; requires node_watts_busy. If a probe measures power, its readings are shown
    instead."""
    node_watts_busy: float | None = Field(default=None, gt=0)
    """Power that a node draws with all its cores busy, in W. Power in between is interpolated by the share of busy
    cores; without node_watts_idle, a node counts as busy throughout."""
    node_watts_source: str = later("")
    """Source of node_watts_idle and node_watts_busy: a data sheet, a measurement, a publication; shown with the energy
    that follows from them."""
    gain_error_percent: float = later(0.0, ge=0, le=100)
    """Standard uncertainty of the gain of the meters, as a percentage of a reading. It does not average out: intervals
    of energy and power are widened by it (GUM). Of a limit of error that a vendor gives as +- a, it is a / 1.73."""
    count_load_nodes: bool = False
    """Also count the nodes that drive load."""

    @model_validator(mode="after")
    def _whole(self) -> Cost:
        if (self.price_per_node_hour is None) != (not self.currency):
            raise ValueError("price_per_node_hour and currency belong together: give both or none")
        if self.node_watts_idle is not None and self.node_watts_busy is None:
            raise ValueError("node_watts_idle needs node_watts_busy")
        idle, busy = self.node_watts_idle, self.node_watts_busy
        if idle is not None and busy is not None and idle > busy:
            raise ValueError(f"node_watts_idle ({idle:g} W) must be at most node_watts_busy ({busy:g} W)")
        return self

    def watts(self, cpu_percent: float | None) -> float | None:
        """Declared power of a node whose cores are busy by this many percent; None if that is needed and not known."""
        idle, busy = self.node_watts_idle, self.node_watts_busy
        if idle is None or busy is None:
            return busy
        return None if cpu_percent is None else idle + (busy - idle) * min(1.0, max(0.0, cpu_percent / 100))

    @property
    def declared(self) -> bool:
        """Whether anything is declared."""
        return self.price_per_node_hour is not None or self.node_watts_busy is not None
