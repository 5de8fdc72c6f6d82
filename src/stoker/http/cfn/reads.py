"""CloudFormation actions that read stacks and their resources."""

from __future__ import annotations

import json
from typing import Any

from stoker.deployments.derive import redact_metadata
from stoker.hot import Parameters
from stoker.http.cfn.parameters import (
    AnyStackParameters,
    NoParameters,
    ResourceParameters,
    ResourceSearch,
    StackParameters,
)
from stoker.http.cfn.request import CfnRequest
from stoker.http.cfn.serialize import Refused
from stoker.http.heat.serializers import time
from stoker.model.arn import Arn
from stoker.model.errors import EntityNotFound
from stoker.model.stack import Event, Resource, Stack
from stoker.stacks import secrets
from stoker.stacks.engine import Engine
from stoker.stacks.engine.session import StackSession
from stoker.stacks.queries import outputs
from stoker.stacks.queries.prefetch import prefetch_trees
from stoker.stacks.signals import find_target
from stoker.store import events, resources, stacks
from stoker.store.stack_lists import Filter, list_all
from stoker.store.tx import Tx


def list_stacks(request: CfnRequest, _: NoParameters) -> Any:
    with request.context.app.store.read() as tx:
        page = list_all(tx, request.project, Filter(hidden_tags=request.context.app.settings.hidden_tags))
    return {
        "StackSummaries": [
            {
                **_stack_names(stack),
                "CreationTime": time(stack.created_at),
                "LastUpdatedTime": time(stack.updated_at) or "",
                "DeletionTime": time(stack.deleted_at) or "",
                "TemplateDescription": stack.description,
                **_status(stack),
            }
            for stack in page
        ]
    }


def describe_stacks(request: CfnRequest, parameters: AnyStackParameters) -> Any:
    services, name = request.context.app, parameters.stack_name
    with services.store.read() as tx:
        page = list_all(tx, request.project, Filter()) if name is None else [request.stack(tx, name)]
        prefetch_trees(tx, [stack.root_id for stack in page])
        details = [_describe_stack(tx, stack, outputs.all_values(tx, services.engine, stack)) for stack in page]
    return {"Stacks": details}


def get_template(request: CfnRequest, parameters: StackParameters) -> Any:
    with request.context.app.store.read() as tx:
        stack = request.stack(tx, parameters.stack_name)
        return {"TemplateBody": secrets.redacted_template(tx, stack, stacks.source(tx, stack.id))}


def describe_stack_events(request: CfnRequest, parameters: StackParameters) -> Any:
    with request.context.app.store.read() as tx:
        stack = request.stack(tx, parameters.stack_name)
        page = events.list_all(tx, [stack.id], equal={}, limit=None, marker=None, descending=True)
    return {"StackEvents": [_event(stack, event) for event in page]}


def describe_stack_resource(request: CfnRequest, parameters: ResourceParameters) -> Any:
    """
    Return a resource with its metadata; os-collect-config polls this action.

    The user of a resource sees only that resource. Raises EntityNotFound or Forbidden.
    """
    name, context = parameters.logical_resource_id, request.context
    with context.app.store.read() as tx:
        stack = request.stack(tx, parameters.stack_name)
        resource = find_target(tx, stack, name, context.only)
        if resource is None:
            context.require_resource(None)
            raise EntityNotFound(f"The Resource ({name}) could not be found in Stack {stack.name}.")
        detail = describe_resource(tx, context.app.engine, stack, resource)
        if context.only is None:  # the caller is a person, not an agent
            detail["Metadata"] = redact_metadata(tx, detail["Metadata"])
        return {"StackResourceDetail": detail}


def describe_resource(tx: Tx, engine: Engine, stack: Stack, resource: Resource) -> dict[str, Any]:
    """Return the resource as CloudFormation's StackResourceDetail, with its current metadata."""
    transition = StackSession(tx, engine, stack)
    live = transition.type_of(resource).live_metadata(transition.context, resource)
    return {
        **_resource(resource),
        "Description": resource.definition.get("description") or "",
        "LastUpdatedTimestamp": time(resource.updated_at or resource.created_at),
        "Metadata": {**resource.metadata, **live},
        **_stack_names(stack),
    }


