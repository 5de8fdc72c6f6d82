"""One story on three machines: enroll, deploy with three tools, drift, repair, preview, update, undeploy, leave."""

from __future__ import annotations

import json

import pytest

from support.debian_packages import add_package, use_local_packages
from support.machines import Machine
from support.templates import define, template

pytestmark = pytest.mark.slow

#: Seconds of a step; Ansible and Puppet are slow on a busy computer.
PATIENCE = 300
#: Changes on a machine that no agent makes: logs, caches, and state of the operating system and of the tools.
OTHERS = (
    *("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/var/log", "/var/cache", "/var/lib/apt", "/var/lib/dpkg"),
    *("/var/lib/systemd", "/var/lib/private", "/var/lib/puppet", "/root/.ansible", "/root/.puppet", "/etc/puppet"),
    "/srv/build",
)

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - name: settings
      copy:
        content: "release = {{ release }}\\nport = {{ port }}\\n"
        dest: /etc/app.ini
        mode: "0644"
    - name: output
      copy:
        content: "{{ port }}"
        dest: "{{ heat_outputs_path }}.port"
        mode: "0600"
      changed_when: false
"""
MANIFEST = """
file { '/srv/www': ensure => directory }
-> file { '/srv/www/index.html': content => "port ${facts['app_port']}\\n" }
"""
UNIT = """[Service]
ExecStart=/usr/bin/python3 -m http.server --directory /srv/www 8080

[Install]
WantedBy=multi-user.target
"""


RELEASE = """#!/bin/sh
printf %s "$(cat /usr/share/demo/version)" > "$heat_outputs_path.release"
"""
HEALTH = "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://127.0.0.1:8080\")'"
NAMES = ("m1", "m2", "m3")


def story(port):
    """Return the template: a package on m1, settings on m2, and pages with their service on m3."""
    resources = {name: define("OS::Heat::DeployedServer", name=name) for name in NAMES}

    def add(name, server, group, content, *, options=None, outputs=(), depends_on=None, **values):
        kind = "Structured" if isinstance(content, dict) else "Software"
        config = {"group": group, "config": content, "options": options or {}}
        config |= {"inputs": [{"name": value} for value in values], "outputs": [{"name": output} for output in outputs]}
        deployment = {"config": {"get_resource": f"{name}_config"}, "server": {"get_resource": server}}
        resources[f"{name}_config"] = define(f"OS::Heat::{kind}Config", **config)
        resources[name] = {
            "type": f"OS::Heat::{kind}Deployment",
            "properties": {**deployment, "input_values": values},
            **({"depends_on": depends_on} if depends_on else {}),
        }

    add("package", "m1", "package", {"name": "demo"}, options={"undo": True})
    add("release", "m1", "script", RELEASE, options={"check": "true"}, outputs=["release"], depends_on="package")
    add(
        "settings",
        "m2",
        "ansible",
        PLAY,
        options={"enforce": True, "undo": "rm -f /etc/app.ini"},
        outputs=["port"],
        release={"get_attr": ["release", "release"]},
        port=port,
    )
    served_port = {"get_attr": ["settings", "port"]}
    add("pages", "m3", "puppet", MANIFEST, options={"undo": "rm -rf /srv/www"}, app_port=served_port)
    service = {"name": "pages", "unit": UNIT, "enabled": True, "health": HEALTH}
    add("service", "m3", "service", service, options={"undo": True}, depends_on="pages")
    return template(resources, outputs={"port": {"value": served_port}})


def files(machine: Machine) -> set[str]:
    """Return the paths of all files that belong to nobody's logs and caches."""
    pruned = [word for path in OTHERS for word in ("-path", path, "-o")][:-1]
    found = machine.run(["find", "/", "-xdev", "(", *pruned, ")", "-prune", "-o", "-print"]).stdout
    return {path for path in found.splitlines() if "__pycache__" not in path}


