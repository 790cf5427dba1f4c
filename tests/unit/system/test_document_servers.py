"""What servers of documents are started with, and how they list it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from steelyard.node.base import Node
from steelyard.system import apache, nginx
from steelyard.system.packaged import Programs

NODE = Node("n1", "database", "fd00::1", (), Path("/n1"))


def _configuration(system: apache.Apache | nginx.Nginx, server: str) -> list[str]:
    system._programs[NODE.name, NODE.folder] = Programs("1", server, "curl")
    return asyncio.run(system.configured(NODE)).splitlines()


@pytest.mark.parametrize(
    ("server", "modules"),
    [("/usr/sbin/apache2", "/usr/lib/apache2/modules"), ("/cache/apache-2/apache2", "/cache/apache-2")],
)
def test_apache_reads_its_own_configuration_and_modules(server: str, modules: str) -> None:
    settings = apache.Settings(processes=3, threads=16, access_log=True)
    lines = _configuration(apache.create(settings, Path("/none")), server)
    assert f"LoadModule mpm_event_module {modules}/mod_mpm_event.so" in lines
    assert {"Listen [fd00::1]:8080", "MaxRequestWorkers 48", "MaxKeepAliveRequests 0"} <= {*lines}
    assert 'CustomLog /n1/data/access.log "%h %t %r %>s %b"' in lines


def test_apache_lists_its_configuration_as_a_page() -> None:
    page = (
        "<dd><tt>&nbsp;&nbsp;11:&nbsp;ServerLimit <i>4</i></tt></dd>\n"
        "<dd><tt>&nbsp;21:&nbsp;&nbsp;&nbsp;SetHandler <i>x</i></tt></dd>"
    )
    assert apache.DIRECTIVE.findall(page) == [("ServerLimit", "4"), ("SetHandler", "x")]


def test_nginx_reads_its_own_configuration() -> None:
    lines = _configuration(
        nginx.create(nginx.Settings(workers=3, keepalive_requests=7), Path("/none")), "/usr/sbin/nginx"
    )
    assert {"worker_processes 3;", "access_log off;", "keepalive_requests 7;", "listen [fd00::1]:8080;"} <= {*lines}
    assert nginx.DIRECTIVE.findall("\n".join(lines))[:2] == [("user", "root root"), ("daemon", "off")]
