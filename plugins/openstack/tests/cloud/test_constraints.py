"""Custom constraints of parameters and properties, checked by a cloud before anything is stored."""

from __future__ import annotations

import json
import threading
from contextlib import nullcontext

import pytest

from openstack_support import fake_openstack
from openstack_support.fake_openstack import IMAGE
from stoker_openstack.cloud import constraints
from support.http_stub import Said
from support.in_process import Inside

pytestmark = pytest.mark.filterwarnings("ignore:Support for InfluxDB")
NETWORK = {"type": "OS::Neutron::Net"}
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"image": {"type": "string", "constraints": [{"custom_constraint": "glance.image"}]}},
    "resources": {
        "net": NETWORK,
        "server": {
            "type": "OS::Nova::Server",
            "properties": {
                "image": {"get_param": "image"},
                "flavor": "m1.tiny",
                "key_name": "mine",
                "networks": [{"network": "private"}, {"network": {"get_resource": "net"}}],
            },
        },
    },
}
_MISSING = "Error validating value '{}': The {} ({}) could not be found."


@pytest.fixture
def cloud():
    with fake_openstack.running() as running:
        running.intercept = _keypairs
        yield running


@pytest.fixture
def site(tmp_path, cloud, monkeypatch):
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(fake_openstack.clouds_yaml(tmp_path, cloud)))
    running = Inside(tmp_path, cloud="fake")
    yield running
    running.close()


def _keypairs(asked):
    if asked.path.endswith("/os-keypairs/mine"):
        return Said(200, {"keypair": {"name": "mine"}})
    return Said(200, {"keypairs": [{"keypair": {"name": "mine"}}]}) if asked.path.endswith("/os-keypairs") else None


def _send(site, path, template=TEMPLATE, verb="POST", image=IMAGE, **more):
    body = {"template": template, "parameters": {"image": image}, **more}
    return site.client.request(verb, f"/v1/{site.project}{path}", json=body, headers=site.headers)


def _changed(**properties):
    server = TEMPLATE["resources"]["server"]
    changed = {**server, "properties": {**server["properties"], **properties}}
    return {**TEMPLATE, "resources": {"net": NETWORK, "server": changed}}


def test_names_that_the_cloud_lacks_are_refused_together(site, cloud):
    wrong = _changed(flavor="huge", key_name="yours", networks=[{"network": "private"}, {"network": "nowhere"}])
    for verb, path in (("POST", "/stacks"), ("POST", "/stacks/preview"), ("POST", "/validate")):
        answer = _send(site, path, wrong, verb, image="nonesuch", **({"stack_name": "s"} if "stacks" in path else {}))
        assert answer.status_code == 400
        message = answer.json()["error"]["message"]
        place = "resources.server.properties"
        for beginning, end in (
            ("Parameter 'image' is invalid: ", _MISSING.format("nonesuch", "Image", "nonesuch")),
            (f"{place}.flavor: ", _MISSING.format("huge", "Flavor", "huge")),
            (f"{place}.key_name: ", _MISSING.format("yours", "Key", "yours")),
            (f"{place}.networks[1].network: ", _MISSING.format("nowhere", "Network", "nowhere")),
        ):
            line = next(line for line in message.splitlines() if end in line)
            assert beginning in line.replace(": : ", ": "), message
    assert site.client.get(f"/v1/{site.project}/stacks", headers=site.headers).json()["stacks"] == []
    assert not [verb for verb, _ in cloud.asked if verb != "GET"]


def test_an_update_is_checked_and_valid_names_are_accepted(site):
    created = _send(site, "/stacks", image="tiny", stack_name="s")
    assert created.status_code == 201, created.text
    assert "Warning" not in created.headers
    path = f"/stacks/s/{created.json()['stack']['id']}"
    for verb in ("PUT", "PATCH"):
        refused = _send(site, path, _changed(flavor="huge"), verb)
        assert "The Flavor (huge) could not be found." in refused.json()["error"]["message"]
        assert _send(site, path, _changed(flavor="m1.large"), verb).status_code == 202


@pytest.mark.parametrize("reason", ["compute", "login"])
def test_a_cloud_that_does_not_answer_checks_nothing_and_a_warning_says_so(site, cloud, reason):
    if reason == "login":
        cloud.login_status = 401
    else:
        cloud.away.add(reason)
    answer = _send(site, "/validate", _changed(flavor="huge"))
    assert answer.status_code == 200
    assert "Values of nova.flavor were not checked: " in str(answer.json()["Warnings"])
    assert "Values of nova.flavor were not checked: " in answer.headers["Warning"]


def test_parameters_and_properties_of_nested_templates_are_checked(site):
    inner = {**_changed(flavor="huge"), "outputs": {}}
    outer = {
        "heat_template_version": "2018-08-31",
        "parameters": {"image": {"type": "string"}},
        "resources": {"inner": {"type": "inner.yaml", "properties": {"image": "nonesuch"}}},
    }
    files = {"inner.yaml": json.dumps(inner)}
    answer = _send(site, "/stacks", outer, stack_name="s", files=files)
    message = answer.json()["error"]["message"]
    assert "The Image (nonesuch) could not be found." in message
    assert "The Flavor (huge) could not be found." in message


def test_checks_of_a_cloud_that_hangs_end_together(cloud, site, monkeypatch):
    """The time of all checks of a request is limited, and the request is accepted with warnings."""
    hanging = threading.Event()

    def intercept(asked):
        if asked.path.endswith("/flavors/m1.tiny") or "networks" in asked.path:
            hanging.wait(60)
        return _keypairs(asked)

    cloud.intercept, cloud.lock = intercept, nullcontext()
    monkeypatch.setattr(constraints, "_PATIENCE", 0.3)
    answer = _send(site, "/validate")
    hanging.set()
    assert answer.status_code == 200
    assert {warning.split()[2] for warning in answer.json()["Warnings"]} >= {"nova.flavor", "neutron.network"}
