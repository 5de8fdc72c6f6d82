"""
Every failure a caller can act on, named as Heat names it in ``error.type``.

StokerError
├── Invalid            the request can never succeed as written (400)
│   ├── StackValidationFailed, InvalidTemplateVersion, …   the template's kinds of wrong
│   ├── NotSupported, ResourceActionNotSupported           right words, wrong moment
│   └── RequestLimitExceeded                               more than the site allows
├── Unauthorized       who are you? (401)
├── Forbidden          the caller may not do this (403)
│   └── DeploymentRefused  a server's policy does not let the deployment in
├── EntityNotFound     no such thing, or not yours to see (404)
├── Conflict           the state of things forbids it now (409)
│   ├── StackExists, ActionInProgress, ResourceInUse
├── NotAcceptable      nothing that is had would please whoever asked (406)
├── PreconditionFailed what the request asked to be so first is not so (412)
├── Unprocessable      what came is not what was announced (422)
└── Unavailable        something we depend on is down; the same call may work later (503)

Anything else that escapes is a bug and is reported as one.
"""

from __future__ import annotations

from stoker.model.audit import Decision


class StokerError(Exception):
    """A failure with one ready sentence for whoever asked."""

    kind = "internal"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(StokerError):
    kind = "invalid"


class StackValidationFailed(Invalid):
    pass


class InvalidTemplateVersion(Invalid):
    pass


class InvalidTemplateSection(Invalid):
    pass


class InvalidTemplateReference(Invalid):
    pass


class InvalidSchemaError(Invalid):
    pass


class UserParameterMissing(Invalid):
    pass


class UnknownUserParameter(Invalid):
    pass


class ImmutableParameterModified(Invalid):
    pass


class CircularDependencyException(Invalid):
    pass


class NotSupported(Invalid):
    pass


class ResourceActionNotSupported(Invalid):
    pass


class ResourceActionRestricted(Invalid):
    pass


class InvalidBreakPointHook(Invalid):
    pass


class RequestLimitExceeded(Invalid):
    pass


class Unauthorized(StokerError):
    kind = "unauthorized"


class Forbidden(StokerError):
    kind = "forbidden"


class DeploymentRefused(Forbidden):
    """
    Whoever undoes the transaction that it comes out of keeps the decision in another (``gate.record``); where the
    transaction goes on, the decision is in it.
    """

    def __init__(self, message: str, decision: Decision) -> None:
        super().__init__(message)
        self.decision = decision


class EntityNotFound(StokerError):
    kind = "not-found"

    @classmethod
    def of(cls, noun: str, name: str) -> EntityNotFound:
        """Heat's own sentence, which clients match on."""
        return cls(f"The {noun} ({name}) could not be found.")


class Conflict(StokerError):
    kind = "conflict"


class StackExists(Conflict):
    pass


class ActionInProgress(Conflict):
    pass


class ResourceInUse(Conflict):
    pass


class NotAcceptable(StokerError):
    kind = "not-acceptable"


class PreconditionFailed(StokerError):
    kind = "precondition-failed"


class Unprocessable(StokerError):
    kind = "unprocessable"


class Unavailable(StokerError):
    kind = "unavailable"
