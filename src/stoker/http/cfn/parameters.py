"""The parameters of CloudFormation's actions, in the query string or in a form."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from stoker.http.fields import Flag, Positive, Query


class StackParameters(Query, rename="pascal"):
    stack_name: Annotated[str, Meta(description="The name, the id or the ARN of a stack")]


class AnyStackParameters(Query, rename="pascal"):
    """Without a stack, the action lists all stacks."""

    stack_name: str | None = None


class ResourceParameters(StackParameters, rename="pascal"):
    logical_resource_id: str


class ResourceSearch(Query, rename="pascal"):
    """Either the stack, or the id of a resource in it."""

    stack_name: str | None = None
    physical_resource_id: str | None = None
    logical_resource_id: str | None = None


class TemplateParameters(Query, rename="pascal"):
    """``Parameters.member.N.ParameterKey`` and ``.ParameterValue`` are the values of the template's parameters."""

    template_body: str | None = None
    template_url: str | None = None


class StackOptions(TemplateParameters, rename="pascal", kw_only=True):
    stack_name: str
    timeout_in_minutes: Positive | None = None
    disable_rollback: Flag | None = None
    on_failure: Literal["DO_NOTHING", "ROLLBACK", "DELETE"] | None = None


class NoParameters(Query):
    """The action has no parameters."""
