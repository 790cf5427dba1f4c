"""Programs of Debian's packages: what is brought to a node with them."""

from __future__ import annotations

from steelyard.system.packaged import LIBRARY


def test_libraries_and_the_program_that_loads_them_are_named() -> None:
    text = (
        "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f01)\n"
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f02)\n"
    )
    assert LIBRARY.findall(text) == ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]
