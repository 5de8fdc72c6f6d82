"""Stacks with entries of the catalog and a delivered hook, on a machine that is enrolled at a real server."""

from __future__ import annotations

import pytest

from support.server import served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_TEMPLATE = """\
heat_template_version: 2021-04-16
parameters:
  port: {type: number, default: 8080}
resources:
  web:
    type: catalog://nginx/1
    properties: {server: SERVER, site: shop, port: {get_param: port}, root: /srv/shop}
  unit:
    type: OS::Heat::SoftwareConfig
    properties: {config: {get_file: 'catalog://motd/1'}}
  motd:
    type: OS::Heat::SoftwareDeployment
    depends_on: web
    properties:
      config: {get_resource: unit}
      server: SERVER
      input_values: {text: {get_attr: [web, nginx_version]}}
      actions: [CREATE, UPDATE, DELETE]
  loud:
    type: OS::Heat::SoftwareConfig
    properties: {group: shout, config: hello, options: {hook: shout}, outputs: [{name: volume}]}
  shout:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: loud}, server: SERVER}
outputs:
  url: {value: {get_attr: [web, url]}}
  volume: {value: {get_attr: [shout, volume]}}
"""
_REBOOT = """\
heat_template_version: 2021-04-16
parameters:
  only_if: {type: string, default: ''}
resources:
  restart:
    type: catalog://reboot/1
    properties: {server: SERVER, only_if: {get_param: only_if}}
"""
_HOOK = """#!/bin/sh
echo '{"deploy_stdout": "HELLO", "deploy_status_code": 0, "volume": "11"}'
"""


@pytest.fixture
def stoker(machines, tmp_path):
    with served(tmp_path, host=machines.host_address) as running:
        yield running


def test_stacks_use_entries_and_a_delivered_hook_and_restart_the_machine(machines, catalog_base, stoker, tmp_path):
    with machines.make("web", booted=True, base=catalog_base) as web:
        web.enroll(stoker)
        id = stoker.json("server", "show", "web")["id"]
        hook, template = tmp_path / "shout", tmp_path / "web.yaml"
        hook.write_text(_HOOK)
        template.write_text(_TEMPLATE.replace("SERVER", id))
        stoker.run("hook", "add", "shout", str(hook))
        stoker.run("stack", "create", "-t", str(template), "--wait", "shop")
        assert outputs(stoker)["volume"] == "11"
        assert outputs(stoker)["url"].endswith(":8080/")
        page = "import urllib.request as r, sys; print(r.urlopen(sys.argv[1]).read().decode())"
        assert "<p>shop</p>" in web.run(["python3", "-c", page, "http://127.0.0.1:8080/"]).stdout
        assert web.read("/etc/motd")[0].isdigit()
        stoker.run("stack", "update", "-t", str(template), "-P", "port=8081", "--wait", "shop")
        assert "<p>shop</p>" in web.run(["python3", "-c", page, "http://127.0.0.1:8081/"]).stdout
        stoker.run("stack", "delete", "--yes", "--wait", "shop")
        assert not web.exists("/usr/sbin/nginx")
        assert not web.exists("/etc/nginx/conf.d/shop.conf")
        template.write_text(_REBOOT.replace("SERVER", id))
        reboot(stoker, web, str(template))


def reboot(stoker, web, template: str) -> None:
    """Create a stack that restarts the machine, and update it without a reason for another restart."""
    stoker.run("stack", "create", "-t", template, "again")
    web.wait_reboot()
    stoker.until(lambda: stoker.json("stack", "show", "again")["stack_status"] != "CREATE_IN_PROGRESS")
    assert stoker.json("stack", "show", "again")["stack_status"] == "CREATE_COMPLETE"
    assert web.run(["ls", "/var/lib/stoker-agent/hooks/reboot"]).stdout == "", "nothing left for a later run"
    assert "still here" in stoker.run("run", "web", "--", "echo still here").stdout
    booted = web.run(["stat", "-c", "%Y", "/proc/1"]).stdout
    stoker.run("stack", "update", "-t", template, "-P", "only_if=/run/reboot-required", "--wait", "again")
    assert web.run(["stat", "-c", "%Y", "/proc/1"]).stdout == booted


def outputs(stoker) -> dict[str, str]:
    return {item["output_key"]: item["output_value"] for item in stoker.json("stack", "outputs", "shop")}
