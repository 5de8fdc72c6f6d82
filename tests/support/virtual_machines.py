"""
Virtual machines in software emulation: Debian's kernel, systemd, and cloud-init with the NoCloud datasource.

A boot takes about 90 seconds of CPU time without hardware virtualization. ``STOKER_TEST_VM=1`` or ``make vm`` permits
it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.databases import missing
from support.installations import Installation, run

_SUITE, _MIRROR = "bookworm", "http://deb.debian.org/debian"
_PACKAGES = (
    *("ca-certificates", "cloud-init", "dbus", "ifupdown", "initramfs-tools", "iproute2", "isc-dhcp-client"),
    *("linux-image-cloud-amd64", "procps", "python3", "systemd-sysv", "udev"),
)
_WITHOUT = ("doc", "locale", "man")
_PROGRAMS = ("genisoimage", "mke2fs", "mmdebstrap", "qemu-img", "qemu-system-x86_64")
#: Timers and services that only cost time in emulation.
_MASKED = (
    *("apt-daily-upgrade.timer", "apt-daily.timer", "cloud-init-hotplugd.socket", "dpkg-db-backup.timer"),
    *("e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "systemd-binfmt.service"),
    *("systemd-pstore.service", "systemd-timesyncd.service"),
)
#: The address of this computer's loopback interface in the machine.
HOST = "10.0.2.2"
_FILES = {
    "etc/fstab": "/dev/vda / ext4 defaults,noatime 0 0\n",
    "etc/cloud/cloud.cfg.d/90-seed.cfg": "datasource_list: [NoCloud]\ndatasource: {NoCloud: {fs_label: cidata}}\n",
    "etc/initramfs-tools/conf.d/small": "MODULES=list\nCOMPRESS=gzip\n",
    "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\next4\n",
}
_KERNEL = "root=/dev/vda console=ttyS0 net.ifnames=0 quiet systemd.show_status=0 mitigations=off random.trust_cpu=on"


def can_build() -> bool:
    """Whether this user and this computer can make and run virtual machines."""
    return os.geteuid() == 0 and all(shutil.which(program) for program in _PROGRAMS)


def _build(folder: Path) -> None:
    root = folder / "root"
    run(
        *("mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", "--format=directory"),
        f"--include={','.join(_PACKAGES)}",
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _WITHOUT),
        *('--aptopt=APT::Install-Recommends "false"', _SUITE, str(root), _MIRROR),
    )
    for name, text in _FILES.items():
        root.joinpath(name).write_text(text)
    run("chroot", str(root), "update-initramfs", "-u")
    run("chroot", str(root), "systemctl", "--quiet", "mask", *_MASKED)
    for name, pattern in (("vmlinuz", "vmlinuz-*"), ("initrd", "initrd.img-*")):
        shutil.copy(next(root.glob(f"boot/{pattern}")), folder / name)
    run("mke2fs", "-q", "-F", "-t", "ext4", "-d", str(root), str(folder / "disk"), "1500M")
    shutil.rmtree(root)


#: Debian with cloud-init on a disk, with its kernel beside it. The number changes with the packages.
DISK = Installation(f"vm-{_SUITE}-1", _build, can_build)


def require() -> Path:
    """Return the folder of the disk. Skip the test, or fail it in CI, if this computer cannot run it."""
    if os.environ.get("STOKER_TEST_VM") != "1":
        pytest.skip("an emulated boot takes minutes: run `make vm`")
    if not can_build():
        missing("virtual machines need root, mmdebstrap, qemu-system-x86, qemu-utils and genisoimage")
    DISK.install()
    return DISK.require()


@dataclass
class VirtualMachine:
    """A running machine. ``console`` is the file with the output of its serial console."""

    console: Path
    process: subprocess.Popen[bytes]

    def wait(self, is_ready: Callable[[], bool], seconds: float) -> None:
        """Wait until ``is_ready`` returns true. Fails if the machine ends before."""
        limit = time.monotonic() + seconds
        while not is_ready():
            text = self.console.read_text(errors="replace")[-3000:]
            assert self.process.poll() is None, f"the machine ended:\n{text}"
            assert time.monotonic() < limit, f"the machine is not ready:\n{text}"
            time.sleep(0.5)


@contextmanager
def booted(folder: Path, name: str, user_data: str) -> Iterator[VirtualMachine]:
    """Boot a new machine whose datasource has this user data, and end it with the context."""
    disk = require()
    seed, image = folder / "seed", folder / "disk.qcow2"
    seed.mkdir(parents=True)
    seed.joinpath("user-data").write_text(user_data)
    seed.joinpath("meta-data").write_text(json.dumps({"instance-id": f"i-{name}", "local-hostname": name}))
    medium = folder / "seed.iso"
    run("genisoimage", "-quiet", "-output", str(medium), "-volid", "cidata", "-joliet", "-rock", str(seed))
    run("qemu-img", "create", "-q", "-f", "qcow2", "-b", str(disk / "disk"), "-F", "raw", str(image))
    console = folder / "console"
    console.touch()
    command = [
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max", "-m", "512", "-smp", "2"),
        *("-no-reboot", "-kernel", str(disk / "vmlinuz"), "-initrd", str(disk / "initrd"), "-append", _KERNEL),
        *("-drive", f"file={image},if=virtio,cache=unsafe"),
        *("-drive", f"file={medium},if=virtio,format=raw,readonly=on"),
        *("-netdev", "user,id=n", "-device", "virtio-net-pci,netdev=n,romfile=", "-device", "virtio-rng-pci"),
        *("-serial", f"file:{console}", "-display", "none", "-monitor", "none"),
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        yield VirtualMachine(console, process)
    finally:
        process.kill()
        process.wait(60)
