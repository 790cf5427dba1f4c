"""Findings of `doctor` about Cassandra: a Java for its servers, and Maven for its jars."""

from __future__ import annotations

import shutil

from steelyard.model.errors import SteelyardError
from steelyard.model.finding import Finding, failed, judged
from steelyard.system.cassandra import _java


async def of_this_machine() -> list[Finding]:
    """Java and Maven, whether jars are here already or not."""
    return [await _java_of_servers(), _maven()]


async def _java_of_servers() -> Finding:
    try:
        java = await _java.find()
    except SteelyardError as error:
        return failed("java", error)
    return Finding(name="java", state="good", found=f"{java.version}, {java.path}")


def _maven() -> Finding:
    path = shutil.which("mvn")
    hint = "as root: apt-get install -y maven; or name a folder of Cassandra's jars in the study"
    return judged("maven", path or "no mvn in PATH", path is not None, hint)
