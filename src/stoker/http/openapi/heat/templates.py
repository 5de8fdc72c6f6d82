"""Templates: validation, resource types and functions, and the members of requests that contain a template."""

from __future__ import annotations

from stoker.hot import CFN_VERSIONS, VERSIONS
from stoker.http.heat import types
from stoker.http.openapi.operations import Noun, Operation, ok
from stoker.http.openapi.schemas import (
    ANYTHING,
    FLAG,
    ID,
    MAP,
    NUMBER,
    REQUESTED,
    TEXT,
    Schema,
    by_name,
    list_of,
    maybe,
    one_of,
    record,
    ref,
    request,
    under,
    with_description,
    without_extras,
)

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
#: The members that accompany a template in every request that contains one.
TEMPLATE: Schema = {
    "description": "As data or as YAML text",
    "anyOf": [ref("HotTemplate"), ref("CfnTemplate"), {"type": "string"}],
}
STACK_REQUEST: dict[str, Schema] = {
    "environment": with_description({"type": ["object", "string", "null"]}, "As data or as YAML text"),
    "environment_files": with_description(
        {"type": ["array", "null"], "items": TEXT}, "Which of the files are environments"
    ),
    "files": with_description(
        {"type": ["object", "null"], "additionalProperties": TEXT}, "Texts by the names that templates use"
    ),
    "parameters": with_description({"type": ["object", "null"]}, "Values by name"),
}

_HOT_PARAMETER: dict[str, Schema] = {
    "label": TEXT,
    "description": TEXT,
    "default": ANYTHING,
    "hidden": FLAG,
    "immutable": FLAG,
    "constraints": list_of(MAP),
    "tags": list_of(TEXT),
    "schema": MAP,
}
_HOT_RESOURCE: dict[str, Schema] = {
    "properties": MAP,
    "metadata": MAP,
    "depends_on": {"type": ["string", "array"], "items": TEXT},
    "deletion_policy": ANYTHING,
    "update_policy": MAP,
    "description": TEXT,
    "condition": ANYTHING,
    "external_id": ANYTHING,
}
_KINDS = one_of("string", "integer", "number", "boolean", "list", "map", "any")
_CONSTRAINT = record({}, allowed_values=list_of(ANYTHING), range=record({}, min=NUMBER, max=NUMBER))
_PARAMETER: dict[str, Schema] = {
    "Type": one_of("String", "Number", "CommaDelimitedList", "Json", "Boolean"),
    "Description": TEXT,
    "NoEcho": one_of("true", "false"),
    "Label": TEXT,
}
_INNER: dict[str, Schema] = {
    "Description": TEXT,
    "Parameters": by_name(ref("ValidatedParameter")),
}

_HOT_TYPES = ("string", "number", "boolean", "comma_delimited_list", "json")