def reasons(stoker, resource):
    """Return the reasons of the events of a resource."""
    events = stoker.json("stack", "events", "shop")
    return [event["resource_status_reason"] for event in events if event["resource_name"] == resource]


def runs(stoker, resource):
    """Return the runs of the deployment of a resource, newest first."""
    return stoker.json("deployment", "history", f"shop/{resource}")


def page(machine):
    fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8080').read().decode(), end='')"
    return machine.run(["python3", "-c", fetch]).stdout


@pytest.fixture
def shop(machines, automation_base):
    """Three booted machines; m1 has a repository with the package demo."""
    made = [machines.make(name, booted=True, base=automation_base) for name in NAMES]
    use_local_packages(made[0])
    add_package(made[0], "demo", "1.0")
    made[0].run(["apt-get", "update"])
    yield made
    for machine in made:
        machine.remove()


@pytest.mark.timeout(900)
def test_three_machines_from_enrollment_to_leave(stoker, shop, tmp_path):
    m1, m2, m3 = shop
    before = {machine.name: files(machine) for machine in shop}
    # Enroll all machines with one token.
    many = ("--many", "--limit", "3", "--names", "m?", "--expires", "1h", "--label", "role=shop")
    line = stoker.run("server", "enroll", *many).stdout
    for machine in shop:
        machine.run(["sh", "-c", line])
    stoker.until(lambda: [server["status"] for server in stoker.json("server", "list")] == ["ONLINE"] * 3, 120)
    assert sorted(server["name"] for server in stoker.json("server", "list", "-l", "role=shop")) == list(NAMES)

    # Deploy: the release of m1's package reaches the settings of m2, and m2's port the pages of m3.
    path = tmp_path / "shop.yaml"
    path.write_text(json.dumps(story("8080")))
    stoker.run("stack", "create", "shop", "-t", str(path), "--wait")
    assert m2.read("/etc/app.ini") == "release = 1.0\nport = 8080\n"
    assert page(m3) == "port 8080\n"
    assert stoker.run("check", "shop").returncode == 0

    # Drift by hand: reported and repaired on m2, only reported on m3.
    m2.put("/etc/app.ini", "edited = by hand\n")
    m3.run(["systemctl", "stop", "pages"])
    checked = stoker.run("check", "--server", "m2", "--server", "m3", check=False)
    assert checked.returncode == 3, checked.stdout
    repair = {"requested_by": "enforce", "status": "COMPLETE"}
    stoker.until(lambda: repair.items() <= runs(stoker, "settings")[0].items(), PATIENCE)
    assert m2.read("/etc/app.ini") == "release = 1.0\nport = 8080\n"
    assert stoker.run("check", "--server", "m2").returncode == 0
    assert [reason.split(":")[1] for reason in reasons(stoker, "settings") if "drift" in reason] == [
        *(" drift began", " drift ended")
    ]
    assert [state["resource_name"] for state in stoker.json("drift", "list")] == ["service"]
    m3.run(["systemctl", "start", "pages"])

    # Preview an update on the servers, then update.
    path.write_text(json.dumps(story("9090")))
    preview = stoker.run("stack", "update", "shop", "-t", str(path), "--dry-run", "--on-servers").stdout
    assert "+port = 9090" in preview
    assert "pages" in preview
    assert page(m3) == "port 8080\n"
    stoker.run("stack", "update", "shop", "-t", str(path), "--wait")
    assert page(m3) == "port 9090\n"

    # Undeploy and leave.
    stoker.run("stack", "delete", "shop", "--yes", "--wait")
    assert m1.run(["dpkg-query", "-W", "demo"], check=False).returncode != 0
    assert not any(machine.exists(path) for machine in shop for path in ("/etc/app.ini", "/srv/www"))
    assert m3.run(["systemctl", "is-active", "pages"], check=False).returncode != 0
    for machine in shop:
        machine.run(["/opt/stoker-agent/stoker-agent.pyz", "leave"])
    assert stoker.json("server", "list") == []
    for machine in shop:
        assert files(machine) - before[machine.name] == set()
