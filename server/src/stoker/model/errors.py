"""
Errors that a caller can act on. The class names are Heat's names in ``error.type``.

StokerError
├── Invalid            the request can never succeed in this form (400)
│   ├── StackValidationFailed, InvalidTemplateVersion, …   errors in a template
│   ├── NotSupported, ResourceActionNotSupported           requests that the resource or its state does not support
│   └── RequestLimitExceeded                               a limit of the site is exceeded
├── Unauthorized       the caller is not authenticated (401)
├── Forbidden          the caller lacks the permission (403)
│   ├── ApprovalPending    the server of the agent waits for a user's approval
│   └── DeploymentRefused  the policy of a server denies the deployment
├── EntityNotFound     the object does not exist, or the caller may not see it (404)
├── Conflict           the current state does not permit the request (409)
│   ├── StackExists, ActionInProgress, ResourceInUse
├── PreconditionFailed a condition in the request is not met (412)
├── Unprocessable      the content differs from its declaration (422)
├── TooManyRequests    this client, or all clients together, exceed a rate or concurrency limit (429)
└── Unavailable        a dependency is down; the same call may succeed later (503)

Any other exception that reaches an API is a bug and is reported as one.
"""

from __future__ import annotations

from collections.abc import Collection

from stoker.model.audit import Decision
from stoker.model.secrets import redact


class StokerError(Exception):
    """A failure whose ``message`` is a complete sentence for the client."""

    #: The HTTP status.
    status = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def redact_error(error: StokerError, secrets: Collection[str]) -> None:
    """Redact secrets in the error's message, which may repeat a value from the request."""
    if secrets:
        error.message = redact(error.message, secrets)
        error.args = (error.message, *error.args[1:])


class Invalid(StokerError):
    """The request can never succeed in this form (400)."""

    status = 400


class StackValidationFailed(Invalid):
    """A template, its parameters or its properties are invalid."""


class InvalidTemplateVersion(Invalid):
    """The template has no version, or an unknown one."""


class InvalidTemplateSection(Invalid):
    """The template has an unknown or malformed section."""


class InvalidTemplateReference(Invalid):
    """The template refers to a resource that it does not define."""


class InvalidSchemaError(Invalid):
    """The definition of a parameter or property is invalid."""


class UserParameterMissing(Invalid):
    """A parameter without a default has no value."""


class UnknownUserParameter(Invalid):
    """The request has a value for a parameter that the template does not define."""


class ImmutableParameterModified(Invalid):
    """An update changes a parameter that the template declares immutable."""


class CircularDependencyException(Invalid):
    """Resources of the template depend on each other in a cycle."""


class NotSupported(Invalid):
    """The stack or resource does not support the request, or not in its current state."""


class ResourceActionNotSupported(Invalid):
    """The resource does not support the action."""


class ResourceActionRestricted(Invalid):
    """The environment restricts the action on the resource."""


class InvalidBreakPointHook(Invalid):
    """The resource does not wait at the breakpoint that the request names."""


class RequestLimitExceeded(Invalid):
    """The request exceeds a limit of the site."""


class Unauthorized(StokerError):
    """The caller is not authenticated (401)."""

    status = 401


class Forbidden(StokerError):
    """The caller lacks the permission (403)."""

    status = 403


class ApprovalPending(Forbidden):
    """The server of the agent waits for a user's approval."""


class DeploymentRefused(Forbidden):
    """
    The policy of a server denies a deployment (403).

    If the transaction commits, it contains the audit entry. Code that rolls the transaction back writes the entry in a
    new transaction (``authorizer.record_denial``).
    """

    def __init__(self, message: str, decision: Decision) -> None:
        super().__init__(message)
        self.decision = decision


class WriteRefused(Forbidden):
    """
    A write to a container or queue that belongs to a server or deployment, by a caller that does not own it (403).

    ``noun`` and ``name`` identify the container or queue; ``owner`` is the id of the resource, stack or deployment.
    Every API audits this error.
    """

    def __init__(self, noun: str, name: str, owner: str, project_id: str) -> None:
        super().__init__(
            f"The {noun} {name} belongs to a server or a deployment: only Stoker and the agent that it was made for "
            f"write there. Use a {noun} of your own."
        )
        self.noun, self.name, self.owner, self.project_id = noun, name, owner, project_id


class EntityNotFound(StokerError):
    """The object does not exist, or the caller may not see it (404)."""

    status = 404

    @classmethod
    def of(cls, noun: str, name: str) -> EntityNotFound:
        """Return the error with Heat's sentence, which clients match."""
        return cls(f"The {noun} ({name}) could not be found.")


class Conflict(StokerError):
    """The current state does not permit the request (409)."""

    status = 409


class StackExists(Conflict):
    """The project has a stack with this name."""


class ActionInProgress(Conflict):
    """An operation of the stack is in progress."""


class ResourceInUse(Conflict):
    """The object is in use and cannot be deleted."""


class PreconditionFailed(StokerError):
    """A condition in the request, such as ``If-None-Match``, is not met (412)."""

    status = 412


class Unprocessable(StokerError):
    """The content differs from its declaration, such as its checksum (422)."""

    status = 422


class Unavailable(StokerError):
    """A dependency is down (503). ``retry_after`` is the number of seconds after which the same call may succeed."""

    status = 503

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooManyRequests(StokerError):
    """A limit is exceeded (429). ``retry_after`` is the number of seconds after which the same call may succeed."""

    status = 429

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after
