"""A flat repository of Debian packages in a test machine, so that apt works without a network."""

from __future__ import annotations

from support.machines import Machine

#: Writes the index of a flat repository.
_INDEX = """
cd /srv/debs
for deb in *.deb; do
    dpkg-deb -f "$deb"
    printf 'Filename: ./%s\\nSize: %s\\nSHA256: %s\\n\\n' \\
        "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)"
done > Packages
"""


def add_package(machine: Machine, name: str, version: str, *, depends: str = "", postinst: str = "") -> None:
    """Build a package and add it to the repository's index; apt knows it after the next update."""
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: d\n"
    top = f"/srv/build/{name}-{version}"
    machine.put(f"{top}/DEBIAN/control", control + (f"Depends: {depends}\n" if depends else ""))
    machine.put(f"{top}/usr/share/{name}/version", f"{version}\n")
    if postinst:
        machine.put(f"{top}/DEBIAN/postinst", f"#!/bin/sh\n{postinst}\n", 0o755)
    machine.run(["dpkg-deb", "--build", top, f"/srv/debs/{name}_{version}_all.deb"])
    machine.run(["sh", "-ec", _INDEX])


def use_local_packages(machine: Machine) -> None:
    """Make the folder of ``add_package`` the only source of packages."""
    machine.run(["sh", "-c", "rm -rf /etc/apt/sources.list* /var/lib/apt/lists/*; mkdir -p /srv/debs"])
    machine.put("/etc/apt/sources.list", "deb [trusted=yes] copy:/srv/debs ./\n")
