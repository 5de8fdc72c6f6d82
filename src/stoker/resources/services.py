"""What resource types may ask of the rest of Stoker; ``serve`` and ``stacks.nested`` provide it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from stoker.deployments.gate import Gate
from stoker.deployments.policy import PROJECT
from stoker.identity.signal_tokens import SignalTokens
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.store.tx import Tx
from stoker.transports import Transports
from stoker.transports.base import Site
from stoker.work import Work

if TYPE_CHECKING:
    from stoker.resources.base import Context


class Compute(Protocol):
    """Where servers that a template asks for come from."""

    def create(self, tx: Tx, *, server_id: str, project_id: str, name: str, owner: Owner) -> None:
        """Record the server and defer the job that starts it; ``stacks`` hears how it went."""

    def delete(self, tx: Tx, server_id: str) -> None:
        """Forget the server and defer the job that removes what it left."""

    def address(self, server_id: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Owner:
    """The stack resource that owns a server."""

    stack_id: str
    resource_id: str
    resource_name: str


@dataclass(frozen=True, slots=True)
class Inner:
    """A nested stack as its resource wants it: a template, as text or decoded, and values for its parameters."""

    template: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: What its resources take over from another stack.
    adopt: Mapping[str, Any] | None = None
    #: Resources that are left as they are, whatever their state, also where they are not there yet.
    held: Collection[str] = ()
    #: One that fails ends nobody else's turn: the operation goes on and fails once all have had theirs.
    lenient: bool = False


class InnerStatus(Protocol):
    @property
    def status(self) -> Status: ...

    @property
    def deleted(self) -> bool: ...

    def failure(self) -> tuple[str, str]:
        """Heat's path from the nested stack to what failed in it, and the error's type."""


class Look(Protocol):
    """Into a nested stack."""

    @property
    def names(self) -> Sequence[str]: ...

    def reference(self, name: str) -> Any:
        """What ``get_resource`` gives for a resource inside. Raises NoSuchAttribute."""

    def attribute(self, name: str, attribute: str, path: tuple[Any, ...]) -> Any: ...


class Nested(Protocol):
    """Stacks within stacks. What is begun here may be over at once: ask for its ``status``."""

    def create(self, context: Context, resource: Resource, inner: Inner) -> str:
        """The new stack's id. Raises StokerError for what cannot be."""

    def update(self, context: Context, resource: Resource, inner: Inner) -> None: ...

    def act(self, context: Context, resource: Resource, action: Action) -> None:
        """DELETE, SUSPEND, RESUME or CHECK."""

    def cancel(self, context: Context, resource: Resource) -> None: ...

    def status(self, context: Context, id: str | None) -> InnerStatus | None: ...

    def output(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        """Raises NoSuchAttribute."""

    def look(self, context: Context, resource: Resource) -> Look | None:
        """The resources inside as they are now; None as long as there is no nested stack."""

    def resources(self, context: Context, resource: Resource) -> Sequence[Resource]:
        """All incarnations inside; none as long as there is no nested stack."""

    def template(self, context: Context, resource: Resource) -> Mapping[str, Any]:
        """What the nested stack was told to be last; empty when there is none."""

    def file(self, context: Context, name: str) -> str:
        """The text of a file that came with the tree's template. Raises ResourceFailure."""

    def fingerprint(self, context: Context) -> str:
        """Changes with the files and the environment of the tree."""


class Logins(Protocol):
    """Users for agents that log in at a Keystone; Stoker's own need none."""

    def want(self, tx: Tx, resource_id: str, stack_id: str, name: str) -> None:
        """Have an enabled user; the resource's ``check`` is asked once there is one."""

    def found(self, tx: Tx, resource_id: str) -> Mapping[str, str] | None:
        """``user_id``, ``project_id`` and ``domain_id``, as soon as it is there and enabled."""

    def rest(self, tx: Tx, resource_id: str) -> None:
        """Have it disabled."""

    def forget(self, tx: Tx, resource_id: str) -> None: ...

    def stack_gone(self, tx: Tx, stack: Stack) -> None:
        """Have everything gone that there is yet for a tree of stacks."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    #: Decoded; None where there is none.
    body: Any


class RemoteHeats(Protocol):
    """Heat's API, here and in other regions."""

    def problem(self, region: str | None) -> str | None:
        """Why that region cannot be asked, if it cannot."""

    def ask(self, region: str | None, project_id: str, verb: str, path: str, body: Any = None) -> Answer:
        """A call below a project's root; outside of transactions. Raises when there is no answer."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """What types may ask of the rest of Stoker."""

    transports: Transports
    work: Work
    #: None where no provider is enabled.
    compute: Compute | None
    signal_tokens: SignalTokens
    site: Site
    remote_heats: RemoteHeats
    #: None where Stoker keeps the users.
    logins: Logins | None = None
    #: What holds on servers whose policy does not say who may deploy to them: STACK or PROJECT.
    deployment_policy: str = PROJECT

    @property
    def gate(self) -> Gate:
        """Where every run of a deployment comes through."""
        return Gate(self.work, self.deployment_policy)