def describe_stack_resources(request: CfnRequest, parameters: ResourceSearch) -> Any:
    """List the resources of the stack StackName, or of the stack that contains the resource PhysicalResourceId."""
    with request.context.app.store.read() as tx:
        match (parameters.stack_name, parameters.physical_resource_id):
            case (str(name), None):
                stack = request.stack(tx, name)
            case (None, str(physical)):
                stack = _of_physical(request, tx, physical)
            case _:
                raise Refused(400, "InvalidParameterCombination", "give StackName or PhysicalResourceId")
        current = [resource for resource in resources.of_stack(tx, stack.id) if resource.current]
    return {
        "StackResources": [
            {
                **_resource(resource),
                **_stack_names(stack),
                "Description": resource.definition.get("description") or "",
                "Timestamp": time(resource.updated_at or resource.created_at),
            }
            for resource in current
            if parameters.logical_resource_id in (None, resource.name)
        ]
    }


def list_stack_resources(request: CfnRequest, parameters: StackParameters) -> Any:
    with request.context.app.store.read() as tx:
        stack = request.stack(tx, parameters.stack_name)
        current = [resource for resource in resources.of_stack(tx, stack.id) if resource.current]
    return {
        "StackResourceSummaries": [
            {**_resource(resource), "LastUpdatedTimestamp": time(resource.updated_at or resource.created_at)}
            for resource in current
        ]
    }


def estimate_template_cost(_request: CfnRequest, _: NoParameters) -> Any:
    return {"Url": "http://en.wikipedia.org/wiki/Gratis"}


def arn(stack: Stack) -> str:
    """Return the ARN by which CloudFormation's API identifies the stack."""
    return str(Arn(stack.project_id, stack.name, stack.id))


def _of_physical(request: CfnRequest, tx: Tx, physical: str) -> Stack:
    resource = resources.anywhere(tx, request.project, physical)
    stack = stacks.find(tx, resource.stack_id) if resource else None
    if stack is None:
        raise EntityNotFound.of("Resource", physical)
    return stack


def _stack_names(stack: Stack) -> dict[str, Any]:
    return {"StackId": arn(stack), "StackName": stack.name}


def _status(stack: Stack) -> dict[str, Any]:
    return {"StackStatus": f"{stack.action}_{stack.status}", "StackStatusReason": stack.reason}


def _describe_stack(tx: Tx, stack: Stack, values: list[dict[str, Any]]) -> dict[str, Any]:
    parameters = tx.secrets.redact(Parameters.from_json(stack.parameters).for_display())
    detail = {
        "Capabilities": [],
        "CreationTime": time(stack.created_at),
        "Description": stack.description,
        "DisableRollback": stack.disable_rollback,
        "NotificationARNs": [],
        "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
        **_stack_names(stack),
        **_status(stack),
        "TimeoutInMinutes": "" if stack.timeout_mins is None else stack.timeout_mins,
        "Outputs": [
            {
                "Description": output["description"],
                "OutputKey": output["output_key"].replace(":", "."),
                "OutputValue": output["output_value"],
            }
            for output in tx.secrets.redact(values)
        ],
    }
    if stack.updated_at is not None:
        detail["LastUpdatedTime"] = time(stack.updated_at)
    return detail


def _resource(resource: Resource) -> dict[str, Any]:
    return {
        "LogicalResourceId": resource.name,
        "PhysicalResourceId": resource.physical_id or "",
        "ResourceStatus": f"{resource.action}_{resource.status}",
        "ResourceStatusReason": resource.reason,
        "ResourceType": resource.declared_type,
    }


def _event(stack: Stack, event: Event) -> dict[str, Any]:
    return {
        "EventId": event.id,
        "LogicalResourceId": event.resource_name,
        "PhysicalResourceId": event.physical_id or "",
        "ResourceProperties": json.dumps(event.properties),
        "ResourceStatus": f"{event.action}_{event.status}",
        "ResourceStatusReason": event.reason,
        "ResourceType": event.resource_type,
        "Timestamp": time(event.at),
        **_stack_names(stack),
    }
