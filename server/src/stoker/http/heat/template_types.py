"""Types of templates and the files with them in requests. ``stoker.hot`` checks the values; these describe them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta

from stoker.hot import VERSIONS
from stoker.http.fields import Absent, Body, Unchecked

_VERSION_NAMES = [*VERSIONS, *(alias for alias in VERSIONS.values() if alias)]
EXAMPLE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"length": {"type": "number", "default": 8, "constraints": [{"range": {"min": 1, "max": 64}}]}},
    "resources": {
        "config": {
            "type": "OS::Heat::SoftwareConfig",
            "properties": {"group": "script", "config": "true", "outputs": [{"name": "result"}]},
        },
        "secret": {"type": "OS::Heat::RandomString", "properties": {"length": {"get_param": "length"}}},
        "both": {"type": "OS::Heat::Value", "properties": {"value": [{"get_resource": "config"}, "and more"]}},
    },
    "outputs": {"secret": {"value": {"get_attr": ["secret", "value"]}}},
}


class HotParameter(Body, forbid_unknown_fields=True):
    type: Literal["string", "number", "boolean", "comma_delimited_list", "json"]
    label: str = ""
    description: str = ""
    default: Any = None
    hidden: bool = False
    immutable: bool = False
    constraints: list[dict[str, Any]] | Absent = UNSET
    tags: list[str] | Absent = UNSET
    schema: dict[str, Any] | Absent = UNSET


class HotResource(Body, forbid_unknown_fields=True):
    type: str
    properties: dict[str, Any] | Absent = UNSET
    metadata: dict[str, Any] | Absent = UNSET
    depends_on: str | list[str] | Absent = UNSET
    deletion_policy: Any = None
    update_policy: dict[str, Any] | Absent = UNSET
    description: str = ""
    condition: Any = None
    external_id: Any = None


class HotOutput(Body, forbid_unknown_fields=True):
    value: Any
    description: str = ""
    condition: Any = None


class HotTemplate(Body, forbid_unknown_fields=True):
    heat_template_version: Annotated[str, Meta(extra_json_schema={"enum": _VERSION_NAMES})]
    description: str = ""
    parameter_groups: list[dict[str, Any]] | Absent = UNSET
    parameters: dict[str, HotParameter] | Absent = UNSET
    conditions: dict[str, Any] | Absent = UNSET
    resources: dict[str, HotResource] | Absent = UNSET
    outputs: dict[str, HotOutput] | Absent = UNSET


class CfnElement(Body):
    Type: str


class CfnOutput(Body):
    Value: Any


class _CfnTemplate(Body):
    Description: str = ""
    Parameters: dict[str, CfnElement] | Absent = UNSET
    Conditions: dict[str, Any] | Absent = UNSET
    Mappings: dict[str, Any] | Absent = UNSET
    Resources: dict[str, CfnElement] | Absent = UNSET
    Outputs: dict[str, CfnOutput] | Absent = UNSET


class AwsTemplate(_CfnTemplate, kw_only=True):
    AWSTemplateFormatVersion: Literal["2010-09-09"]


class HeatCfnTemplate(_CfnTemplate, kw_only=True):
    HeatTemplateFormatVersion: Literal["2012-12-12"]


class Template(Unchecked):
    """A template as data or as YAML text."""

    schema = HotTemplate | AwsTemplate | HeatCfnTemplate | str


class Environment(Unchecked):
    """An environment as data or as YAML text."""

    schema = dict[str, Any] | str


class EnvironmentFiles(Unchecked):
    """The names of those files that are environments."""

    schema = list[str]


class Files(Unchecked):
    """Texts by the names that templates use."""

    schema = dict[str, str]


class ParameterValues(Unchecked):
    """Values of a template's parameters by name."""

    schema = dict[str, Any]
