"""Finding of `steelyard doctor` about containers: client, daemon and image of site `docker`."""

from __future__ import annotations

from steelyard.cli.finding import Finding, judged
from steelyard.model.errors import SiteError
from steelyard.node.folders import cache_folder
from steelyard.site import _docker_image, _docker_refusals
from steelyard.site._docker_settings import Settings
from steelyard.site._this_machine import program

ONLY = "only site docker needs it"
SET_UP = f"{ONLY}: as root, steelyard setup docker"


def of_this_machine() -> list[Finding]:
    """What site `docker` needs: a client, a daemon that runs or can be started, an image. Starts and pulls nothing."""
    settings = Settings()
    docker = _docker_refusals.looked(settings)
    address = docker.daemon.address if docker.daemon is not None else ""
    image = _docker_refusals.no_image(settings)
    return [
        daemon(program(settings.program), address, docker.problem, _docker_refusals.no_daemon(settings), docker.mend),
        own_image(image, there=image is None and _is_built()),
    ]


def daemon(client: str | None, address: str, problem: str, refusal: str | None, mend: str = "") -> Finding:
    """The client and the daemon: the address of one that runs here, or why there is none (`problem`) and why none can
    be started (`refusal`). Pure."""
    if client is None:
        return judged("site docker", "no docker in PATH", False, SET_UP)
    if address:
        return judged("site docker", f"{client}; containers are made by the Docker at {address}", True, "")
    if refusal is not None:
        return judged("site docker", f"{client}; {refusal}", False, mend or SET_UP)
    text = (
        f"{client}; a Docker daemon of Steelyard's own is started with the first lease, because none is used: {problem}"
    )
    return judged("site docker", text, not mend, mend)


def own_image(reason: str | None, *, there: bool) -> Finding:
    """The image for studies that name none: why it can be neither had nor built, or whether it is there. Pure."""
    if reason is not None:
        return judged("docker image", reason, False, f"{SET_UP}, or a study with site.image")
    text = "the image is there" if there else "the image is not built yet: the first lease builds it, a minute or two"
    return judged("docker image", text, True, "")


def _is_built() -> bool:
    try:
        return _docker_image.archive(cache_folder(), _docker_image.recipe()).is_file()
    except SiteError:
        return False
