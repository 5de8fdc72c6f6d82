"""
The entries of the catalog on a machine with systemd and apt: applied twice, compared, and undone.

All entries share one machine without a network. The packages of the distribution are there as files.
"""

from __future__ import annotations

import hashlib
import json

import pytest

from hooks.containers import IMAGE, IMPORT
from support.catalog_entries import Catalog, items
from support.debian_packages import add_package, use_local_packages
from support.machine_bases import Base

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def catalog(machines, catalog_base, tmp_path_factory):
    with machines.make("catalog", booted=True, base=catalog_base) as machine:
        yield Catalog(machine, tmp_path_factory.mktemp("catalog"))


def test_nginx(catalog):
    first = catalog.journey("nginx", site="shop", port=8080, root="/srv/shop")
    assert items(first)[-1] == "nginx.service"
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
    first = catalog.journey("node-exporter", listen="127.0.0.1:9101")
    assert "node_memory_MemTotal_bytes" in catalog.fetch(first["url"])
    catalog.undo("node-exporter")
    assert not catalog.is_active("prometheus-node-exporter")


def test_postgresql(catalog):
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
    first = catalog.journey("redis", memory_mb=32, password="correct-horse", eviction="allkeys-lru")
    assert first["address"].endswith(":6379")
    ask = ["redis-cli", "--no-auth-warning", "CONFIG", "GET", "maxmemory-policy"]
    answer = catalog.machine.run(ask, environment={"REDISCLI_AUTH": "correct-horse"}).stdout
    assert "allkeys-lru" in answer
    assert "NOAUTH" in catalog.machine.run(["redis-cli", "PING"], check=False).stdout
    catalog.run("redis", fails=True, listen=["0.0.0.0"])
    catalog.undo("redis")


def test_chrony(catalog):
    values = {"servers": ["127.0.0.1"], "pools": []}
    planned = catalog.run("chrony", "check", **values)
    assert "chrony" in items(planned)
    # The machines have no right to set the clock, so chrony only simulates that here.
    catalog.machine.put("/etc/systemd/system/chrony.service.d/test.conf", "[Unit]\nConditionCapability=\n")
    catalog.machine.put("/etc/default/chrony", 'DAEMON_OPTS="-F 0 -x"\n')
    catalog.machine.run(["systemctl", "daemon-reload"])
    first = catalog.journey("chrony", **values)
    assert first["chrony_version"]
    assert "127.0.0.1" in catalog.machine.run(["chronyc", "-n", "sources"]).stdout
    catalog.undo("chrony")


def test_sshd(catalog):
    first = catalog.journey("sshd", port=2222, root_login="no")
    assert first["fingerprint"].startswith("SHA256:")
    effective = catalog.machine.run(["sshd", "-T"]).stdout
    for line in ("port 2222", "passwordauthentication no", "permitrootlogin no", "x11forwarding no"):
        assert line in effective
    catalog.run("sshd", fails=True, allow_groups=["no-such-group"])
    catalog.undo("sshd")


def test_cron(catalog):
    first = catalog.journey("cron", job="stamp", schedule="* * * * *", command="date +%s > /run/stamp")
    assert "date +\\%s" in catalog.machine.read(first["file"])
    assert catalog.is_active("cron")
    catalog.run("cron", fails=True, job="stamp", schedule="every day", command="true")
    catalog.undo("cron")
    assert not catalog.machine.exists(first["file"])


def test_firewall(catalog):
    first = catalog.journey("firewall", tcp=["22", "8000-8100"], trusted=["10.0.0.0/8", "fd00::/8"])
    assert first["rules"] > 5
    listing = catalog.machine.run(["nft", "list", "table", "inet", "stoker"]).stdout
    assert "policy drop" in listing
    assert "8000-8100" in listing
    catalog.run("firewall", fails=True, tcp=["ssh"])
    catalog.undo("firewall")
    assert catalog.machine.run(["nft", "list", "table", "inet", "stoker"], check=False).returncode


def test_logrotate(catalog):
    catalog.machine.put("/var/log/shop/shop.log", "a line\n" * 1000)
    first = catalog.journey("logrotate", log="shop", paths=["/var/log/shop/*.log"], keep=3)
    catalog.machine.run(["logrotate", "--force", first["file"]])
    assert catalog.machine.exists("/var/log/shop/shop.log.1")
    catalog.undo("logrotate")