SCHEMAS: dict[str, Schema] = {
    "HotTemplate": without_extras(
        request(
            {"heat_template_version": one_of(*VERSIONS, *(alias for alias in VERSIONS.values() if alias))},
            description=TEXT,
            parameter_groups=list_of(MAP),
            parameters=by_name(without_extras(request({"type": one_of(*_HOT_TYPES)}, **_HOT_PARAMETER))),
            conditions=MAP,
            resources=by_name(without_extras(request({"type": TEXT}, **_HOT_RESOURCE))),
            outputs=by_name(without_extras(request({"value": ANYTHING}, description=TEXT, condition=ANYTHING))),
        )
    ),
    "CfnTemplate": {
        **request(
            AWSTemplateFormatVersion=one_of("2010-09-09"),
            HeatTemplateFormatVersion=one_of("2012-12-12"),
            Description=TEXT,
            Parameters=by_name(request({"Type": TEXT})),
            Conditions=MAP,
            Mappings=MAP,
            Resources=by_name(request({"Type": TEXT})),
            Outputs=by_name(request({"Value": ANYTHING})),
        ),
        "oneOf": [{"required": [key]} for key in CFN_VERSIONS.values()],
    },
    "Environment": record(
        {
            "parameters": MAP,
            "parameter_defaults": MAP,
            "resource_registry": MAP,
            "event_sinks": list_of(ANYTHING),
            "encrypted_param_names": list_of(ANYTHING),
        },
        parameter_merge_strategies=MAP,
    ),
    "ValidatedEnvironment": with_description(
        record(
            {
                "parameters": MAP,
                "parameter_defaults": MAP,
                "resource_registry": MAP,
                "event_sinks": list_of(ANYTHING),
            }
        ),
        "With the request's own parameters, hidden ones as ******, and the templates that are types",
    ),
    "Property": record(
        {"type": _KINDS, "required": FLAG, "update_allowed": FLAG, "immutable": FLAG},
        description=TEXT,
        default=ANYTHING,
        constraints=list_of(_CONSTRAINT),
        schema=with_description(by_name(ref("Property")), "Of a map's entries by name; * for those of a list"),
    ),
    "ResourceType": record(
        {
            "resource_type": TEXT,
            "properties": by_name(ref("Property")),
            "attributes": by_name(record({"description": TEXT}, type=_KINDS)),
            "support_status": record(
                {"status": TEXT, "message": maybe(TEXT), "version": maybe(TEXT), "previous_status": maybe(MAP)}
            ),
        },
        description=TEXT,
    ),
    "ValidatedParameter": record(
        _PARAMETER,
        Default=ANYTHING,
        Value=ANYTHING,
        Tags=list_of(TEXT),
        MinLength=NUMBER,
        MaxLength=NUMBER,
        MinValue=NUMBER,
        MaxValue=NUMBER,
        Step=NUMBER,
        Offset=NUMBER,
        AllowedValues=list_of(ANYTHING),
        AllowedPattern=TEXT,
        CustomConstraint=TEXT,
        ConstraintDescription=TEXT,
    ),
    "NestedTemplate": record(
        {"Type": TEXT, **_INNER}, ParameterGroups=list_of(MAP), NestedParameters=by_name(ref("NestedTemplate"))
    ),
    "ValidatedTemplate": record(
        {**_INNER, "Environment": ref("ValidatedEnvironment")},
        Warnings=with_description(
            list_of(TEXT), "What is odd and refuses nothing, such as an output that cannot have a value"
        ),
        ParameterGroups=list_of(MAP),
        NestedParameters=by_name(ref("NestedTemplate")),
    ),
}
_DESCRIBED = with_description(one_of("true", "false"), "With what each is for")

NOUN = Noun(
    "Templates",
    {
        types.index: Operation(
            summary="The resource types",
            query={
                "name": with_description(REQUESTED, "A regular expression that the name begins with"),
                "support_status": REQUESTED,
                "with_description": _DESCRIBED,
            },
            answers=ok(
                under(
                    "resource_types",
                    {"type": "array", "items": {"anyOf": [ID, record({"resource_type": ID, "description": TEXT})]}},
                )
            ),
        ),
        types.show: Operation(
            summary="A resource type's properties and attributes",
            query={"with_description": _DESCRIBED},
            answers=ok(ref("ResourceType")),
        ),
        types.template: Operation(
            summary="A template with one resource of the type",
            query={"template_type": one_of("cfn", "hot")},
            answers=ok(MAP),
        ),
        types.versions: Operation(
            summary="The versions a template may be of",
            answers=ok(
                under(
                    "template_versions",
                    list_of(record({"version": TEXT, "type": one_of("hot", "cfn"), "aliases": list_of(TEXT)})),
                )
            ),
        ),
        types.functions: Operation(
            summary="The functions of a template version",
            query={"with_condition_func": one_of("true", "false")},
            answers=ok(under("template_functions", list_of(record({"functions": TEXT, "description": TEXT})))),
        ),
        types.validate: Operation(
            summary="What a template asks for, once it is known to hold together",
            query={"show_nested": one_of("true", "false")},
            body=request({"template": TEMPLATE}, **STACK_REQUEST),
            example={"template": EXAMPLE},
            answers=ok(ref("ValidatedTemplate")),
        ),
    },
    SCHEMAS,
)
