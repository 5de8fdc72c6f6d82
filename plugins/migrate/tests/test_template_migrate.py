"""``stoker template migrate``: what becomes of the parts of a template, and that everything else stays as it was."""

import json
import textwrap

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stoker_client.cli.main import main
from stoker_client.errors import BadInput
from stoker_migrate.template.files import Migration, migrate_files
from stoker_migrate.template.source_text import SourceText

HEAD = "heat_template_version: 2021-04-16\n"


@pytest.fixture
def migrate(tmp_path, monkeypatch):
    """Write files, migrate ``app.yaml``, and return the result and the new template."""
    monkeypatch.chdir(tmp_path)

    def run(*environments: str, **texts: str) -> tuple[Migration, dict]:
        for name, text in texts.items():
            text = textwrap.dedent(text)
            is_template = name not in ("env", "script")
            tmp_path.joinpath(f"{name}.yaml").write_text(HEAD + text if is_template else text)
        migration = migrate_files("app.yaml", environments)
        return migration, load(migration.template.text)

    return run


@pytest.fixture
def stoker(capsys):
    """Return a function that runs the program in this process and returns its exit code, output and errors."""

    def call(*args: str) -> tuple[int, str, str]:
        return main(args), *capsys.readouterr()

    return call


def load(text: str) -> dict:
    return yaml.safe_load(text.replace("2021-04-16", '"2021-04-16"'))


def texts_of(migration: Migration, change: str) -> dict[str, str]:
    return {row["part"]: row["text"] for row in migration.report.rows if row["change"] == change}


def test_everything_else_stays_as_it_was(migrate):
    kept = """\
    # about all

    parameters:
      size: {type: number,  default: 0644}   # odd spaces
    resources:

      # a config
      config:
        type: OS::Heat::SoftwareConfig
        properties:
          config: |
            # no comment
            x

      # the last one
      value: {type: OS::Heat::Value, properties: {value: 'quoted', type: "string"}}
    # the end
    """
    migration, _ = migrate(app=kept)
    assert migration.template.text == HEAD + textwrap.dedent(kept)
    assert migration.report.rows == []


def test_comments_go_with_their_resources(migrate):
    migration, _ = migrate(
        app="""\
        resources:
          # of a
          a: {type: OS::Neutron::Net}
          # of b
          b: {type: OS::Heat::None}  # after b

          # of c
          # more of c
          c:
            type: OS::Cinder::Volume
            properties:
              # of size
              size: 1

          # of d
          d: {type: OS::Heat::None}

          # of e
          e: {type: OS::Nova::KeyPair}
        # of outputs
        outputs: {}
        """
    )
    expected = """\
    resources:
      # of b
      b: {type: OS::Heat::None}  # after b

      # of d
      d: {type: OS::Heat::None}
    # of outputs
    outputs: {}
    """
    assert migration.template.text == HEAD + textwrap.dedent(expected)


def test_a_server_keeps_its_name_and_what_enrolled_servers_have(migrate):
    migration, new = migrate(
        app="""\
        parameters: {image: {type: string}, transport: {type: string}}
        resources:
          web:
            type: OS::Nova::Server
            depends_on: [net, other]
            properties: {name: web1, image: {get_param: image}, software_config_transport: {get_param: transport}}
          net: {type: OS::Neutron::Net}
          other: {type: OS::Heat::None}
        """
    )
    assert new["resources"]["web"] == {
        "type": "OS::Heat::DeployedServer",
        "depends_on": ["other"],
        "properties": {"name": "web1", "software_config_transport": {"get_param": "transport"}},
    }
    assert list(new["parameters"]) == ["transport"]
    assert "enroll a server named web1" in texts_of(migration, "replaced")["resources.web"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[web, first_address]", ["web", "address"]),
        ("[web, networks, private, 0]", ["web", "address"]),
        ("[web, addresses, private, 0, addr]", ["web", "address"]),
        ("[web, accessIPv4]", ["web", "address"]),
        ("[web, name]", ["web", "name"]),
        ("[web, instance_name]", ["web", "name"]),
        ("[ip, floating_ip_address]", ["web", "address"]),
        ("[port, fixed_ips, 0, ip_address]", ["web", "address"]),
        ("[second_ip, floating_ip_address]", ["web", "address"]),
        ("[config, config]", ["config", "config"]),
    ],
)
def test_addresses_become_those_of_the_enrolled_server(migrate, before, after):
    _, new = migrate(
        app=f"""\
        resources:
          config: {{type: OS::Heat::SoftwareConfig}}
          port: {{type: OS::Neutron::Port, properties: {{network: private}}}}
          ip: {{type: OS::Neutron::FloatingIP, properties: {{port_id: {{get_resource: port}}}}}}
          second_ip: {{type: OS::Neutron::FloatingIP}}
          association:
            type: OS::Neutron::FloatingIPAssociation
            properties: {{floatingip_id: {{get_resource: second_ip}}, port_id: {{get_resource: port}}}}
          web:
            type: OS::Nova::Server
            properties: {{networks: [{{port: {{get_resource: port}}}}]}}
        outputs: {{shown: {{value: {{get_attr: {before}}}}}}}
        """
    )
    assert new["outputs"]["shown"]["value"] == {"get_attr": after}


