"""Scripts that run in a virtual machine before a user can log in, and that make its first file system.

Plain sh, with busybox until the root file system is mounted. A machine gets its identity from a tar archive that it
sees as a disk. Disks are known by their serial numbers, so that their order does not matter.
"""

from __future__ import annotations

from typing import Final

READY: Final = "steelyard: up"
"""Line on the console once sshd is about to start."""
TRIED: Final = "steelyard: booted"
"""Line on the console of a trial boot."""
TRIAL_WORD: Final = "steelyard.trial"
"""Word of the kernel's command line that ends a machine after its kernel and its first program."""
FOLDER: Final = "/var/lib/steelyard"
"""Mount point of the disk that holds nodes' folders, snapshots and copied files."""
ROOT_DISK, DATA_DISK, IDENTITY_DISK = "root", "data", "identity"
ADDRESS_FILE: Final = "etc/steelyard/address"

FIRST_INIT: Final = f"""\
#!/bin/busybox sh
say() {{ echo "steelyard: $*" > /dev/console; }}
fail() {{ say "$*"; /bin/busybox sleep 1; /bin/busybox poweroff -f; }}
disk() {{
  tries=0
  while [ $tries -lt 100 ]; do
    for block in /sys/block/vd*; do
      read -r serial < "$block/serial"
      if [ "$serial" = "$1" ]; then echo "/dev/${{block##*/}}"; return; fi
    done
    tries=$((tries + 1))
    /bin/busybox usleep 50000
  done
  fail "disk $1 not found"
}}
/bin/busybox mount -t devtmpfs dev /dev
exec < /dev/console > /dev/console 2>&1
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
for module in /modules/*; do
  [ ! -e "$module" ] || /bin/busybox insmod "$module" || fail "$module was not loaded"
done
read -r line < /proc/cmdline
case " $line " in
  *" {TRIAL_WORD} "*) echo "{TRIED}" > /dev/console; /bin/busybox poweroff -f ;;
esac
/bin/busybox mount -t ext4 -o noatime,noinit_itable "$(disk {ROOT_DISK})" /root || fail "no root file system"
/bin/busybox mount -t ext4 -o noatime,noinit_itable,discard "$(disk {DATA_DISK})" /root{FOLDER} ||
  fail "the disk for data cannot be mounted"
/bin/busybox tar -x -f "$(disk {IDENTITY_DISK})" -C /root || fail "no identity found for this machine"
for folder in dev proc sys; do /bin/busybox mount -o move "/$folder" "/root/$folder"; done
exec /bin/busybox switch_root /root /sbin/steelyard-init
"""
"""First program of the first file system, in memory: modules, disks, identity."""

SECOND_INIT: Final = f"""\
#!/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 022
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/sshd /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
cat /etc/hostname > /proc/sys/kernel/hostname
ip link set lo up
ip address add "$(cat /{ADDRESS_FILE})" broadcast + dev eth0
ip link set eth0 up
rm -rf {FOLDER}/nodes
ulimit -n 1048576
ulimit -c 0
echo "{READY}" > /dev/console
exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock tini -- /usr/sbin/sshd -D -e
"""
"""First program of the root file system: network, then sshd. As root, Cassandra would lock its whole heap in memory; a
node should behave as for an ordinary user."""

SSHD_CONFIG: Final = """\
Port 22
HostKey /etc/ssh/steelyard_key
AuthorizedKeysFile /etc/steelyard/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
MaxSessions 1000
MaxStartups 1000
"""
"""Many commands share one connection."""

MODULES: Final = ("virtio_pci", "virtio_blk", "virtio_net", "virtio_rng", "crc32c_generic", "ext4")
"""Kernel modules in the first file system, with their dependencies; a kernel may have them built in."""

MAKE_FIRST: Final = """\
set -eu
out=$1
shift
version=$(ls /lib/modules)
tree=$(mktemp -d /tmp/first-XXXXXX)
mkdir "$tree/bin" "$tree/dev" "$tree/modules" "$tree/proc" "$tree/root" "$tree/sys"
mknod "$tree/dev/console" c 5 1
cp /bin/busybox "$tree/bin/busybox"
cp /usr/share/steelyard/first-init "$tree/init"
chmod 755 "$tree/init"
number=100
for name in "$@"; do modprobe --set-version "$version" --show-depends "$name" || :; done |
while read -r verb path more; do
  [ "$verb" = insmod ] || continue
  base=${path##*/}
  base=${base%%.ko*}
  ls "$tree"/modules/*-"$base.ko" > /dev/null 2>&1 && continue
  number=$((number + 1))
  case $path in
    *.xz) busybox xzcat "$path" > "$tree/modules/$number-$base.ko" ;;
    *) cp "$path" "$tree/modules/$number-$base.ko" ;;
  esac
done
cd "$tree"
find . | cpio --quiet -o -H newc | gzip -1 > "$out"
cp "/boot/vmlinuz-$version" "${out%/*}/vmlinuz"
rm -rf "$tree"
"""
"""Run within the new root file system. Arguments: where the first file system goes, then modules. The kernel goes
next to it."""
