"""Facts of another machine, from the texts that it sent: recorded on a Raspberry Pi 4."""

from __future__ import annotations

import glob
from pathlib import Path

from steelyard.node import machine_facts
from steelyard.node.machine_texts import Received, Sources, ThisMachine
from steelyard.site.kernel import kernel_settings, node_facts

PI = {
    "/proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 108.00\n\nprocessor\t: 3\n\nRevision\t: c03114\n"
    "Model\t\t: Raspberry Pi 4 Model B Rev 1.4\n",
    "/proc/meminfo": "MemTotal:        3885396 kB\nMemAvailable:    3472104 kB\nSwapTotal:        102396 kB\n",
    "/proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\0",
    "/proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max processes             13273                13273                processes \n"
    "Max open files            1024                 1048576              files     \n"
    "Max locked memory         497065984            497065984            bytes     \n"
    "Max address space         unlimited            unlimited            bytes     \n",
    "/proc/self/mountinfo": "22 1 179:2 / / rw,noatime shared:1 - ext4 /dev/root rw\n",
    "/proc/sys/vm/swappiness": "60\n",
    "/sys/devices/system/cpu/online": "0-3\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "ondemand\n",
    "/sys/devices/system/cpu/vulnerabilities/spectre_v2": "Vulnerable\n",
    "/sys/devices/system/cpu/vulnerabilities/meltdown": "Not affected\n",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "arch_sys_counter\n",
    "/sys/block/mmcblk0/dev": "179:0\n",
    "/sys/block/mmcblk0/mmcblk0p1/dev": "179:1\n",
    "/sys/block/mmcblk0/mmcblk0p2/dev": "179:2\n",
    "/sys/block/mmcblk0/queue/scheduler": "[mq-deadline] none\n",
    "/sys/block/mmcblk0/queue/rotational": "0\n",
    "/sys/block/mmcblk0/device/name": "SD32G\n",
}


def test_of_a_raspberry_pi() -> None:
    facts = node_facts.facts_of(Received(PI), "/home/pi/.cache/steelyard/nodes/x/n1", "aarch64", "6.1.21-v8+")
    assert facts["cpu_model"] == facts["board"] == "Raspberry Pi 4 Model B Rev 1.4"
    assert (facts["cores"], facts["memory_mb"], facts["architecture"]) == ("4", "3794", "aarch64")
    assert (facts["governor"], facts["clock_source"]) == ("ondemand", "arch_sys_counter")
    assert (facts["disk"], facts["disk_scheduler"], facts["disk_device"]) == ("SD32G", "mq-deadline", "/dev/root")
    assert facts["mitigations"] == "spectre_v2: Vulnerable"
    assert facts["ulimit open_files"] == "1024/1048576"
    assert facts["ulimit address_space_bytes"] == "unlimited/unlimited"
    assert facts["sysctl vm.swappiness"] == "60"


def test_of_a_machine_that_says_nothing() -> None:
    facts = node_facts.facts_of(Received({}), "/x", "riscv64", "6.6")
    assert (facts["cpu_model"], facts["cores"], facts["kernel"]) == ("riscv64", "1", "6.6")
    assert all(facts.values())


def test_everything_that_is_asked_for_is_sent() -> None:
    """Sent by this machine, as the shell would expand the patterns: the same facts as those read here."""
    sources = Sources()
    node_facts.facts_of(sources, "/tmp", "", "")
    here = ThisMachine()
    paths = [path for pattern in sources.patterns for path in glob.glob(pattern)]
    received = Received({path: here.text(path) for path in paths if Path(path).is_file()})
    assert kernel_settings.facts_of(received) == kernel_settings.facts_of(here)
    local = machine_facts.facts()
    sent = node_facts.facts_of(received, "/tmp", local["architecture"], local["kernel"])
    for name in ("cpu_model", "memory_mb", "virtualisation", "clock_source", "cores"):
        assert sent.get(name) == local.get(name), name
    assert kernel_settings.limits_of(here.text("/proc/self/limits")) == kernel_settings.limits()


def test_patterns_match_as_in_a_shell(tmp_path: Path) -> None:
    for name in ("block/sda/dev", "block/sda/sda1/dev", "block/sdb/dev"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("8:0\n")
    here = ThisMachine({"/sys": tmp_path})
    assert here.matching("/sys/block/*/dev") == ["/sys/block/sda/dev", "/sys/block/sdb/dev"]
    received = Received({"/sys/block/sda/dev": "", "/sys/block/sda/sda1/dev": "", "/sys/block/sdb/dev": ""})
    assert received.matching("/sys/block/*/dev") == here.matching("/sys/block/*/dev")
    assert received.matching("/sys/block/*/*/dev") == ["/sys/block/sda/sda1/dev"]


def test_kernels_list_their_processors() -> None:
    assert [machine_facts.online(text) for text in ("0-3", "0-3,6", "0", "", "0-1,4-7\n")] == [4, 5, 1, 1, 6]