def test_parts_without_replacement_become_parameters_or_leave_the_outputs(migrate):
    migration, new = migrate(
        app="""\
        resources:
          net: {type: OS::Neutron::Net}
          volume: {type: OS::Cinder::Volume}
          deployment:
            type: OS::Heat::SoftwareDeployment
            properties:
              server: x
              input_values: {net: {get_resource: net}, size: {get_attr: [volume, size]}, again: {get_resource: net}}
        outputs:
          net: {value: {get_resource: net}}
          fine: {value: 1}
        """
    )
    values = new["resources"]["deployment"]["properties"]["input_values"]
    assert values == {
        "net": {"get_param": "net"},
        "size": {"get_param": "volume_size"},
        "again": {"get_param": "net"},
    }
    assert set(new["parameters"]) == {"net", "volume_size"}
    assert list(new["outputs"]) == ["fine"]
    assert list(texts_of(migration, "warning")) == ["outputs.net"]


def test_scripts_of_user_data_run_before_other_deployments(migrate):
    migration, new = migrate(
        script="#!/bin/sh\n",
        app="""\
        parameters: {word: {type: string}}
        resources:
          boot: {type: OS::Heat::SoftwareConfig, properties: {config: "#!/bin/sh\\ntrue"}}
          init: {type: OS::Heat::CloudConfig}
          parts:
            type: OS::Heat::MultipartMime
            properties: {parts: [{config: {get_resource: boot}}, {config: {get_resource: init}}]}
          a: {type: OS::Nova::Server, properties: {user_data: {get_resource: boot}}}
          b: {type: OS::Nova::Server, properties: {user_data: {get_file: script.yaml}}}
          c: {type: OS::Nova::Server, properties: {user_data: {get_resource: parts}}}
          d: {type: OS::Nova::Server, properties: {user_data: "#cloud-config"}}
          e:
            type: OS::Nova::Server
            condition: big
            properties: {user_data: {str_replace: {template: "#!/bin/sh WORD", params: {WORD: {get_param: word}}}}}
          deployment: {type: OS::Heat::SoftwareDeployment, properties: {server: {get_resource: e}}}
        conditions: {big: true}
        """,
    )
    resources = new["resources"]
    assert resources["boot"]["properties"]["group"] == "script"
    assert resources["a_boot"]["properties"]["config"] == {"get_resource": "boot"}
    assert resources["b_boot_config"]["properties"]["config"] == {"get_file": "script.yaml"}
    assert resources["c_boot"]["properties"]["server"] == {"get_resource": "c"}
    assert "d_boot" not in resources
    assert resources["e_boot"]["condition"] == resources["e_boot_config"]["condition"] == "big"
    assert resources["deployment"]["depends_on"] == ["e_boot"]
    assert new["parameters"]["word"] == {"type": "string"}
    warnings = texts_of(migration, "warning")
    assert set(warnings) == {"resources.c.properties.user_data", "resources.d.properties.user_data"}
    assert "init (OS::Heat::CloudConfig) is no script" in warnings["resources.c.properties.user_data"]


