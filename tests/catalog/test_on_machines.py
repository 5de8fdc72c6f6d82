"""
The entries of the catalogue on a machine with systemd and apt: applied twice, compared, and undone.

All entries share one machine. Packages come from the distribution's archive, through the host's network.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from stoker.catalog import entry as entries
from stoker.catalog import shipped
from stoker.hot.text import read
from stoker_agent.archive import build_hook
from support.machines import Machine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
_HOOK = "/opt/hook-python"


@dataclass
class Catalog:
    """The hook of the entries on the machine."""

    machine: Machine

    def run(self, name: str, mode: str = "apply", *, fails: bool = False, **values: Any) -> dict[str, Any]:
        """Run version 1 of an entry as a deployment, and return its report. ``fails``: it must fail."""
        text = shipped.find_entry(name, 1)
        assert text is not None
        entry = entries.parse(read(text, "Catalogue entry", 1_000_000))
        facts = {"deploy_stack_id": "stack", "deploy_resource_name": name, "deploy_action": "UPDATE"}
        inputs = [{"name": key, "value": value} for key, value in {**values, **facts}.items()]
        config = {"id": name, "group": entry.group, "config": entry.source(), "inputs": inputs}
        done = self.machine.run(
            [_HOOK],
            input=json.dumps(config),
            environment={"STOKER_HOOK_MODE": mode},
            timeout=600,
            check=False,
        )
        report: dict[str, Any] = json.loads(done.stdout or "{}")
        assert bool(report.get("deploy_status_code", 1)) is fails, (report, done.stderr)
        return report

    def journey(self, name: str, **values: Any) -> dict[str, Any]:
        """Compare, apply, apply again and compare again. Return the report of the first application."""
        assert self.run(name, "check", **values)["deploy_changed"] is True
        first = self.run(name, **values)
        assert first["deploy_changed"] is True
        again = self.run(name, **values)
        assert (again["deploy_changed"], again["deploy_changes"]) == (False, []), again
        assert self.run(name, "check", **values)["deploy_changed"] is False
        return first

    def download(self, *packages: str) -> None:
        """Fetch packages through the host's network, for an entry that installs them on the machine's own network."""
        fetch = ["apt-get", "-y", "-q", "--download-only", "--no-install-recommends", "install", *packages]
        self.machine.run(fetch, on_host_network=True, timeout=600)

    def undo(self, name: str) -> None:
        """Undo an entry. A second time, nothing is left to do."""
        assert self.run(name, "undo")["deploy_changed"] is True
        assert self.run(name, "undo")["deploy_changed"] is False

    def is_active(self, unit: str) -> bool:
        return self.machine.run(["systemctl", "is-active", unit], check=False).stdout == "active\n"

    def fetch(self, url: str) -> str:
        script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=30).read().decode(), end='')"
        return self.machine.run(["python3", "-c", script, url]).stdout


@pytest.fixture(scope="module")
def catalog(machines, tmp_path_factory):
    hook = tmp_path_factory.mktemp("hook") / "python"
    build_hook("python", hook)
    with machines.make("catalog", booted=True) as machine:
        machine.put(_HOOK, hook.read_bytes(), 0o755)
        yield Catalog(machine)


def items(report: Mapping[str, Any]) -> list[str]:
    return [change["item"] for change in report["deploy_changes"]]


def test_nginx(catalog):
    catalog.download("nginx")
    first = catalog.journey("nginx", site="shop", port=8080, root="/srv/shop")
    assert items(first) == ["packages nginx", "/srv/shop", "/srv/shop/index.html", "/etc/nginx/conf.d/shop.conf"] or (
        items(first)[-1] == "nginx.service"
    )
    assert first["nginx_version"][0].isdigit()
    assert "<p>shop</p>" in catalog.fetch("http://127.0.0.1:8080/")
    moved = catalog.run("nginx", site="shop", port=8081, root="/srv/shop")
    assert items(moved) == ["/etc/nginx/conf.d/shop.conf", "nginx.service"]
    assert "<p>shop</p>" in catalog.fetch("http://127.0.0.1:8081/")
    catalog.run("nginx", fails=True, site="shop", port=8081, root="/srv/shop", directives="no such directive;")
    assert "no such" not in catalog.machine.read("/etc/nginx/conf.d/shop.conf")
    catalog.run("nginx", fails=True, port=0)
    catalog.undo("nginx")
    assert not catalog.is_active("nginx")
    assert not catalog.machine.exists("/usr/sbin/nginx")


def test_node_exporter(catalog):
    catalog.download("prometheus-node-exporter")
    first = catalog.journey("node-exporter", listen="127.0.0.1:9101")
    assert "node_memory_MemTotal_bytes" in catalog.fetch(first["url"])
    catalog.undo("node-exporter")
    assert not catalog.is_active("prometheus-node-exporter")


def test_postgresql(catalog):
    catalog.download("postgresql")
    values = {"database": "shop", "user": "shop", "password": "it's a secret", "allow": ["10.0.0.0/8"]}
    first = catalog.journey("postgresql", **values)
    assert first["server_version"]
    assert values["password"] not in json.dumps(first)
    login = ["psql", "-At", "-h", "127.0.0.1", "-U", "shop", "-c", "SELECT current_user", "shop"]
    assert catalog.machine.run(login, environment={"PGPASSWORD": values["password"]}).stdout == "shop\n"
    changed = catalog.run("postgresql", **{**values, "password": "another secret"})
    assert items(changed) == ["role shop"]
    assert catalog.machine.run(login, environment={"PGPASSWORD": "another secret"}).stdout == "shop\n"
    assert catalog.machine.run(login, environment={"PGPASSWORD": values["password"]}, check=False).returncode
    catalog.undo("postgresql")


def test_redis(catalog):
    catalog.download("redis-server")
    first = catalog.journey("redis", memory_mb=32, password="correct-horse", eviction="allkeys-lru")
    assert first["address"].endswith(":6379")
    ask = ["redis-cli", "--no-auth-warning", "CONFIG", "GET", "maxmemory-policy"]
    answer = catalog.machine.run(ask, environment={"REDISCLI_AUTH": "correct-horse"}).stdout
    assert "allkeys-lru" in answer
    assert "NOAUTH" in catalog.machine.run(["redis-cli", "PING"], check=False).stdout
    catalog.run("redis", fails=True, listen=["0.0.0.0"])
    catalog.undo("redis")


def test_chrony(catalog):
    catalog.download("chrony")
    values = {"servers": ["127.0.0.1"], "pools": []}
    planned = catalog.run("chrony", "check", **values)
    assert "packages chrony" in items(planned)
    # The machines have no right to set the clock, so chrony only simulates that here.
    catalog.machine.put("/etc/systemd/system/chrony.service.d/test.conf", "[Unit]\nConditionCapability=\n")
    catalog.machine.put("/etc/default/chrony", 'DAEMON_OPTS="-F 0 -x"\n')
    catalog.machine.run(["systemctl", "daemon-reload"])
    first = catalog.journey("chrony", **values)
    assert first["chrony_version"]
    assert "127.0.0.1" in catalog.machine.run(["chronyc", "-n", "sources"]).stdout
    catalog.undo("chrony")


def test_sshd(catalog):
    catalog.download("openssh-server")
    first = catalog.journey("sshd", port=2222, root_login="no")
    assert first["fingerprint"].startswith("SHA256:")
    effective = catalog.machine.run(["sshd", "-T"]).stdout
    for line in ("port 2222", "passwordauthentication no", "permitrootlogin no", "x11forwarding no"):
        assert line in effective
    catalog.run("sshd", fails=True, allow_groups=["no-such-group"])
    catalog.undo("sshd")


def test_cron(catalog):
    catalog.download("cron")
    first = catalog.journey("cron", job="stamp", schedule="* * * * *", command="date +%s > /run/stamp")
    assert "date +\\%s" in catalog.machine.read(first["file"])
    assert catalog.is_active("cron")
    catalog.run("cron", fails=True, job="stamp", schedule="every day", command="true")
    catalog.undo("cron")
    assert not catalog.machine.exists(first["file"])


def test_firewall(catalog):
    catalog.download("nftables")
    first = catalog.journey("firewall", tcp=["22", "8000-8100"], trusted=["10.0.0.0/8", "fd00::/8"])
    assert first["rules"] > 5
    listing = catalog.machine.run(["nft", "list", "table", "inet", "stoker"]).stdout
    assert "policy drop" in listing
    assert "8000-8100" in listing
    catalog.run("firewall", fails=True, tcp=["ssh"])
    catalog.undo("firewall")
    assert catalog.machine.run(["nft", "list", "table", "inet", "stoker"], check=False).returncode


def test_logrotate(catalog):
    catalog.download("logrotate")
    catalog.machine.put("/var/log/shop/shop.log", "a line\n" * 1000)
    first = catalog.journey("logrotate", log="shop", paths=["/var/log/shop/*.log"], keep=3)
    catalog.machine.run(["logrotate", "--force", first["file"]])
    assert catalog.machine.exists("/var/log/shop/shop.log.1")
    catalog.undo("logrotate")


def test_certificate(catalog):
    catalog.download("openssl")
    values = {"common_name": "shop.test", "names": ["www.shop.test", "192.0.2.1"]}
    first = catalog.journey("certificate", **values)
    text = catalog.machine.run(["openssl", "x509", "-noout", "-text", "-in", first["certificate_file"]]).stdout
    assert "DNS:www.shop.test, IP Address:192.0.2.1" in text
    assert catalog.machine.run(["stat", "-c", "%a", first["key_file"]]).stdout == "600\n"
    more = catalog.run("certificate", **{**values, "names": ["other.test"]})
    assert items(more) == [first["certificate_file"]]
    request = catalog.run("certificate", **values, kind="request")["request"]
    assert request.startswith("-----BEGIN CERTIFICATE REQUEST-----")
    assert catalog.run("certificate", **values, kind="request")["deploy_changed"] is False
    key, certificate = (catalog.machine.read(first[name]) for name in ("key_file", "certificate_file"))
    given = {"common_name": "given.test", "kind": "given", "key": key, "certificate": certificate}
    assert catalog.run("certificate", **given)["fingerprint"] == more["fingerprint"]
    catalog.run("certificate", fails=True, **{**given, "key": key.replace("M", "N", 1)})
    catalog.undo("certificate")
    assert not catalog.machine.exists(first["key_file"])


def test_users(catalog):
    catalog.download("sudo")
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAihe3vFrSUqVWkJHHeDNBDpQdfn5xJTwcrJ3zX ada"
    users = {"ada": {"keys": [key], "groups": ["adm"], "sudo": True}, "bob": {"shell": "/bin/sh"}}
    first = catalog.run("users", users=users)
    assert set(first["uids"]) == {"ada", "bob"}
    assert catalog.run("users", users=users)["deploy_changed"] is False
    assert catalog.machine.read("/home/ada/.ssh/authorized_keys") == f"{key}\n"
    assert "adm" in catalog.machine.run(["id", "-Gn", "ada"]).stdout
    assert catalog.machine.run(["runuser", "-u", "ada", "--", "sudo", "-n", "id", "-un"]).stdout == "root\n"
    gone = catalog.run("users", users={"ada": {"keys": []}}, absent=["bob"])
    assert not catalog.machine.exists("/etc/sudoers.d/stoker-ada")
    assert set(gone["uids"]) == {"ada"}
    catalog.run("users", fails=True, users={"eve": {"keys": ["no key"]}})
    catalog.run("users", fails=True, users={}, absent=["root"])
    catalog.undo("users")
    assert catalog.machine.run(["id", "ada"], check=False).returncode


def test_git_checkout(catalog):
    catalog.download("git")
    script = (
        "set -e; mkdir -p /srv/repo; cd /srv/repo; git init -q -b main; git config user.email a@b;"
        " git config user.name a;"
        " echo one > file; git add file; git commit -qm one; git tag -a v1 -m v1; echo two > file; git commit -qam two;"
        " git rev-parse v1^{commit} HEAD"
    )
    catalog.run(
        "git-checkout", fails=True, url="file:///srv/repo", path="/srv/app"
    )  # installs git, finds no repository
    one, two = catalog.machine.run(["sh", "-c", script]).stdout.split()
    values = {"url": "file:///srv/repo", "path": "/srv/app"}
    assert catalog.run("git-checkout", **values, revision="v1")["commit"] == one
    assert catalog.run("git-checkout", **values, revision="v1")["deploy_changed"] is False
    assert catalog.machine.read("/srv/app/file") == "one\n"
    assert catalog.run("git-checkout", **values, revision="main")["commit"] == two
    catalog.machine.put("/srv/app/file", "local\n")
    catalog.run("git-checkout", fails=True, **values, revision="main")
    assert catalog.run("git-checkout", **values, revision="main", discard=True)["deploy_changed"] is True
    assert catalog.machine.read("/srv/app/file") == "two\n"


def test_patch_and_apt_repository(catalog, machines):
    with machines.make("patched", booted=True) as machine:
        machine.put(_HOOK, catalog.machine.outer_root.joinpath(_HOOK[1:]).read_bytes(), 0o755)
        machine.run(["rm", "-f", "/etc/apt/sources.list"])  # this machine has no network
        _patch(Catalog(machine))


def _patch(catalog: Catalog) -> None:
    package = "hello-stoker"
    _put_archive(catalog, package, "1.0")
    source = {"repository": "local", "url": "file:/srv/debs", "trusted": True}
    assert catalog.journey("apt-repository", **source)["file"]
    catalog.machine.run(["apt-get", "-q", "-y", "install", package])
    _put_archive(catalog, package, "2.0")
    planned = catalog.run("patch", "check")
    assert (items(planned), planned["reboot_needed"]) == ([package], False)
    first = catalog.run("patch")
    assert first["upgraded"] == [f"{package} 1.0 → 2.0"]
    assert catalog.run("patch")["deploy_changed"] is False
    catalog.machine.put("/run/reboot-required", "")
    assert catalog.run("patch")["reboot_needed"] is True
    catalog.undo("apt-repository")
    catalog.run("apt-repository", fails=True, **{**source, "url": "file:/srv/nothing"})
    assert not catalog.machine.exists("/etc/apt/sources.list.d/stoker-local.sources")


def _put_archive(catalog: Catalog, package: str, version: str) -> None:
    control = f"Package: {package}\nVersion: {version}\nArchitecture: all\nMaintainer: a <a@b>\nDescription: test\n"
    catalog.machine.put(f"/tmp/{package}/DEBIAN/control", control)
    target = f"/srv/debs/{package}_{version}_all.deb"
    catalog.machine.run(["sh", "-c", f"mkdir -p /srv/debs; dpkg-deb -b /tmp/{package} {target}"])
    size, digest = catalog.machine.run(
        ["sh", "-c", f"stat -c %s {target}; sha256sum {target} | cut -d' ' -f1"]
    ).stdout.split()
    index = f"{control}Filename: ./{package}_{version}_all.deb\nSize: {size}\nSHA256: {digest}\n"
    catalog.machine.put("/srv/debs/Packages", index)


def test_sysctl(catalog):
    # Only the settings of the network can be changed in the machine.
    before = catalog.machine.read("/proc/sys/net/core/somaxconn").strip()
    settings = {"net.core.somaxconn": int(before) + 1, "net.ipv4.ip_forward": 1}
    first = catalog.journey("sysctl", settings=settings)
    assert first["values"] == {name: str(value) for name, value in settings.items()}
    catalog.run("sysctl", fails=True, settings={"net.no.such": 1})
    catalog.undo("sysctl")
    assert catalog.machine.read("/proc/sys/net/core/somaxconn").strip() == before


def test_hosts(catalog):
    before = catalog.machine.read("/etc/hosts")
    assert catalog.journey("hosts", hosts={"192.0.2.7": ["db.test", "db"], "2001:db8::1": ["six.test"]})["count"] == 2
    assert catalog.machine.run(["getent", "hosts", "db"]).stdout.split()[:2] == ["192.0.2.7", "db.test"]
    catalog.run("hosts", hosts={"192.0.2.8": ["db"]})
    assert "192.0.2.7" not in catalog.machine.read("/etc/hosts")
    catalog.run("hosts", fails=True, hosts={"no address": ["db"]})
    catalog.undo("hosts")
    assert catalog.machine.read("/etc/hosts") == before


def test_mount(catalog):
    first = catalog.journey(
        "mount", what="tmpfs", where="/srv/cache", type="tmpfs", mount_options="size=8m,nosuid,nodev"
    )
    assert (first["unit"], first["size_mb"]) == ("srv-cache.mount", 8)
    larger = catalog.run("mount", what="tmpfs", where="/srv/cache", type="tmpfs", mount_options="size=16m,nosuid,nodev")
    assert larger["size_mb"] == 16
    catalog.undo("mount")
    assert not catalog.machine.exists("/srv/cache")


def test_swap(catalog):
    # The machines have no swap of their own, so the file is only prepared.
    values = {"size_mb": 8, "file": "/srv/swapfile", "activate": False}
    catalog.journey("swap", **values)
    assert "swap file" in catalog.machine.run(["sh", "-c", "head -c 4096 /srv/swapfile | tail -c 10"]).stdout or (
        "SWAPSPACE2" in catalog.machine.run(["sh", "-c", "head -c 4096 /srv/swapfile | tail -c 10"]).stdout
    )
    assert catalog.machine.run(["stat", "-c", "%a %s", "/srv/swapfile"]).stdout == f"600 {8 * 2**20}\n"
    catalog.run("swap", fails=True, size_mb=200_000_000, file="/srv/swapfile")
    catalog.undo("swap")
    assert not catalog.machine.exists("/srv/swapfile")


def test_motd(catalog):
    before = catalog.machine.read("/etc/issue")
    catalog.journey("motd", text="Welcome to the shop", banner="Authorized use only \\n")
    assert catalog.machine.read("/etc/motd") == "Welcome to the shop\n"
    catalog.undo("motd")
    assert catalog.machine.read("/etc/issue") == before


def test_systemd_unit(catalog):
    values = {
        "unit": "shop",
        "command": "/usr/bin/python3 -m http.server 8200 --bind 127.0.0.1",
        "directory": "/var/lib/shop",
        "environment": {"MODE": 'a "quoted" $value'},
    }
    first = catalog.journey("systemd-unit", **values)
    assert first["main_pid"] > 1
    environment = catalog.machine.run(["cat", f"/proc/{first['main_pid']}/environ"]).stdout.split("\0")
    assert 'MODE=a "quoted" $value' in environment
    assert catalog.machine.run(["stat", "-c", "%a", "/etc/stoker-units/shop.env"]).stdout == "600\n"
    report = catalog.run("systemd-unit", fails=True, **{**values, "command": "/bin/false"})
    assert "shop.service" in report["deploy_stderr"]
    catalog.undo("systemd-unit")
    assert not catalog.is_active("shop")


def test_k3s_with_a_stand_in_binary(catalog, machines):
    """No k3s can be had here: a script that behaves as its command line does stands in."""
    binary = '#!/bin/sh\n[ "$1" = --version ] && echo "k3s version v1.30.1+k3s1 (abc)" && exit\n'
    binary += 'systemd-notify --ready 2>/dev/null; echo "$@ $K3S_URL" > /run/k3s-words; exec sleep 1000000\n'
    digest = hashlib.sha256(binary.encode()).hexdigest()
    catalog.machine.put("/srv/files/k3s", binary)
    serve = ["systemd-run", "--unit", "files", "python3", "-m", "http.server", "-d", "/srv/files", "8300"]
    catalog.machine.run(serve)
    catalog.machine.until("python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 8300), 5)")
    url = "http://127.0.0.1:8300/k3s"
    values = {
        "url": url,
        "sha256": digest,
        "role": "agent",
        "server_url": "https://k3s1:6443",
        "token": "a-secret-token",
    }
    wrong = catalog.run("k3s", fails=True, **{**values, "sha256": "0" * 64})
    assert digest in wrong["deploy_stderr"]
    first = catalog.journey("k3s", **values)
    assert first["k3s_version"] == "v1.30.1+k3s1"
    catalog.machine.until("grep", "-q", "agent https://k3s1:6443", "/run/k3s-words")
    catalog.undo("k3s")
    assert not catalog.machine.exists("/usr/local/bin/k3s")
