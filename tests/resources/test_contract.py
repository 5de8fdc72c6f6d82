"""Every resource type keeps these promises; a new file in resources/ is tested here unasked."""

from __future__ import annotations

import pytest

from stoker import types
from support.type_contract import TypeContract

#: The types of the server. The provider of a cloud may replace one by its own.
NAMES = {name for kind in types.types_of(types) for name in (kind.name, *kind.aliases)}
TYPES = {name: kind for name, kind in types.load().items() if name in NAMES}


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
class TestTypes(TypeContract):
    enough = {
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
        "OS::Heat::Stack": {"template": "heat_template_version: 2018-08-31"},
        "OS::Heat::SwiftSignal": {"handle": "h", "timeout": 10},
        "OS::Zaqar::SignedQueueURL": {"queue": "q"},
        "OS::Zaqar::Subscription": {"queue_name": "q", "subscriber": "http://127.0.0.1:9/"},
    }
    waits = (
        "OS::Heat::WaitCondition",
        "OS::Heat::SwiftSignal",
        "OS::Heat::Stack",
    )


def test_types_and_their_other_names_exist():
    assert {*TestTypes.enough, *TestTypes.waits} <= NAMES
