"""Instances that are launched for one lease, until they are nodes: asked for, running, reached by ssh, taken."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from steelyard.format import listed
from steelyard.leases import records as lease_records
from steelyard.model.activity import LAUNCHED, REACHED, RUNNING
from steelyard.model.errors import SiteError
from steelyard.node.base import Node
from steelyard.node.tasks import to_the_end, together
from steelyard.site.base import MarkNode
from steelyard.site.ec2 import image, instances
from steelyard.site.ec2.cloud import Cloud, pauses
from steelyard.site.ec2.instances import LEASE, Image, Instance
from steelyard.site.ec2.settings import Settings
from steelyard.site.ssh import connection as ssh_connection
from steelyard.site.ssh import keys, machines
from steelyard.site.ssh.connection import Unreachable
from steelyard.site.ssh.inventory import Machine, Place

RUN_TIMEOUT_S: Final = 300.0
BOOT_TIMEOUT_S: Final = 300.0
ATTEMPT_TIMEOUT_S: Final = 30.0


def no_mark(node: str, step: str) -> None:
    """Note nothing."""


class Launch:
    """The launch of a lease's instances."""

    def __init__(
        self, cloud: Cloud, settings: Settings, state: Path, record: lease_records.Record, image: Image, owner: str,
        seconds: float, run_timeout_s: float = RUN_TIMEOUT_S,
    ) -> None:  # fmt: skip
        """`seconds`: until the instances end themselves."""
        self.record = record
        """With everything that is known of the nodes that were brought up."""
        self._cloud, self._settings, self._state, self._image = cloud, settings, state, image
        self._owner, self._seconds, self._run_timeout_s = owner, seconds, run_timeout_s
        self._folder = lease_records.nodes_folder(state, record.id)

    async def bring_up(self, nodes: Sequence[Node], mark: MarkNode = no_mark) -> lease_records.Record:
        """Launch the instances of nodes, and make them nodes. Raises SiteError."""
        await self.make_keys()
        await self.ask_for(nodes)
        for node in nodes:
            mark(node.name, LAUNCHED)
        born = await self.running(nodes, mark)
        places = [self._place(node, born[node.name]) for node in nodes]
        await together(self._until_it_answers(place, mark) for place in places)
        async with machines.looked_at(self.record.id, places, str(self._ssh_config)) as looks:
            known = {node.name: node for node, _ in looks}
            every = tuple(known.get(node.name, node) for node in self.record.nodes)
            self.record = self.record.model_copy(update={"nodes": every})
            with lease_records.locked(self._state):
                lease_records.write(lease_records.record_path(self._state, self.record.id), self.record)
        await machines.take(self.record, self._state, looks)
        return self.record

    async def bake(self, node: Node, architecture: str) -> Image:
        """Have an instance install what nodes need, and make an image of it. Raises SiteError."""
        # The image has the volume of its base, and spot instances do not stop.
        plain = {"volume_gb": None, "volume_iops": None, "volume_type": "gp3", "market": "on-demand"}
        self._settings = self._settings.model_copy(update=plain)
        self._seconds = 2 * image.BAKE_TIMEOUT_S  # It stops earlier only when all of it worked.
        words = self._words(node, image.SCRIPT) | {"InstanceInitiatedShutdownBehavior": "stop"}
        own = instances.tags("", self._owner, "")
        return await image.bake(self._cloud, words, image.name_of(architecture), own)

    @property
    def _ssh_config(self) -> Path:
        return self._folder / "ssh_config"

    async def make_keys(self) -> None:
        """Keys of the lease, and settings of ssh that know them and nothing else."""
        if self._ssh_config.exists():
            return
        caller = lease_records.marked(lease_records.environment(self._state, self.record.id))
        own = Path(self._settings.key_file).expanduser() if self._settings.key_file else self._folder / "key"
        await together(keys.make(caller, path) for path in (self._folder / "host", self._folder / "key"))
        text = keys.ssh_config(self._settings.user, own, self._folder / "known_hosts")
        self._ssh_config.write_text(text, encoding="utf-8")

    def _words(self, node: Node, script: str) -> dict[str, Any]:
        until = self.record.until.isoformat(timespec="seconds")
        own_tags = instances.tags(self.record.id, self._owner, until, node.name)
        data = instances.user_data(self._seconds, script)
        return instances.launch_words(self._settings, self._image, node, self.record.id, own_tags, data)

    async def ask_for(self, nodes: Sequence[Node]) -> None:
        """Ask EC2 for the instances of nodes. Raises the first error when all have been asked for."""
        machine_key, public = (self._folder / "host").read_text(encoding="ascii"), keys.public(self._folder / "key")
        script = instances.first_boot(self._settings.user, machine_key, public)
        failed, launched = list[BaseException](), list[str]()

        async def launch() -> None:
            calls = [self._cloud.ask("run_instances", **self._words(node, script)) for node in nodes]
            for answer in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(answer, BaseException):
                    failed.append(answer)
                else:
                    launched.extend(str(one["InstanceId"]) for one in answer["Instances"])

        try:
            # A call in progress cannot be called back: its instance must be there, or not, when the lease is undone.
            await to_the_end(launch())
            if failed:
                raise failed[0]
        except BaseException:
            # By their ids: EC2 may not show yet by their tag what it has just launched.
            if launched:
                await to_the_end(instances.end_these(self._cloud, launched))
            raise

    async def running(self, nodes: Sequence[Node], mark: MarkNode = no_mark) -> Mapping[str, Instance]:
        """The instances of nodes, once all are running and have their addresses. Raises SiteError."""
        names, running = {node.name for node in nodes}, dict[str, Instance]()
        every: list[Instance] = []
        for pause_s in pauses(self._run_timeout_s):
            every = await instances.of_tag(self._cloud, LEASE, self.record.id)
            for instance in every:
                if instance.node in names and instance.ended:
                    raise SiteError(instance.ended)
                if (
                    instance.node in names - running.keys()
                    and instance.state == "running"
                    and self._way(instance)
                    and instance.private
                ):
                    running[instance.node] = instance
                    mark(instance.node, RUNNING)
            if running.keys() == names:
                return running
            await asyncio.sleep(pause_s)
        seen = {one.node: one.state for one in every}
        how = listed([f"{name} ({seen.get(name, 'unknown')})" for name in sorted(names - running.keys())])
        raise SiteError(f"not running with {self._settings.reach} addresses in {self._run_timeout_s:g} s: {how}")

    def _way(self, instance: Instance) -> str:
        """The address by which this machine reaches an instance."""
        return instance.public if self._settings.reach == "public" else instance.private

    def _place(self, node: Node, instance: Instance) -> Place:
        """The machine of a node, which ssh knows by the host key of its lease."""
        way = self._way(instance)
        with (self._folder / "known_hosts").open("a", encoding="ascii") as known:
            known.write(f"{way} {keys.public(self._folder / 'host')}\n")
        return Place(node.role, node.name, Machine(name=node.name, connect=way, address=instance.private))

    async def _until_it_answers(self, place: Place, mark: MarkNode) -> None:
        """Wait until an instance has booted and lets in. Raises SiteError."""
        control = ssh_connection.control_folder() / f"{self.record.id}-{place.name}"
        connection = ssh_connection.connection(place.machine, control, str(self._ssh_config))
        last = ""
        for pause_s in pauses(BOOT_TIMEOUT_S):
            try:
                await connection.shell("true", timeout_s=ATTEMPT_TIMEOUT_S)
            except Unreachable as error:
                last = error.message
            else:
                mark(place.name, REACHED)
                return
            await asyncio.sleep(pause_s)
        hint = "its security groups must let in ssh from this machine; site.user is that of the AMI"
        raise SiteError(f"not reached in {BOOT_TIMEOUT_S:g} s: {last}", hint)
