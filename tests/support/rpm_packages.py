"""A repository of RPM packages in a test machine, so that dnf works without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from support.machines import Machine

_REPOSITORY = """[local]
name=local
baseurl=file:///srv/rpms
gpgcheck=0
metadata_expire=0
"""


@dataclass(frozen=True)
class Package:
    """A package to build: its files by path (an executable file begins with ``#!``), and scripts of the shell."""

    name: str
    version: str = "1.0"
    requires: str = ""
    provides: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    after: str = ""

    def spec(self) -> str:
        """Return the package's description for rpmbuild, which contains the files."""
        lines = [f"Name: {self.name}", f"Version: {self.version}", "Release: 1", "Summary: d", "License: MIT"]
        lines += ["BuildArch: noarch", *([f"Requires: {self.requires}"] if self.requires else [])]
        lines += [f"Provides: {self.provides}"] if self.provides else []
        lines += ["%description", "d", "%install"]
        for path, content in self.files.items():
            lines += [f"install -D -m {_mode(content)} /dev/stdin %{{buildroot}}{path} <<'END_OF_FILE'", content]
            lines.append("END_OF_FILE")
        for section, script in (("%pre", self.before), ("%post", self.after)):
            lines += [section, script] if script else []
        return "\n".join([*lines, "%files", *self.files]) + "\n"


def _mode(content: str) -> str:
    return "755" if content.startswith("#!") else "644"


def use_local_packages(machine: Machine) -> None:
    """Make the folder of ``add_packages`` the only source of packages."""
    machine.run(["sh", "-c", "rm -rf /etc/yum.repos.d /etc/dnf/plugins/local.conf"])
    machine.put("/etc/yum.repos.d/local.repo", _REPOSITORY)
    machine.put("/etc/dnf/dnf.conf", "[main]\nmodule_platform_id=platform:f40\n")
    machine.put("/etc/dnf/vars/releasever", "1\n")
    add_packages(machine, [Package("shell", provides="/bin/sh")])  # which scripts of packages require


def add_packages(machine: Machine, packages: Sequence[Package]) -> None:
    """Build packages and add them to the repository."""
    specs = [f"/srv/{package.name}-{package.version}.spec" for package in packages]
    for path, package in zip(specs, packages, strict=True):
        machine.put(path, package.spec())
    build = ["rpmbuild", "-bb", "--quiet", "--define", "_rpmdir /srv/rpms", "--define", "__spec_install_post %{nil}"]
    machine.run([*build, *specs])
    machine.run(["createrepo_c", "-q", "/srv/rpms"])
    # An expiry of 0 still counts whole seconds: dnf would not see what came in the second of its last look.
    machine.run(["dnf", "-q", "clean", "expire-cache"])
