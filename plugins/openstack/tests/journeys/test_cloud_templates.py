"""A template in the manner of Heat's examples for software configuration, on the cloud of one machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.server import Served

TEMPLATE = """
heat_template_version: 2014-10-16
parameters:
  key_name: {type: string, default: key, constraints: [{custom_constraint: nova.keypair}]}
  image: {type: string, constraints: [{custom_constraint: glance.image}]}
  private_net: {type: string, default: private}
  public_net: {type: string, default: public}
resources:
  group:
    type: OS::Neutron::SecurityGroup
    properties:
      name: the_group
      rules:
      - {protocol: icmp}
      - {protocol: tcp, port_range_min: 22, port_range_max: 22}
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      inputs: [{name: word}]
      outputs: [{name: result}]
      config: |
        #!/bin/sh
        printf '%s of %s' "$word" "$deploy_action" > "$heat_outputs_path.result"
  component:
    type: OS::Heat::SoftwareComponent
    properties:
      configs:
      - {actions: [CREATE], tool: script, config: "#!/bin/sh\\necho CREATE > $heat_outputs_path.last_action"}
      - {actions: [SUSPEND], tool: script, config: "#!/bin/sh\\necho SUSPEND > $heat_outputs_path.last_action"}
      outputs: [{name: last_action}]
  first:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: config}, server: {get_resource: server_a}, input_values: {word: one}}
  second:
    type: OS::Heat::SoftwareDeployment
    properties:
      config: {get_resource: config}
      server: {get_resource: server_b}
      input_values: {word: {get_attr: [first, result]}}
  last:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: component}, server: {get_resource: server_b}}
  boot_config: {type: "Heat::InstallConfigAgent"}
  part: {type: OS::Heat::CloudConfig, properties: {cloud_config: {write_files: [{path: /tmp/one, content: one}]}}}
  parts: {type: OS::Heat::MultipartMime, properties: {parts: [{config: {get_resource: part}}]}}
  server_a:
    type: OS::Nova::Server
    properties:
      image: {get_param: image}
      flavor: m1.small
      key_name: {get_param: key_name}
      networks: [{network: {get_param: private_net}}]
      security_groups: [{get_resource: group}]
      user_data_format: SOFTWARE_CONFIG
      user_data: {get_attr: [boot_config, config]}
  server_b:
    type: OS::Nova::Server
    properties:
      image: {get_param: image}
      flavor: m1.small
      user_data_format: SOFTWARE_CONFIG
      software_config_transport: POLL_SERVER_HEAT
      user_data: {get_resource: parts}
  association:
    type: OS::Neutron::FloatingIPAssociation
    properties:
      floatingip_id: {get_resource: floating_ip}
      port_id: {get_attr: [server_a, addresses, {get_param: private_net}, 0, port]}
  floating_ip:
    type: OS::Neutron::FloatingIP
    properties: {floating_network: {get_param: public_net}}
outputs:
  result: {value: {get_attr: [second, result]}}
  last_action: {value: {get_attr: [last, last_action]}}
  floating_ip: {value: {get_attr: [floating_ip, floating_ip_address]}}
  addresses: {value: {get_attr: [server_a, networks, {get_param: private_net}]}}
  other: {value: {get_attr: [server_b, first_address]}}
"""
ENVIRONMENT = {"resource_registry": {"Heat::InstallConfigAgent": "OS::Heat::SoftwareConfig"}}


def test_an_example_in_the_manner_of_heats_runs_unchanged(stoker: Served):
    body = {
        "stack_name": "example",
        "template": TEMPLATE,
        "environment": ENVIRONMENT,
        "parameters": {"image": "debian"},
        "timeout_mins": 10,
    }
    created = stoker.heat("POST", "/stacks", body)
    assert created.status == 201, created.body
    path = f"/stacks/example/{created.body['stack']['id']}"
    assert _ended(stoker, path) == "CREATE_COMPLETE"
    outputs = _outputs(stoker, path)
    assert outputs["result"] == "one of CREATE of CREATE"
    assert outputs["last_action"].strip() == "CREATE"
    assert outputs["addresses"][1:] == [outputs["floating_ip"]]
    addresses = {outputs["other"], *outputs["addresses"]}
    assert len(addresses) == 3 and all(address.startswith("127.") for address in addresses)

    assert stoker.heat("POST", f"{path}/actions", {"suspend": None}).status == 200
    assert _ended(stoker, path) == "SUSPEND_COMPLETE"
    assert _outputs(stoker, path)["last_action"].strip() == "SUSPEND"
    assert stoker.heat("DELETE", path).status == 204
    assert _ended(stoker, path) == "DELETE_COMPLETE"


def _ended(stoker: Served, path: str) -> str:
    stoker.until(lambda: not _shown(stoker, path)["stack_status"].endswith("IN_PROGRESS"), seconds=120)
    return str(_shown(stoker, path)["stack_status"])


def _outputs(stoker: Served, path: str) -> dict[str, Any]:
    return {output["output_key"]: output["output_value"] for output in _shown(stoker, path)["outputs"]}


def _shown(stoker: Served, path: str) -> Mapping[str, Any]:
    stack: Mapping[str, Any] = stoker.heat("GET", path).body["stack"]
    return stack
