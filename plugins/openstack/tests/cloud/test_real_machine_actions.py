"""Actions on servers of a real OpenStack that are machines with agents: when deployments run, and what runs again."""

from __future__ import annotations

import pytest

from openstack_support.cloud_machines import CloudStack, RealCloud, real_machines, stoker_at
from support.http_stub import Said, answering
from support.templates import config, deployment, template

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore:Support for InfluxDB")]
SERVER = {
    "image": "tiny",
    "flavor": "m1.tiny",
    "networks": [{"network": "private"}],
    "user_data_format": "SOFTWARE_CONFIG",
    "user_data_update_policy": "REBUILD",
    "agent": "stoker",
}
ACTIONS = ["CREATE", "UPDATE", "SUSPEND", "RESUME", "DELETE"]
#: Tells the test what runs; a failed request fails the run.
SCRIPT = """#!/bin/sh -e
python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' "$url/$name/$deploy_action"
printf '%s' "$word" > "$heat_outputs_path.result"
"""
HANDLES = {
    "heat": ("OS::Heat::WaitConditionHandle", "OS::Heat::WaitCondition"),
    "swift": ("OS::Heat::SwiftSignalHandle", "OS::Heat::SwiftSignal"),
    "cfn": ("AWS::CloudFormation::WaitConditionHandle", "AWS::CloudFormation::WaitCondition"),
}
USER_DATA = """#!/bin/sh -ex
%heat% -sf --data-binary '{"status": "SUCCESS", "data": "by heat"}'
%swift% -sf --data-binary '{"status": "SUCCESS", "data": "by swift"}'
curl -sf -X PUT -H Content-Type: --data-binary \
  '{"Status": "SUCCESS", "Reason": "r", "UniqueId": "1", "Data": "by cfn"}' '%cfn%'
"""


class Runs:
    """The runs of deployments, each with the state of its server when it ran."""

    def __init__(self, cloud: RealCloud) -> None:
        self._cloud = cloud
        self.all: list[str] = []

    def answer(self, asked) -> Said:
        states = {server["status"] for server in self._cloud.servers().values()}
        self.all.append(f"{asked.path[1:]} while {', '.join(sorted(states))}")
        return Said(200)

    def take(self) -> list[str]:
        """Return the runs since the last call, in order."""
        taken, self.all = self.all, []
        return taken


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    with real_machines(tmp_path_factory.mktemp("machines")) as running:
        yield running


@pytest.fixture(scope="module")
def stoker(cloud, tmp_path_factory):
    with stoker_at(cloud, tmp_path_factory.mktemp("stoker")) as running:
        yield running


@pytest.fixture
def runs(cloud):
    return Runs(cloud)


def _template(url: str, word: str = "one", **server: str) -> dict:
    inputs = {"url": url, "name": "first"}
    return template(
        {
            "config": config(SCRIPT, inputs=("url", "name", "word"), outputs=("result",)),
            "server": {"type": "OS::Nova::Server", "properties": {**SERVER, **server}},
            "first": deployment(input_values=inputs, actions=ACTIONS),
            "second": deployment(input_values={**inputs, "name": "second", "word": word}, after=("first",)),
        },
        outputs={"result": {"value": {"get_attr": ["second", "result"]}}},
    )


def test_deployments_run_at_the_moments_of_their_actions(cloud: RealCloud, stoker, runs):
    with answering(runs.answer) as listener:
        stack = CloudStack.create(stoker, "actions", _template(listener.url))
        stack.end("CREATE_COMPLETE")
        assert runs.take() == ["first/CREATE while ACTIVE", "second/CREATE while ACTIVE"]
        server_id = stack.physical_id("server")

        stack.act("suspend", "SUSPEND_COMPLETE")
        assert runs.take() == ["first/SUSPEND while ACTIVE"]
        assert cloud.servers()[server_id]["status"] == "SUSPENDED"
        stack.act("resume", "RESUME_COMPLETE")
        assert runs.take() == ["first/RESUME while ACTIVE"]

        stack.update(_template(listener.url, flavor="m1.small"), "UPDATE_COMPLETE")
        stack.update(_template(listener.url, flavor="m1.small", word="two"), "UPDATE_COMPLETE")
        assert (runs.take(), stack.outputs) == (["second/UPDATE while ACTIVE"], {"result": "two"})

        rebuilt = {"flavor": "m1.small", "user_data": "#!/bin/sh\n"}
        stack.update(_template(listener.url, word="two", **rebuilt), "UPDATE_COMPLETE")
        stoker.until(lambda: len(runs.all) >= 2, 120)  # the agent of the new system runs what the server has
        assert sorted(runs.take()) == ["first/RESUME while ACTIVE", "second/UPDATE while ACTIVE"]
        stack.update(_template(listener.url, word="three", **rebuilt), "UPDATE_COMPLETE")
        assert (runs.take(), stack.outputs) == (["second/UPDATE while ACTIVE"], {"result": "three"})
        assert stack.physical_id("server") == server_id

        stack.delete()
        assert runs.take() == ["first/DELETE while ACTIVE"]
        assert cloud.servers() == {}


def test_servers_signal_their_wait_conditions(cloud: RealCloud, stoker):
    resources = {name: {"type": handle} for name, (handle, _) in HANDLES.items()}
    for name, (_, condition) in HANDLES.items():
        names = ("Handle", "Timeout") if name == "cfn" else ("handle", "timeout")
        resources[f"{name}_wait"] = {
            "type": condition,
            "properties": {names[0]: {"get_resource": name}, names[1]: 300},
        }
    commands = {f"%{name}%": {"get_attr": [name, "curl_cli"]} for name in ("heat", "swift")}
    params = {**commands, "%cfn%": {"get_resource": "cfn"}}
    user_data = {"str_replace": {"template": USER_DATA, "params": params}}
    properties = {key: SERVER[key] for key in ("image", "flavor", "networks")}
    resources["server"] = {
        "type": "OS::Nova::Server",
        "properties": {**properties, "user_data_format": "RAW", "user_data": user_data},
    }
    outputs = {name: {"value": {"get_attr": [f"{name}_wait", "Data" if name == "cfn" else "data"]}} for name in HANDLES}
    stack = CloudStack.create(stoker, "signals", template(resources, outputs=outputs))
    stoker.until(lambda: bool(cloud.servers()), 120)
    stack.end("CREATE_COMPLETE", 400)
    assert {name: f"by {name}" in str(value) for name, value in stack.outputs.items()} == dict.fromkeys(HANDLES, True)
    stack.delete()
