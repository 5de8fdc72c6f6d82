"""Every resource type keeps these promises; a new file in resources/ is tested here unasked."""

from __future__ import annotations

import pytest

from stoker import resources
from stoker.hot import UNKNOWN
from stoker.model.errors import StokerError
from stoker.resources.properties import PropertyError, check
from support.stacks import world
from support.templates import template

TYPES = resources.load()

#: Enough properties to create one.
ENOUGH = {
    "OS::Heat::SoftwareDeployment": {"server": "s"},
    "OS::Heat::StructuredDeployment": {"server": "s"},
    "OS::Heat::Value": {"value": 1},
    "OS::Heat::ResourceChain": {"resources": ["OS::Heat::None"]},
    "OS::Heat::ResourceGroup": {"resource_def": {"type": "OS::Heat::None"}},
    "OS::Heat::SoftwareComponent": {"configs": [{"tool": "script", "config": ""}]},
    "OS::Heat::SoftwareDeploymentGroup": {"servers": {"a": "s"}, "signal_transport": "NO_SIGNAL"},
    "OS::Heat::SoftwareDeployments": {"servers": {"a": "s"}, "signal_transport": "NO_SIGNAL"},
    "OS::Heat::StructuredDeploymentGroup": {"servers": {"a": "s"}, "signal_transport": "NO_SIGNAL"},
    "OS::Heat::StructuredDeployments": {"servers": {"a": "s"}, "signal_transport": "NO_SIGNAL"},
    "OS::Heat::WaitCondition": {"handle": "h", "timeout": 10},
    "AWS::CloudFormation::WaitCondition": {"Handle": "h", "Timeout": 10},
    "OS::Heat::Stack": {"template": "heat_template_version: 2018-08-31"},
    "OS::Heat::SwiftSignal": {"handle": "h", "timeout": 10},
    "OS::Zaqar::SignedQueueURL": {"queue": "q"},
    "OS::Zaqar::Subscription": {"queue_name": "q", "subscriber": "http://127.0.0.1:9/"},
}


#: What ends them is another resource's.
WAITS = ("OS::Heat::WaitCondition", "AWS::CloudFormation::WaitCondition", "OS::Heat::SwiftSignal", "OS::Heat::Stack")


def test_the_public_names_are_exactly_these():
    assert sorted(TYPES) == [
        "AWS::CloudFormation::WaitCondition",
        "AWS::CloudFormation::WaitConditionHandle",
        "OS::Heat::CloudConfig",
        "OS::Heat::Delay",
        "OS::Heat::DeployedServer",
        "OS::Heat::MultipartMime",
        "OS::Heat::None",
        "OS::Heat::RandomString",
        "OS::Heat::ResourceChain",
        "OS::Heat::ResourceGroup",
        "OS::Heat::SoftwareComponent",
        "OS::Heat::SoftwareConfig",
        "OS::Heat::SoftwareDeployment",
        "OS::Heat::SoftwareDeploymentGroup",
        "OS::Heat::SoftwareDeployments",
        "OS::Heat::Stack",
        "OS::Heat::StructuredConfig",
        "OS::Heat::StructuredDeployment",
        "OS::Heat::StructuredDeploymentGroup",
        "OS::Heat::StructuredDeployments",
        "OS::Heat::SwiftSignal",
        "OS::Heat::SwiftSignalHandle",
        "OS::Heat::TestResource",
        "OS::Heat::UpdateWaitConditionHandle",
        "OS::Heat::Value",
        "OS::Heat::WaitCondition",
        "OS::Heat::WaitConditionHandle",
        "OS::Nova::Server",
        "OS::Zaqar::Queue",
        "OS::Zaqar::SignedQueueURL",
        "OS::Zaqar::Subscription",
    ]


@pytest.fixture(params=sorted(TYPES))
def kind(request):
    return TYPES[request.param]


def test_defaults_fit_their_own_schema(kind):
    if kind.properties is None:
        return
    given = {name: each.default for name, each in kind.properties.items() if each.default is not None}
    needed = {name: UNKNOWN for name, each in kind.properties.items() if each.required}
    try:
        found = check(kind.properties, {**needed, **given})
    except PropertyError as error:
        raise AssertionError(f"{error.path}: {error.problem}") from None
    assert {name: found[name] for name in given} == given


def test_validation_of_unknown_values_never_fails(kind):
    if kind.properties is None:
        return
    kind.validate(dict.fromkeys(kind.properties, UNKNOWN))


def test_a_resource_is_created_and_deleted_without_remains(kind, store):
    heat = world(store)
    resource = {"type": kind.name, "properties": ENOUGH.get(kind.name, {})}
    stack = heat.started(heat.create(template({"r": resource})))
    found = heat.resources(stack)["r"]
    if kind.name in WAITS:
        assert found.status.value == "IN_PROGRESS"
        heat.delete(stack)
        return
    if found.status.value == "IN_PROGRESS":
        stack = heat.signal_all(stack)
    assert stack.status.value == "COMPLETE"

    stack = heat.delete(stack)
    assert (stack.status.value, heat.resources(stack)) == ("COMPLETE", {})
    assert heat.deployments() == []
    assert heat.machines.asked == {}


def test_known_attributes_can_be_read(kind, store):
    heat = world(store)
    resource = {"type": kind.name, "properties": ENOUGH.get(kind.name, {})}
    names = kind.attributes if kind.attributes is not None else ["deploy_stdout"]
    outputs = {name: {"value": {"get_attr": ["r", name]}} for name in names}
    stack = heat.started(heat.create(template({"r": resource}, outputs=outputs)))

    with heat.store.read() as tx:
        from stoker.stacks.queries import outputs as all_outputs
        from stoker.store import stacks

        found = all_outputs.all_values(tx, heat.engine, stacks.get(tx, stack.id))
    assert [each for each in found if "output_error" in each] == []


def test_unknown_attributes_are_refused_before_the_creation(kind, store):
    if kind.attributes is None:
        return
    heat = world(store)
    resource = {"type": kind.name, "properties": ENOUGH.get(kind.name, {})}
    other = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["r", "no_such_thing"]}}}
    with pytest.raises(StokerError, match=r"The Referenced Attribute \(r no_such_thing\) is incorrect"):
        heat.create(template({"r": resource, "other": other}))
