"""
The parts of the entries for Fedora and its relatives, on a machine with dnf instead of apt.

The packages come from a local repository and have the names, units and files that Fedora's have; their units start the
programs of Debian, which are on the machine already.
"""

from __future__ import annotations

import json

import pytest

from support.catalog_entries import Catalog, items
from support.machine_bases import Base
from support.rpm_packages import Package, add_packages, use_local_packages

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def unit(command: str, *lines: str) -> str:
    return "\n".join(["[Service]", f"ExecStart={command}", *lines, "[Install]", "WantedBy=multi-user.target"])


#: The folder of units in packages.
_UNITS = "/usr/lib/systemd/system"
_PACKAGES = (
    Package(
        "chrony",
        # Machines have no right to set the clock, so chrony only simulates that.
        files={f"{_UNITS}/chronyd.service": unit("/usr/sbin/chronyd -d -x -F 0 -f /etc/chrony.conf")},
        after="install -d -o _chrony -g _chrony /run/chrony /var/lib/chrony /var/log/chrony; touch /etc/chrony.keys",
    ),
    Package("cronie", files={f"{_UNITS}/crond.service": unit("/usr/sbin/cron -f")}),
    Package(
        "golang-github-prometheus-node-exporter",
        files={
            f"{_UNITS}/node_exporter.service": unit("/usr/bin/node_exporter"),
            "/usr/bin/node_exporter": '#!/bin/sh\nexec /usr/bin/prometheus-node-exporter "$@"',
        },
    ),
    Package(
        "moby-engine",
        files={f"{_UNITS}/docker.service": unit("/usr/sbin/dockerd", "Type=notify")},
        before="getent group docker > /dev/null || groupadd --system docker",
    ),
    Package(
        "openssh-server",
        files={
            f"{_UNITS}/sshd.service": unit(
                *("/usr/sbin/sshd -D", "ExecStartPre=/usr/bin/ssh-keygen -A", "ExecReload=kill -HUP $MAINPID"),
            )
        },
    ),
    Package(
        "redis",
        files={
            f"{_UNITS}/redis.service": unit(
                "/usr/bin/redis-server /etc/redis/redis.conf --daemonize no --supervised systemd",
                *("Type=notify", "User=redis", "RuntimeDirectory=redis"),
            )
        },
        after="chgrp redis /etc/redis; install -d -o redis -g redis /var/lib/redis /var/log/redis;"
        " install -m 640 -g redis /etc/redis/redis.conf.debian /etc/redis/redis.conf",
    ),
    Package("hello-stoker"),
    Package("hello-world", requires="library"),
    Package("library"),
)


@pytest.fixture(scope="module")
def catalog(machines, container_base, rpm_base, tmp_path_factory):
    # Docker's program, and dnf without a database of Debian's packages that would count.
    base = Base((*container_base.installations, rpm_base.top))
    with machines.make("dnf", booted=True, base=base) as machine:
        machine.run(["systemctl", "disable", "--now", "docker", "docker.socket", "containerd"])
        machine.run(["sh", "-c", f"rm -f {_UNITS}/docker.*; mv /etc/redis/redis.conf /etc/redis/redis.conf.debian"])
        machine.run(["systemctl", "daemon-reload"])
        use_local_packages(machine)
        add_packages(machine, _PACKAGES)
        yield Catalog(machine, tmp_path_factory.mktemp("catalog"))


def is_installed(catalog: Catalog, package: str) -> bool:
    return catalog.machine.run(["rpm", "-q", package], check=False).returncode == 0


def test_chrony(catalog):
    first = catalog.journey("chrony", servers=["127.0.0.1"], pools=[])
    assert items(first) == ["chrony", "shell", "/etc/chrony.conf", "chronyd.service"]
    assert first["chrony_version"]
    assert "127.0.0.1" in catalog.machine.run(["chronyc", "-n", "sources"]).stdout
    assert "keyfile /etc/chrony.keys\n" in catalog.machine.read("/etc/chrony.conf")
    catalog.undo("chrony")
    assert not is_installed(catalog, "chrony")


def test_cron(catalog):
    first = catalog.journey("cron", job="stamp", schedule="* * * * *", command="true")
    assert items(first) == ["cronie", first["file"], "crond.service"]
    catalog.undo("cron")
    assert is_installed(catalog, "cronie"), "undo keeps cron for other jobs"