def test_certificate(catalog):
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
    script = (
        "set -e; mkdir -p /srv/repo; cd /srv/repo; git init -q -b main; git config user.email a@b;"
        " git config user.name a; echo one > file; git add file; git commit -qm one; git tag -a v1 -m v1;"
        " echo two > file; git commit -qam two; git rev-parse v1^{commit} HEAD"
    )
    values = {"url": "file:///srv/repo", "path": "/srv/app"}
    catalog.run("git-checkout", fails=True, **values)  # installs git, finds no repository
    one, two = catalog.machine.run(["sh", "-c", script]).stdout.split()
    assert catalog.run("git-checkout", **values, revision="v1")["commit"] == one
    assert catalog.run("git-checkout", **values, revision="v1")["deploy_changed"] is False
    assert catalog.machine.read("/srv/app/file") == "one\n"
    assert catalog.run("git-checkout", **values, revision="main")["commit"] == two
    catalog.machine.put("/srv/app/file", "local\n")
    catalog.run("git-checkout", fails=True, **values, revision="main")
    assert catalog.run("git-checkout", **values, revision="main", discard=True)["deploy_changed"] is True
    assert catalog.machine.read("/srv/app/file") == "two\n"


def test_patch_and_apt_repository(machines, tmp_path):
    with machines.make("patched") as machine:
        use_local_packages(machine)
        machine.run(["rm", "/etc/apt/sources.list"])
        _patch(Catalog(machine, tmp_path))


def _patch(catalog: Catalog) -> None:
    package = "hello-stoker"
    add_package(catalog.machine, package, "1.0")
    source = {"repository": "local", "url": "file:/srv/debs", "trusted": True}
    assert catalog.journey("apt-repository", **source)["file"]
    catalog.machine.run(["apt-get", "-q", "-y", "install", package])
    add_package(catalog.machine, package, "2.0")
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
    values = {"what": "tmpfs", "where": "/srv/cache", "type": "tmpfs"}
    first = catalog.journey("mount", **values, mount_options="size=8m,nosuid,nodev")
    assert (first["unit"], first["size_mb"]) == ("srv-cache.mount", 8)
    larger = catalog.run("mount", **values, mount_options="size=16m,nosuid,nodev")
    assert larger["size_mb"] == 16
    catalog.undo("mount")
    assert not catalog.machine.exists("/srv/cache")


def test_swap(catalog):
    # The machines have no swap of their own, so the file is only prepared.
    values = {"size_mb": 8, "file": "/srv/swapfile", "activate": False}
    catalog.journey("swap", **values)
    assert catalog.machine.run(["sh", "-c", "head -c 4096 /srv/swapfile | tail -c 10"]).stdout == "SWAPSPACE2"
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


def test_docker(machines, container_base, catalog_base, tmp_path):
    base = Base((*container_base.installations, catalog_base.top))
    with machines.make("engine", booted=True, base=base) as machine:
        machine.run(["apt-get", "-q", "-y", "remove", "docker.io"])  # which needs most of the installation's time
        _run_docker(Catalog(machine, tmp_path))


def _run_docker(catalog: Catalog) -> None:
    machine = catalog.machine
    machine.run(["useradd", "ada"])
    values = {"log_size_mb": 20, "registry_mirrors": ["https://mirror.example.org"], "users": ["ada"]}
    assert catalog.run("docker", "check", **values)["deploy_changed"] is True
    first = catalog.run("docker", **values)
    assert first["docker_version"][0].isdigit()
    assert "docker.io" in items(first)
    assert items(first)[-1] == "ada in group docker"
    assert catalog.run("docker", **values)["deploy_changed"] is False
    machine.run(["sh", "-ec", IMPORT.format(engine="docker", image=IMAGE)])
    run = ["runuser", "-u", "ada", "--", "docker", "run", "--detach", "--name", "web", IMAGE, "sleep", "infinity"]
    machine.run(run)
    inspect = ["docker", "inspect", "--format", "{{json .HostConfig.LogConfig}}", "web"]
    limits = {"Type": "json-file", "Config": {"max-file": "3", "max-size": "20m"}}
    assert json.loads(machine.run(inspect).stdout) == limits
    assert "https://mirror.example.org/" in machine.run(["docker", "info"]).stdout

    # A restart of the daemon keeps the containers.
    changed = catalog.run("docker", **{**values, "log_size_mb": 30, "daemon": {"debug": True}})
    assert items(changed) == ["/etc/docker/daemon.json", "docker.service"]
    assert machine.run(["docker", "inspect", "--format", "{{.State.Running}}", "web"]).stdout == "true\n"
    catalog.run("docker", fails=True, **values, daemon=["debug"])
    machine.run(["docker", "rm", "--force", "web"])
    catalog.undo("docker")
    assert not machine.exists("/usr/sbin/dockerd")
    assert "docker" not in machine.run(["id", "-Gn", "ada"]).stdout


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