def test_groups_of_servers_are_named_by_index(migrate):
    _, new = migrate(
        app="""\
        resources:
          named:
            type: OS::Heat::ResourceGroup
            properties:
              count: 2
              resource_def: {type: OS::Nova::Server, properties: {name: "n-%index%", image: x}}
          unnamed:
            type: OS::Heat::ResourceGroup
            properties:
              count: 2
              index_var: "%i%"
              resource_def:
                type: OS::Nova::Server
                properties:
                  image: x
                  user_data: "#!/bin/sh"
          scaled:
            type: OS::Heat::AutoScalingGroup
            properties:
              min_size: 1
              max_size: 3
              # the members
              resource: {type: OS::Nova::Server, properties: {image: x}}
          policy: {type: OS::Heat::ScalingPolicy, properties: {auto_scaling_group_id: {get_resource: scaled}}}
          ports:
            type: OS::Heat::ResourceGroup
            properties: {count: 2, resource_def: {type: OS::Neutron::Port}}
        outputs:
          all: {value: {get_attr: [unnamed, first_address]}}
          first: {value: {get_attr: [unnamed, resource.0, networks, private, 0]}}
          mapped: {value: {get_attr: [scaled, outputs, first_address]}}
          refs: {value: {get_attr: [named, refs]}}
        """
    )
    resources, outputs = new["resources"], new["outputs"]
    assert resources["named"]["properties"]["resource_def"]["properties"] == {"name": "n-%index%"}
    member = resources["unnamed"]["properties"]["resource_def"]
    assert member["type"] == "OS::Heat::DeployedServer"
    assert member["properties"] == {"name": {"list_join": ["-", [{"get_param": "unnamed_server"}, "%i%"]]}}
    assert resources["unnamed_boot"]["properties"]["servers"] == {"get_attr": ["unnamed", "refs_map"]}
    assert resources["scaled"]["type"] == "OS::Heat::ResourceGroup"
    assert set(resources["scaled"]["properties"]) == {"count", "resource_def"}
    assert "policy" not in resources
    assert "ports" not in resources
    assert outputs["all"]["value"] == {"get_attr": ["unnamed", "address"]}
    assert outputs["first"]["value"] == {"get_attr": ["unnamed", "resource.0", "address"]}
    assert outputs["mapped"]["value"] == {"get_attr": ["scaled", "attributes", "address"]}
    assert outputs["refs"]["value"] == {"get_attr": ["named", "refs"]}


NODE = """\
parameters: {image: {type: string}, word: {type: string}}
resources:
  net: {type: OS::Neutron::Net}
  server: {type: OS::Nova::Server, properties: {image: {get_param: image}}}
  value: {type: OS::Heat::Value, properties: {value: {get_param: word}}}
outputs:
  net: {value: {get_resource: net}}
  address: {value: {get_attr: [server, first_address]}}
"""


def test_nested_templates_get_the_names_of_their_servers(migrate):
    migration, new = migrate(
        "env.yaml",
        node=NODE,
        env="""\
        # of all
        parameters: {image: debian}
        resource_registry:
          My::Node: node.yaml
          My::Server: OS::Nova::Server
        """,
        app="""\
        parameters: {image: {type: string}}
        resources:
          one: {type: My::Node, properties: {image: {get_param: image}, word: a}}
          many:
            type: OS::Heat::ResourceGroup
            properties: {count: 2, resource_def: {type: node.yaml, properties: {image: x, word: b}}}
          own: {type: My::Server, properties: {name: own, image: x}}
        """,
    )
    (node,) = migration.nested
    assert set(load(node.text)["parameters"]) == {"server_server", "net", "word"}
    assert load(node.text)["parameters"]["net"]["default"] == ""
    resources = new["resources"]
    assert resources["one"]["properties"] == {"server_server": {"get_param": "one_server_server"}, "word": "a"}
    name = {"list_join": ["-", [{"get_param": "many_server_server"}, "%index%"]]}
    member = resources["many"]["properties"]["resource_def"]
    assert member["properties"] == {"server_server": name, "word": "b"}
    assert resources["own"]["type"] == "OS::Heat::DeployedServer"
    assert set(new["parameters"]) == {"one_server_server", "many_server_server"}
    environment = yaml.safe_load(migration.environments[0].text)
    assert environment == {"parameters": {}, "resource_registry": {"My::Node": "node.yaml"}}


