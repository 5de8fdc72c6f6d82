"""A stack with an entry of the catalogue and a delivered hook, on a machine that is enrolled at a real server."""

from __future__ import annotations

import json

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
_HOOK = """#!/bin/sh
echo '{"deploy_stdout": "HELLO", "deploy_status_code": 0, "volume": "11"}'
"""


def test_a_stack_uses_entries_and_a_delivered_hook(machines, tmp_path):
    with served(tmp_path, host=machines.host_address) as stoker, machines.make("web", booted=True) as web:
        fetch = ["apt-get", "-y", "-q", "--download-only", "--no-install-recommends", "install", "nginx"]
        web.run(fetch, on_host_network=True, timeout=600)
        web.enroll(stoker)
        id = json.loads(stoker.run("server", "show", "web", "-o", "json").stdout)["id"]
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


def outputs(stoker) -> dict[str, str]:
    listed = json.loads(stoker.run("stack", "outputs", "shop", "-o", "json").stdout)
    return {item["output_key"]: item["output_value"] for item in listed} if isinstance(listed, list) else listed
