"""
Keystone users for the resources whose agents log in there, each in the project of its stack.

A transaction records only the desired state of a user; the reconciler applies it. When the last user of a deleted stack
is removed, the project is deleted, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stoker.backends.reconciler import request
from stoker.failures import ServiceRejected
from stoker.identity.stack_users import StackUsers
from stoker.model.deployment import Owner, Settled
from stoker.model.stack import Stack
from stoker.store import stack_users, stacks
from stoker.store.open import Store
from stoker.store.stack_users import DesiredState, Row
from stoker.store.tx import Tx
from stoker.work import Work

if TYPE_CHECKING:
    from stoker.identity.keystone.accounts import Accounts  # optional: only in Keystone mode

#: The kind of these objects for the reconciler; the kind of the job that deletes a project.
USER, PROJECT = "keystone user", "keystone.project"
#: Rejections after which a user counts as refused. A multi-threaded Keystone that has just started refuses allowed
#: requests until it has read its policy (observed with 30.0).
_MOST_REJECTIONS = 2
#: Maximum length of a Keystone project's name.
_LONGEST = 64


def project_name(project_id: str, root_id: str) -> str:
    """The name of the project for a stack's users: unique for each root stack, and cut to the maximum length."""
    own = root_id.replace("-", "")
    return f"{project_id[: _LONGEST - 1 - len(own)]}-{own}"


class KeystoneUsers:
    """The users at Keystone for the agents of resources: records their desired state."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def ensure(self, tx: Tx, resource_id: str, stack_id: str, name: str) -> None:
        """Request an enabled user with this name."""
        stack_users.set_enabled(tx, resource_id, name, stack_id)
        request(self._work, tx, USER, resource_id)

    def find(self, tx: Tx, resource_id: str) -> Mapping[str, str] | None:
        """The ids of the user; None until the user exists and is enabled."""
        row = stack_users.find(tx, resource_id)
        if row is None or not row.user_id or not row.user_project_id:
            return None
        if not row.wanted == row.state == DesiredState.ENABLED:
            return None
        return {"user_id": row.user_id, "project_id": row.user_project_id, "domain_id": row.domain_id or ""}

    def disable(self, tx: Tx, resource_id: str) -> None:
        """Disable the user until the next ``ensure``."""
        self._mark(tx, resource_id, DesiredState.DISABLED)

    def drop(self, tx: Tx, resource_id: str) -> None:
        """Request the deletion of the user."""
        self._mark(tx, resource_id, DesiredState.GONE)

    def drop_stack(self, tx: Tx, stack: Stack) -> None:
        """Request the deletion of all remaining users of a root stack, and of its project."""
        rows = stack_users.of_root(tx, stack.id)
        for row in rows:
            if row.wanted is not DesiredState.GONE:
                self._mark(tx, row.resource_id, DesiredState.GONE)
        if not rows:
            _defer_project(self._work, tx, stack)

    def _mark(self, tx: Tx, resource_id: str, wanted: DesiredState) -> None:
        if stack_users.mark(tx, wanted, resource_id):
            request(self._work, tx, USER, resource_id)


class KeystoneUserController:
    """
    The controller for users; see ``reconciler.Controller``.

    The resource is woken whenever a user exists, also if it existed before, or when Keystone refuses it.
    """

    def __init__(
        self,
        store: Store,
        work: Work,
        accounts: Accounts,
        users: StackUsers,
    ) -> None:
        self._store = store
        self._work = work
        self._accounts = accounts
        self._users = users
        work.register(PROJECT, self._delete_project)

    def prepare(self) -> None:
        """Only check that Keystone answers. If it refuses the login, each resource reports that."""
        with suppress(ServiceRejected):
            self._accounts.log_in()

    def pending(self, tx: Tx) -> Sequence[str]:
        return stack_users.pending(tx)

    def reconcile(self, id: str, rejections: int) -> None:
        """Apply the desired state of a resource's user."""
        with self._store.read() as tx:
            row = stack_users.find(tx, id)
            stack = stacks.find(tx, row.root_id) if row else None
        if row is None:
            return
        if row.wanted is DesiredState.GONE or stack is None:
            self._accounts.delete_user(row.user_id, row.name)
            self._store.write(lambda tx: self._record_deletion(tx, row))
            return
        try:
            applied = self._apply(row, stack)
        except ServiceRejected as error:
            if rejections < _MOST_REJECTIONS:
                raise
            reason = str(error)
            self._store.write(lambda tx: tx.wake(Owner.resource(id), Settled(reason)))
        else:
            self._store.write(lambda tx: self._record(tx, applied))

    def _apply(self, row: Row, stack: Stack) -> Row:
        """Apply the desired state to the user at Keystone. Returns the row with the ids."""
        enabled = row.wanted is DesiredState.ENABLED
        if row.user_id and self._accounts.enable(row.user_id, enabled=enabled):
            return replace(row, state=row.wanted.value)
        project_id = stack.user_project_id
        if project_id == stack.project_id:
            name = project_name(stack.project_id, stack.id)
            project_id = self._accounts.project(name, f"Users of the stack {stack.name} in {stack.project_id}")
        user_id = self._accounts.user(row.name, project_id, self._users.password(row.resource_id))
        if not enabled:
            self._accounts.enable(user_id, enabled=False)
        domain_id = self._accounts.domain_id
        return replace(row, user_id=user_id, user_project_id=project_id, domain_id=domain_id, state=row.wanted.value)

    def _record(self, tx: Tx, row: Row) -> None:
        """Store the outcome. If the desired state has changed meanwhile, another job is already waiting to apply it."""
        stack = stacks.find(tx, row.root_id, for_update=True)
        stack_users.save(tx, row)
        if stack is not None and stack.user_project_id != row.user_project_id:
            stack_users.set_project(tx, row.root_id, str(row.user_project_id))
        tx.wake(Owner.resource(row.resource_id))

    def _record_deletion(self, tx: Tx, row: Row) -> None:
        stack = stacks.find(tx, row.root_id, for_update=True)
        stack_users.drop(tx, row.resource_id)
        if stack is not None and stack.deleted_at is not None and not stack_users.any_of_root(tx, row.root_id):
            _defer_project(self._work, tx, stack)

    def _delete_project(self, args: Mapping[str, Any]) -> None:
        """Job: delete the project of a deleted stack."""
        self._accounts.delete_project(args["id"], args["name"])


def _defer_project(work: Work, tx: Tx, stack: Stack) -> None:
    if stack.user_project_id != stack.project_id:
        args = {"id": stack.user_project_id, "name": project_name(stack.project_id, stack.id)}
        work.defer(tx, PROJECT, stack.id, args)