def test_files_keep_their_relations_in_the_new_place(migrate, tmp_path, stoker):
    migrate("env.yaml", node=NODE, script="#!/bin/sh\n", env="resource_registry: {My::Node: node.yaml}\n", app=APP)
    tmp_path.joinpath("new").mkdir()
    tmp_path.joinpath("empty.yaml").write_text("# nothing\n")
    environments = ("-e", "env.yaml", "-e", "empty.yaml")
    words = ("template", "migrate", "app.yaml", *environments, "--output-file", "new/app.yaml", "-o", "json")
    code, out, err = stoker(*words)
    assert code == 0, err
    assert {"file", "part", "change", "text"} == set(json.loads(out)[0])
    new = load(tmp_path.joinpath("new", "app.yaml").read_text())
    assert new["resources"]["config"]["properties"]["config"] == {"get_file": "../script.yaml"}
    assert new["resources"]["node"]["type"] == "node.yaml"
    assert "OS::Nova" not in tmp_path.joinpath("new", "node.yaml").read_text()
    environment = yaml.safe_load(tmp_path.joinpath("new", "env.yaml").read_text())
    assert environment["resource_registry"] == {"My::Node": "node.yaml"}
    assert tmp_path.joinpath("new", "empty.yaml").read_text() == "# nothing\n"

    code, _, err = stoker("template", "migrate", "app.yaml", "--output-file", "new/app.yaml")
    assert (code, "exists: use --force" in err) == (2, True)
    assert stoker("template", "migrate", "app.yaml", "--output-file", "new/app.yaml", "--force")[0] == 0


APP = """\
resources:
  config: {type: OS::Heat::SoftwareConfig, properties: {config: {get_file: script.yaml}}}
  node: {type: node.yaml, properties: {image: x, word: y}}
"""


def test_beside_the_originals_other_files_get_other_names(migrate, tmp_path, stoker):
    migrate(node=NODE, script="#!/bin/sh\n", app=APP)
    assert stoker("template", "migrate", "app.yaml", "--output-file", "new.yaml")[0] == 0
    assert load(tmp_path.joinpath("new.yaml").read_text())["resources"]["node"]["type"] == "node.migrated.yaml"
    assert "OS::Nova::Server" in tmp_path.joinpath("node.yaml").read_text()
    code, _, err = stoker("template", "migrate", "app.yaml", "--output-file", "app.yaml", "--force")
    assert (code, "is a file of the original stack" in err) == (2, True)


def test_only_templates_of_heat_can_be_migrated(migrate, tmp_path):
    tmp_path.joinpath("cfn.yaml").write_text("AWSTemplateFormatVersion: 2010-09-09\nResources: {}\n")
    with pytest.raises(BadInput, match="only HOT templates can be migrated"):
        migrate_files(str(tmp_path / "cfn.yaml"), ())
    with pytest.raises(BadInput, match=r"app\.yaml contains itself"):
        migrate(app="resources: {self: {type: app.yaml}}")


def test_aliases_cost_the_comments(migrate):
    migration, new = migrate(
        app="""\
        resources:
          a: {type: OS::Nova::Server, properties: &all {image: x}}  # a
          b: {type: OS::Nova::Server, properties: *all}
        """
    )
    names = [new["resources"][name]["properties"]["name"] for name in "ab"]
    assert names == [{"get_param": "a_server"}, {"get_param": "b_server"}]
    assert texts_of(migration, "warning") == {"": "the file has YAML aliases: its comments are lost"}


_KEYS = st.text("abc", min_size=1, max_size=3)
_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=8) | st.just("#!/bin/sh\n  echo\n"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


def _paths(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _paths(inner, (*path, key))


def _without(value, removed, path=()):
    if isinstance(value, dict):
        return {k: _without(v, removed, (*path, k)) for k, v in value.items() if (*path, k) not in removed}
    if isinstance(value, list):
        return [_without(v, removed, (*path, i)) for i, v in enumerate(value) if (*path, i) not in removed]
    return value


@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=5), st.data(), st.booleans(), st.sampled_from([2, 4]))
def test_removing_and_adding_parts_of_any_document(document, data, is_flow, indent):
    text = yaml.safe_dump(document, default_flow_style=is_flow, sort_keys=False, indent=indent)
    text = yaml.safe_dump(document, default_flow_style=is_flow or None, sort_keys=False) if "&" in text else text
    source = SourceText(text, "x")
    paths = sorted(_paths(document), key=repr)
    removed = set(data.draw(st.lists(st.sampled_from(paths), max_size=4)))
    for path in removed:
        source.remove(path)
    is_adding = data.draw(st.booleans())
    if is_adding:
        source.add((), "added", {"x": "#!/bin/sh\n"}, after=data.draw(st.sampled_from([None, *document])))
    expected = _without(document, removed) | ({"added": {"x": "#!/bin/sh\n"}} if is_adding else {})
    assert (yaml.safe_load(source.render()) or {}) == expected
