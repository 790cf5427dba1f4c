"""Notes of `check` on instances, which ask EC2 nothing."""

from __future__ import annotations

from typing import Final

from steelyard.format import count
from steelyard.site.base import Request
from steelyard.site.ec2.settings import BAKED, Settings

BURSTABLE: Final = ("t2.", "t3.", "t3a.", "t4g.")
INTERRUPTED: Final = "spot instances: EC2 ends them when it likes, and the trial in progress is void then"
SETUP: Final = "steelyard setup ec2"


def is_burstable(instance_type: str) -> bool:
    """Whether a type has a full processor only while it has CPU credits. Pure."""
    return instance_type.startswith(BURSTABLE)


def of_request(settings: Settings, request: Request) -> list[str]:
    """Sentences on what a request costs in addition to money. Pure."""
    region = f" in {settings.region}" if settings.region else ", in the region that boto3 finds"
    counts = {"database": request.database_nodes, "load": request.load_nodes}
    what = [f"{count(number, 'instance')} of {settings.types[role]}" for role, number in counts.items() if number]
    sentences = [
        f"a start launches {' and '.join(what)}{region}; they end after {settings.most_hours:g} h at the latest"
    ]
    if settings.image == BAKED:
        sentences.append(f"the first lease in a region bakes an image, if `{SETUP}` has not: some minutes")
    if settings.market == "spot":
        sentences.append(INTERRUPTED)
    burstable = sorted({name for name in settings.types.values() if is_burstable(name)})
    if burstable and settings.credit != "unlimited":
        sentences.append(
            f"{' and '.join(burstable)} slow down when CPU credits are spent, which shows as steal and voids trials"
        )
    return sentences
