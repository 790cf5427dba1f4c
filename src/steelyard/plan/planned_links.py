"""Links of a plan, as `check` shows them: kind and mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.format import count, number
from steelyard.judging.dilation import effective_link
from steelyard.model.errors import StudyError
from steelyard.model.link import DEFAULT_MTU, PHY, LinkChoice
from steelyard.model.plan import Plan
from steelyard.model.trial_settings import TrialSettings
from steelyard.plan.abilities import Abilities
from steelyard.site.base import DescribesLinks

AS_IT_IS = "as it is"
FURTHER = {
    "loss_percent": "{:g}% lost", "aggregate": "A-MPDU {}", "rts_threshold_bytes": "RTS from {} B",
    "frame_error": "frame errors {:g}", "load_nodes": "load nodes {}",
}  # fmt: skip
"""Further fields to show if set; the rest is in the link's file."""


@dataclass(frozen=True)
class PlannedLink:
    """A link of a plan, in words."""

    name: str
    medium: str
    """With its other distinguishing features."""
    rate: str
    delay: str
    """One way."""
    made_by: str
    plain: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of its row."""
        return self.name, self.medium, self.rate, self.delay, self.made_by


def links_of(plan: Plan, abilities: Abilities) -> tuple[PlannedLink, ...]:
    """The links of a plan's trials, each once: the network as it is, then the others by name."""
    links = {_in_words(each.settings, abilities): None for each in plan.trials}
    return tuple(sorted(links, key=lambda link: (not link.plain, link.cells)))


def _in_words(settings: TrialSettings, abilities: Abilities) -> PlannedLink:
    link, dilation = settings.link, settings.node.dilation
    maker = _maker(effective_link(link, dilation), settings, abilities)
    dilated = f"; dilated by {dilation:g}" if dilation != 1 and not link.plain else ""
    return PlannedLink(
        name=link.name,
        medium=", ".join(["site's network" if link.plain else link.medium or "", *_further(link)]),
        rate=_rate(link),
        delay=_delay(link),
        made_by=f"{maker or f'site {settings.site.name}'}{dilated}",
        plain=link.plain,
    )


def _maker(link: LinkChoice, settings: TrialSettings, abilities: Abilities) -> str:
    """Mechanism of a link, if its site declares one; empty for a site that does not exist yet."""
    try:
        site = abilities.site(settings)
    except StudyError:
        return ""
    return site.link_made_by(link) if isinstance(site, DescribesLinks) else ""


def _rate(link: LinkChoice) -> str:
    phy = PHY.fullmatch(link.phy or "")
    if phy is not None:
        return f"{phy[2]} Mbit/s"
    return AS_IT_IS if link.rate_mbit is None else f"{number(link.rate_mbit, digits=4, trim=True)} Mbit/s"


def _delay(link: LinkChoice) -> str:
    if link.medium == "802.11":
        return "airtime"
    if link.delay_ms is None:
        return AS_IT_IS
    return f"{link.delay_ms:g}{f' ± {link.jitter_ms:g}' if link.jitter_ms else ''} ms"


def _further(link: LinkChoice) -> list[str]:
    """Fields other than medium, rate and delay that differ from most links."""
    given = link.given
    words = ["half duplex"] if link.duplex == "half" else []
    words += [form.format(given[name]) for name, form in FURTHER.items() if given.get(name)]
    words += [f"MTU {link.mtu}"] if link.mtu not in (None, DEFAULT_MTU) else []
    return words + ([count(len(link.hidden), "hidden pair")] if link.hidden else [])
