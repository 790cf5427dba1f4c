"""Lines of a mountinfo."""

from __future__ import annotations

from pathlib import Path

from steelyard.site.kernel import mountinfo
from steelyard.site.kernel.mountinfo import MountedFileSystem

TEXT = r"""22 1 179:2 / / rw,noatime shared:1 master:7 - ext4 /dev/root rw,errors=remount-ro
40 22 7:3 /a\040part /srv/a\134b\040c rw - ext4 /dev/loop3 rw
41 22 0:40 / /run/no\011options rw - tmpfs none
a line of another form
42 22 0:41 / /without/a/kind rw
"""


def test_fields_and_escapes() -> None:
    assert mountinfo.parse(TEXT) == (
        MountedFileSystem("179:2", "/", Path("/"), "rw,noatime", "ext4", "/dev/root", "rw,errors=remount-ro"),
        MountedFileSystem("7:3", "/a part", Path("/srv/a\\b c"), "rw", "ext4", "/dev/loop3", "rw"),
        MountedFileSystem("0:40", "/", Path("/run/no\toptions"), "rw", "tmpfs", "none", ""),
    )


def test_this_process_has_a_root() -> None:
    assert Path("/") in [mount.point for mount in mountinfo.here()]