def test_sshd(catalog):
    catalog.journey("sshd", port=2222, root_login="no")
    assert catalog.is_active("sshd")
    moved = catalog.run("sshd", port=2223)  # the first run had no key of the host yet
    assert (items(moved)[-1], moved["fingerprint"][:7]) == ("sshd.service", "SHA256:")
    listen = "import socket; print(socket.create_connection(('127.0.0.1', 2223), 5).recv(7).decode())"
    catalog.machine.until("python3", "-c", listen)
    catalog.undo("sshd")


def test_redis(catalog):
    first = catalog.journey("redis", memory_mb=32, password="correct-horse", eviction="allkeys-lru")
    assert items(first)[-1] == "redis.service"
    ask = ["redis-cli", "--no-auth-warning", "CONFIG", "GET", "maxmemory-policy"]
    answer = catalog.machine.run(ask, environment={"REDISCLI_AUTH": "correct-horse"}).stdout
    assert "allkeys-lru" in answer
    catalog.undo("redis")
    assert not is_installed(catalog, "redis")


def test_node_exporter(catalog):
    first = catalog.journey("node-exporter", listen="127.0.0.1:9101")
    assert items(first)[-1] == "node_exporter.service"
    assert "node_memory_MemTotal_bytes" in catalog.fetch(first["url"])
    catalog.undo("node-exporter")
    assert not catalog.is_active("node_exporter")


def test_docker(catalog):
    first = catalog.journey("docker", log_size_mb=20)
    own = [item for item in items(first) if item not in ("shell", "/etc/docker")]
    assert own == ["moby-engine", "/etc/docker/daemon.json", "docker.service"]
    assert first["docker_version"]
    catalog.undo("docker")
    assert not catalog.is_active("docker")
    assert not is_installed(catalog, "moby-engine")


def test_patch(catalog):
    catalog.machine.run(["dnf", "-q", "-y", "install", "hello-stoker", "hello-world"])
    first = catalog.run("patch", "check")
    assert (first["deploy_changed"], "reboot_needed" in first) == (False, False)
    add_packages(catalog.machine, [Package("hello-stoker", "2.0"), Package("systemd")])
    planned = catalog.run("patch", "check")
    assert [(change["item"], change["diff"]) for change in planned["deploy_changes"]] == [
        ("hello-stoker", "1.0-1 → 2.0-1")
    ]
    assert catalog.run("patch", exclude=["hello-stoker"])["deploy_changed"] is False
    assert catalog.run("patch")["upgraded"] == ["hello-stoker 1.0-1 → 2.0-1"]
    assert catalog.run("patch")["deploy_changed"] is False

    catalog.machine.run(["rpm", "-e", "hello-world"])  # leaves the library, which was installed as its dependency
    assert catalog.run("patch")["deploy_changed"] is False
    assert items(catalog.run("patch", "check", autoremove=True)) == ["packages that nothing needs"]
    assert is_installed(catalog, "library")
    assert items(catalog.run("patch", autoremove=True)) == ["packages that nothing needs"]
    assert not is_installed(catalog, "library")
    assert catalog.run("patch", autoremove=True)["deploy_changed"] is False

    # The real plug-in of dnf, under the name that Fedora gives it: a systemd that is newer than the boot needs one.
    catalog.machine.put("/usr/bin/needs-restarting", '#!/bin/sh\nexec dnf needs-restarting "$@"\n', 0o755)
    assert catalog.run("patch", "check")["reboot_needed"] is False
    catalog.machine.run(["dnf", "-q", "-y", "install", "systemd"])
    assert catalog.run("patch", "check")["reboot_needed"] is True


def test_entries_for_debian_alone_are_refused(catalog):
    report = catalog.run("apt-repository", fails=True, repository="local", url="file:/srv/debs", trusted=True)
    assert "supports Debian and its relatives" in report["deploy_stderr"]
    report = catalog.run("postgresql", fails=True, database="shop", user="shop", password="a secret")
    assert "supports Debian and its relatives" in report["deploy_stderr"]
    unknown = catalog.run("certificate", fails=True, common_name="shop.test")
    assert "dnf -y install openssl failed with exit code 1" in json.dumps(unknown)
