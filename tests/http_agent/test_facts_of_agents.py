"""Facts from a real agent to a selector, a group and an attribute."""

from __future__ import annotations

import pytest

from support.agents import enrolled_agent
from support.templates import define, template


@pytest.mark.slow
def test_an_agent_s_facts_select_its_server(stoker, tmp_path):
    server = define("OS::Heat::DeployedServer", name="facts1")
    with enrolled_agent(tmp_path, stoker, "facts1") as agent:

        def shown():
            return stoker.heat("GET", "/servers/facts1").body["server"]

        stoker.until(lambda: shown()["facts"])
        facts = shown()["facts"]
        assert shown()["os"].startswith(facts["os"]["name"])
        assert shown()["hooks"] == facts["hooks"]
        joined = tmp_path / "joined"
        group = {
            "config": define("OS::Heat::SoftwareConfig", group="script", config=f"echo joined >> {joined}"),
            "group": define(
                "OS::Heat::SoftwareDeploymentGroup",
                config={"get_resource": "config"},
                selector="custom.rack.row>=4 and not role=db",
            ),
        }
        body = {
            "stack_name": "facts",
            "template": template(
                {**group, "server": server},
                outputs={
                    "family": {"value": {"get_attr": ["server", "os", "family"]}},
                    "row": {"value": {"get_attr": ["server", "facts", "custom", "rack", "row"]}},
                },
            ),
        }
        created = stoker.heat("POST", "/stacks", body)
        assert created.status == 201
        path = f"/stacks/facts/{created.body['stack']['id']}"

        def stack():
            return stoker.heat("GET", path).body["stack"]

        def values():
            return {output["output_key"]: output["output_value"] for output in stack()["outputs"]}

        stoker.until(lambda: stack()["stack_status"] == "CREATE_COMPLETE")
        assert values() == {"family": facts["os"]["family"], "row": None}
        assert not joined.exists()

        # A run installs a fact of the site: the agent reports the fact after the run, and the server joins the group.
        script = f"mkdir -p {agent.root}/etc/facts.d; echo row=4 > {agent.root}/etc/facts.d/rack.txt"
        config = {"name": "c", "group": "script", "config": script}
        id = stoker.heat("POST", "/software_configs", config).body["software_config"]["id"]
        trigger = {"config_id": id, "selector": f"hostname={facts['hostname']} and hooks=script"}
        answer = stoker.heat("POST", "/software_triggers", trigger)
        assert (answer.status, answer.body["software_trigger"]["total"]) == (201, 1)
        stoker.until(lambda: shown()["facts"].get("custom") == {"rack": {"row": "4"}})
        listed = stoker.heat("GET", "/servers?selector=custom.rack.row=4").body["servers"]
        assert [entry["name"] for entry in listed] == ["facts1"]
        stoker.until(joined.exists)
        assert values()["row"] == "4"
