"""
Root file systems of test machines, made once by mmdebstrap and shared by all machines.

An extended base is a layer: the files that a machine changed while its packages were installed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.databases import missing
from support.installations import Installation, run

if TYPE_CHECKING:
    from support.machines import Machine

_SUITE, _MIRROR = "bookworm", "http://deb.debian.org/debian"
#: systemd and D-Bus boot a machine; the others are what a small cloud image has. No curl, wget or sudo.
_PACKAGES = (
    *("ca-certificates", "dbus", "iproute2", "netbase", "passwd", "procps", "python3", "python3-apt", "python3-yaml"),
    "systemd-sysv",
)
#: Units that a machine has no use for, or that wait for hardware.
_MASKED = (
    *("apt-daily-upgrade.timer", "apt-daily.timer", "console-getty", "dpkg-db-backup.timer", "e2scrub_all.timer"),
    *("fstrim.timer", "getty@tty1", "systemd-logind", "systemd-networkd-wait-online", "systemd-resolved"),
    *("systemd-timesyncd", "systemd-udev-trigger", "systemd-udevd"),
)
_WITHOUT = ("doc", "locale", "man")


def can_build() -> bool:
    """Whether this user and this computer can make machines."""
    return os.geteuid() == 0 and shutil.which("mmdebstrap") is not None


def require_machines() -> None:
    """Skip the test, or fail it in CI, if this computer cannot make machines."""
    if not can_build():
        missing("test machines need root and mmdebstrap (apt-get install mmdebstrap)")


def _build(folder: Path) -> None:
    run(
        *("mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", "--format=directory"),
        f"--include={','.join(_PACKAGES)}",
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _WITHOUT),
        *('--aptopt=APT::Install-Recommends "false"', '--aptopt=Acquire::Languages "none"'),
        "--skip=cleanup/apt/lists",  # an extended base and tests install packages without an update
        *(_SUITE, str(folder), _MIRROR),
    )
    run("chroot", str(folder), "systemctl", "--quiet", "mask", *_MASKED)
    run("chroot", str(folder), "systemctl", "--quiet", "set-default", "multi-user.target")
    folder.joinpath("etc/machine-id").write_text("")


@dataclass(frozen=True)
class Base:
    """A root file system: its layers, from the lowest, and how they are made."""

    installations: tuple[Installation, ...]

    @property
    def top(self) -> Installation:
        """The installation of the last layer, which includes those below."""
        return self.installations[-1]

    def require(self) -> tuple[Path, ...]:
        """Return the folders of the layers. If one is not installed, skip the test, or fail it in CI."""
        require_machines()
        return tuple(installation.require() for installation in self.installations)


#: Debian with Python, systemd and apt. The number changes with the packages.
DEBIAN = Base((Installation(f"machine-{_SUITE}-1", _build, can_build),))


def extend(release: str, base: Base, *packages: str, finish: Callable[[Machine], object] = lambda _: None) -> Base:
    """Return a base with more packages of Debian, which ``finish`` may complete."""

    def build(folder: Path) -> None:
        from support.machines import Machines

        for installation in base.installations:
            installation.install()
        with Machines.open() as machines, machines.make("base", base=base) as machine:
            machine.put("/etc/resolv.conf", Path("/etc/resolv.conf").read_text())
            _install(machine, *packages)
            machine.run(["sh", "-c", "rm -rf /var/cache/apt/archives/*.deb"])
            finish(machine)
            machine.put("/etc/resolv.conf", "")
            machine.remove(keep=folder)

    return Base((*base.installations, Installation(release, build, can_build)))


def _install(machine: Machine, *words: str) -> None:
    machine.run(
        ["apt-get", "install", "-qy", "--no-install-recommends", *words],
        environment={"DEBIAN_FRONTEND": "noninteractive"},
        timeout=1200,
        on_host_network=True,
    )


def _download(machine: Machine) -> None:
    """Keep packages where apt finds them, so that entries of the catalog install them without a network."""
    _install(machine, "--download-only", *_INSTALLED_BY_ENTRIES)


def _add_compose(machine: Machine) -> None:
    """Add Compose 2, which Debian has since its next release; the package contains one static program."""
    sources = "/etc/apt/sources.list.d/next.list"
    machine.put(sources, f"deb {_MIRROR} trixie main\n")
    plugins = "/usr/libexec/docker/cli-plugins"
    script = f"""
        cd /tmp && apt-get update -q && apt-get download -q docker-compose/trixie
        dpkg-deb -x docker-compose_*.deb compose && mkdir -p {plugins}
        cp compose/usr/libexec/docker/cli-plugins/docker-compose {plugins}/
        rm -r compose docker-compose_*.deb {sources} /var/lib/apt/lists/*trixie*
    """
    machine.run(["sh", "-ec", script], timeout=600, on_host_network=True)


#: Debian with Docker, Compose 2 and podman. Neither engine runs before a test starts it.
CONTAINERS = extend(
    "machine-containers-1",
    DEBIAN,
    *("aardvark-dns", "busybox-static", "catatonit", "docker.io", "iptables", "netavark", "podman", "runc"),
    finish=_add_compose,
)
#: Debian with Ansible and Puppet.
AUTOMATION = extend("machine-automation-1", DEBIAN, "ansible-core", "puppet-agent")


def _remove_units(machine: Machine) -> None:
    """Remove the units of Debian's packages: packages of Fedora bring units with other names for the same programs."""
    names = " ".join(_SERVED_BY_RPM)
    script = f"""
        for name in {names}; do systemctl --quiet disable $name; done
        cd /lib/systemd/system
        for name in {names}; do rm -f $name.service $name.socket $name@.service /etc/init.d/$name; done
        rm -f /usr/bin/apt-get /etc/systemd/system/sshd.service
    """
    machine.run(["sh", "-c", script])


#: Services of Debian whose programs packages of Fedora use under other names.
_SERVED_BY_RPM = ("chrony", "cron", "prometheus-node-exporter", "redis-server", "ssh")
#: Debian with the package manager of Fedora instead of its own, the programs that build packages, and programs of
#: services without units.
RPM = extend(
    "machine-rpm-2",
    DEBIAN,
    *("chrony", "createrepo-c", "cron", "dnf", "dnf-plugins-core", "openssh-server", "prometheus-node-exporter"),
    *("redis-server", "rpm"),
    finish=_remove_units,
)
#: What entries of the catalog install.
_INSTALLED_BY_ENTRIES = (
    *("chrony", "cron", "docker.io", "git", "logrotate", "nftables", "nginx", "openssh-server", "openssl"),
    *("postgresql", "prometheus-node-exporter", "redis-server", "sudo"),
)
#: Debian with the packages that entries of the catalog install, as files.
CATALOG = extend("machine-catalog-1", DEBIAN, finish=_download)
#: Debian with sudo.
SUDO = extend("machine-sudo-1", DEBIAN, "sudo")
#: Test machines have a network already, and neither locales nor an SSH server.
_CLOUD_CONFIG = "network: {config: disabled}\nlocale: false\nssh_genkeytypes: []\n"
#: A cloud image of Debian: cloud-init configures it at the first boot.
CLOUD = extend(
    "machine-cloud-2",
    DEBIAN,
    "cloud-init",
    finish=lambda machine: machine.put("/etc/cloud/cloud.cfg.d/90-test.cfg", _CLOUD_CONFIG),
)
