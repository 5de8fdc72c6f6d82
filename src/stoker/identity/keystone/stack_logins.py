"""
Keystone users for the resources whose agents log in there, each in the project of its stack.

A transaction records only the desired state of a user. A durable job, one at a time for each user, applies the state to
Keystone and retries until it succeeds. When the last user of a deleted stack is removed, the project is deleted, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stoker.identity.keystone.accounts import Accounts
from stoker.identity.keystone.client import Refused
from stoker.identity.stack_users import StackUsers
from stoker.model.stack import Stack
from stoker.store import stack_users, stacks
from stoker.store.open import Store
from stoker.store.stack_users import DesiredState, Row
from stoker.store.tx import Tx
from stoker.work import PermanentFailure, Work

#: Kinds of jobs.
USER, PROJECT = "keystone.user", "keystone.project"
#: Seconds between retries after a refusal. A multi-threaded Keystone that has just started refuses allowed requests
#: until it has read its policy (observed with 30.0).
_DOUBTS = (0.5, 2.0)
#: Maximum length of a Keystone project's name.
_LONGEST = 64


def project_name(project_id: str, root_id: str) -> str:
    """The name of the project for a stack's users: unique for each root stack, and cut to the maximum length."""
    own = root_id.replace("-", "")
    return f"{project_id[: _LONGEST - 1 - len(own)]}-{own}"


class StackLogins:
    """Manages stack users at Keystone."""

    def __init__(self, store: Store, work: Work, accounts: Accounts, users: StackUsers) -> None:
        self._store = store
        self._work = work
        self._accounts = accounts
        self._users = users
        #: Called in the transaction that records the outcome: with the resource's id, and the reason if the user was
        #: refused.
        self.on_settled: Callable[[Tx, str, str | None], None] = lambda _tx, _id, _failure: None
        work.register(USER, self._agree)
        work.register(PROJECT, self._remove_project)

    def ensure(self, tx: Tx, resource_id: str, stack_id: str, name: str) -> None:
        """
        Request an enabled user with this name.

        ``on_settled`` is called when the user exists, also if it existed before, or when Keystone refuses it.
        """
        stack_users.set_enabled(tx, resource_id, stack_id, name)
        self._defer(tx, resource_id)

    def find(self, tx: Tx, resource_id: str) -> Mapping[str, str] | None:
        """The ids of the user; None until the user exists and is enabled."""
        row = stack_users.find(tx, resource_id)
        if (
            row is None
            or not row.user_id
            or not row.user_project_id
            or not row.wanted == row.state == DesiredState.ENABLED
        ):
            return None
        return {"user_id": row.user_id, "project_id": row.user_project_id, "domain_id": row.domain_id or ""}

    def disable(self, tx: Tx, resource_id: str) -> None:
        """Disable the user until the next ``ensure``."""
        if stack_users.mark(tx, resource_id, DesiredState.DISABLED):
            self._defer(tx, resource_id)

    def drop(self, tx: Tx, resource_id: str) -> None:
        """Request the deletion of the user."""
        if stack_users.mark(tx, resource_id, DesiredState.GONE):
            self._defer(tx, resource_id)

    def drop_stack(self, tx: Tx, stack: Stack) -> None:
        """Request the deletion of all remaining users of a root stack, and of its project."""
        left = stack_users.of_root(tx, stack.id)
        if any(row.wanted is not DesiredState.GONE for row in left):
            stack_users.mark_all(tx, stack.id, DesiredState.GONE)
        for row in left:
            if row.wanted is not DesiredState.GONE:
                self._defer(tx, row.resource_id)
        if not left:
            self._defer_project(tx, stack)

    def _defer(self, tx: Tx, resource_id: str) -> None:
        self._work.defer(tx, USER, resource_id, {"resource_id": resource_id})

    def _defer_project(self, tx: Tx, stack: Stack) -> None:
        if stack.user_project_id != stack.project_id:
            args = {"id": stack.user_project_id, "name": project_name(stack.project_id, stack.id)}
            self._work.defer(tx, PROJECT, stack.id, args)

    def _agree(self, args: Mapping[str, Any]) -> None:
        with self._store.read() as tx:
            row = stack_users.find(tx, args["resource_id"])
            stack = stacks.find(tx, row.root_id) if row else None
        if row is None:
            return
        if row.wanted is DesiredState.GONE or stack is None:
            self._accounts.delete_user(row.user_id, row.name)
            self._store.write(lambda tx: self._delete(tx, row))
            return
        try:
            created = self._create_if_allowed(row, stack)
        except Refused as error:
            why = error.message
            self._store.write(lambda tx: self.on_settled(tx, row.resource_id, why))
            raise PermanentFailure(why) from None
        self._store.write(lambda tx: self._note(tx, created))

    def _create_if_allowed(self, row: Row, stack: Stack) -> Row:
        for pause in _DOUBTS:
            try:
                return self._create(row, stack)
            except Refused:
                time.sleep(pause)
        return self._create(row, stack)

    def _create(self, row: Row, stack: Stack) -> Row:
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
        login = replace(row, user_id=user_id, user_project_id=project_id, domain_id=self._accounts.domain_id)
        return replace(login, state=row.wanted.value)

    def _note(self, tx: Tx, login: Row) -> None:
        """Store the outcome. If the desired state has changed meanwhile, another job is already waiting to apply it."""
        stack = stacks.find(tx, login.root_id, for_update=True)
        stack_users.save(tx, login)
        if stack is not None and stack.user_project_id != login.user_project_id:
            stack_users.set_project(tx, login.root_id, str(login.user_project_id))
        self.on_settled(tx, login.resource_id, None)

    def _delete(self, tx: Tx, row: Row) -> None:
        stack = stacks.find(tx, row.root_id, for_update=True)
        stack_users.drop(tx, row.resource_id)
        if stack is not None and stack.deleted_at is not None and not stack_users.any_of_root(tx, row.root_id):
            self._defer_project(tx, stack)

    def _remove_project(self, args: Mapping[str, Any]) -> None:
        self._accounts.delete_project(args["id"], args["name"])
