"""Finding of `steelyard doctor` about containers: client, daemon and image of site `docker`."""

from __future__ import annotations

from steelyard.model.errors import SiteError
from steelyard.model.finding import Finding, judged
from steelyard.node.folders import cache_folder
from steelyard.site.docker import image as docker_image
from steelyard.site.docker import refusals
from steelyard.site.docker.settings import Settings
from steelyard.site.kernel.programs import program

ONLY = "only site docker needs it"
SET_UP = f"{ONLY}: as root, steelyard setup docker"


def of_this_machine(settings: Settings) -> list[Finding]:
    """Needs of site `docker`: a client, a daemon that runs or can be started, an image. Starts and pulls nothing."""
    docker = refusals.looked(settings)
    address = docker.daemon.address if docker.daemon is not None else ""
    image = refusals.no_image(settings)
    return [
        daemon(program(settings.program), address, docker.problem, refusals.no_daemon(settings), docker.hint),
        own_image(image, there=image is None and _is_built()),
    ]


def daemon(client: str | None, address: str, problem: str, refusal: str | None, hint: str = "") -> Finding:
    """The client and the daemon: the address of one that runs here, or why there is none (`problem`) and why none can
    be started (`refusal`). Pure."""
    if client is None:
        return judged("site docker", "no docker in PATH", False, SET_UP)
    if address:
        return judged("site docker", f"{client}; containers are made by the Docker at {address}", True, "")
    if refusal is not None:
        return judged("site docker", f"{client}; {refusal}", False, hint or SET_UP)
    text = (
        f"{client}; a Docker daemon of Steelyard's own is started with the first lease, because no other is used: "
        f"{problem}"
    )
    return judged("site docker", text, not hint, hint)


def own_image(reason: str | None, *, there: bool) -> Finding:
    """The image for studies that name none: why it can be neither had nor built, or whether it is there. Pure."""
    if reason is not None:
        return judged("docker image", reason, False, f"{SET_UP}, or a study with site.image")
    text = "the image is there" if there else "the image is not built yet: the first lease builds it in a minute or two"
    return judged("docker image", text, True, "")


def _is_built() -> bool:
    try:
        return docker_image.archive(cache_folder(), docker_image.recipe()).is_file()
    except SiteError:
        return False
