"""CloudFormation actions that create, change, delete and validate stacks."""

from __future__ import annotations

import re
from typing import Any

from stoker.http.cfn.parameters import StackOptions, StackParameters, TemplateParameters
from stoker.http.cfn.reads import arn
from stoker.http.cfn.request import CfnRequest
from stoker.http.cfn.serialize import Refused
from stoker.http.heat import stack_lookup, stack_requests, stack_writes
from stoker.http.heat.catalog import with_entries
from stoker.http.heat.cloud_constraints import open_constraints
from stoker.model.errors import Invalid
from stoker.model.stack import Stack
from stoker.stacks import operations
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import StackRequest
from stoker.stacks.templates.validation import describe_template

_PARAMETER = re.compile(r"Parameters\.member\.(\d+)\.ParameterKey")


def create_stack(request: CfnRequest, parameters: StackOptions) -> Any:
    name, options = stack_requests.name(parameters.stack_name), _options(parameters)
    identity, resolved = stack_requests.prepare_new(request.context, _stack_request(request, parameters), name)
    return {"StackId": arn(stack_writes.create(request.context, identity, resolved, options))}


def update_stack(request: CfnRequest, parameters: StackOptions) -> Any:
    stack, options = _root_stack(request, parameters.stack_name), _options(parameters)
    resolved = stack_requests.prepare_replacement(request.context, _stack_request(request, parameters), stack)
    stack_writes.update(request.context, stack, resolved, options)
    return {"StackId": arn(stack)}


def cancel_update_stack(request: CfnRequest, parameters: StackParameters) -> Any:
    """Cancel the running update and roll the stack back."""
    stack, engine = _root_stack(request, parameters.stack_name), request.context.app.engine
    request.context.app.store.write(lambda tx: operations.cancel(tx, engine, stack.id, rollback=True))
    return {}


def delete_stack(request: CfnRequest, parameters: StackParameters) -> Any:
    stack_writes.delete(request.context, _root_stack(request, parameters.stack_name))
    return ""


def validate_template(request: CfnRequest, parameters: TemplateParameters) -> Any:
    """Return the template's parameters, or the error message if the template is invalid."""
    try:
        description = describe_template(
            request.context.app.engine,
            _stack_request(request, parameters),
            show_nested=False,
            constraints=open_constraints(request.context),
        )
    except Invalid as error:
        return error.message  # the same response as Heat's
    described_parameters = [
        {
            "ParameterKey": name,
            "DefaultValue": parameter.get("Default", ""),
            "Description": parameter.get("Description", ""),
            "NoEcho": parameter.get("NoEcho", "false"),
        }
        for name, parameter in description["Parameters"].items()
    ]
    return {"Description": description["Description"], "Parameters": described_parameters}


def _root_stack(request: CfnRequest, name: str) -> Stack:
    with request.context.app.store.read() as tx:
        stack = request.stack(tx, name)
    stack_lookup.refuse_nested(stack)
    return stack


def _stack_request(request: CfnRequest, parameters: TemplateParameters) -> StackRequest:
    if parameters.template_body is None:
        if parameters.template_url is not None:
            raise Invalid("TemplateUrl is not supported: send the template itself, as TemplateBody")
        raise Refused(400, "MissingParameter", "TemplateBody is missing")
    keys = (match for name in request.params if (match := _PARAMETER.fullmatch(name)))
    values = {
        request.params[match[0]]: request.params.get(f"Parameters.member.{match[1]}.ParameterValue", "")
        for match in keys
    }
    return with_entries(request.context, StackRequest(template=parameters.template_body, parameters=values))


def _options(parameters: StackOptions) -> Options:
    on_failure, disabled = parameters.on_failure, parameters.disable_rollback
    if on_failure is not None and disabled is not None:
        raise Refused(400, "InvalidParameterCombination", "DisableRollback and OnFailure may not be used together")
    if on_failure is not None:
        disabled = on_failure == "DO_NOTHING"
    return Options(timeout_mins=parameters.timeout_in_minutes, disable_rollback=disabled)
