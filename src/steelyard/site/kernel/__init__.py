"""This machine as its sites use it: control groups, disks, memory, processors, networks and links of the kernel, and
programs and root file systems of its distribution. No site: it has no `create`."""
