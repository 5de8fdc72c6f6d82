"""
Users at Keystone for those resources whose agents log in there, each in the project of its stack.

A transaction says only what a user should be; a durable job, one at a time for each user, makes Keystone agree with
that, however often it has to try. The last user of a stack that is gone takes the project with it.
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
from stoker.store.stack_users import Row, Wanted
from stoker.store.tx import Tx
from stoker.work import GiveUp, Work

#: Kinds of jobs.
USER, PROJECT = "keystone.user", "keystone.project"
#: Seconds: a Keystone with threads that has just begun refuses what it allows once its policy is read (seen with 30.0).
_DOUBTS = (0.5, 2.0)
#: Characters of a project's name at Keystone.
_LONGEST = 64


def project_name(project_id: str, root_id: str) -> str:
    """Of the project for a stack's users: as long as names may be, and never another stack's."""
    own = root_id.replace("-", "")
    return f"{project_id[: _LONGEST - 1 - len(own)]}-{own}"


class StackLogins:
    def __init__(self, store: Store, work: Work, accounts: Accounts, users: StackUsers) -> None:
        self._store = store
        self._work = work
        self._accounts = accounts
        self._users = users
        #: Told in the transaction that knows: the resource's id, and why it cannot have a user if that is so.
        self.on_settled: Callable[[Tx, str, str | None], None] = lambda _tx, _id, _failure: None
        work.register(USER, self._agree)
        work.register(PROJECT, self._remove_project)

    def want(self, tx: Tx, resource_id: str, stack_id: str, name: str) -> None:
        """Have an enabled user called so; ``on_settled`` hears of it, also when there is one already."""
        stack_users.want(tx, resource_id, stack_id, name)
        self._defer(tx, resource_id)

    def found(self, tx: Tx, resource_id: str) -> Mapping[str, str] | None:
        """The user's ids, as soon as it is there and enabled."""
        row = stack_users.find(tx, resource_id)
        if row is None or not row.user_id or not row.user_project_id or not row.wanted == row.state == Wanted.ENABLED:
            return None
        return {"user_id": row.user_id, "project_id": row.user_project_id, "domain_id": row.domain_id or ""}

    def rest(self, tx: Tx, resource_id: str) -> None:
        """It must not log in until it is wanted again."""
        if stack_users.mark(tx, resource_id, Wanted.DISABLED):
            self._defer(tx, resource_id)

    def forget(self, tx: Tx, resource_id: str) -> None:
        if stack_users.mark(tx, resource_id, Wanted.GONE):
            self._defer(tx, resource_id)

    def stack_gone(self, tx: Tx, stack: Stack) -> None:
        """The top of a tree of stacks: whatever is left of its users goes, and the project."""
        left = stack_users.of_root(tx, stack.id)
        if any(row.wanted is not Wanted.GONE for row in left):
            stack_users.mark_all(tx, stack.id, Wanted.GONE)
        for row in left:
            if row.wanted is not Wanted.GONE:
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
        if row.wanted is Wanted.GONE or stack is None:
            self._accounts.delete_user(row.user_id, row.name)
            self._store.write(lambda tx: self._gone(tx, row))
            return
        try:
            made = self._made_if_refused_no_more(row, stack)
        except Refused as error:
            why = error.message
            self._store.write(lambda tx: self.on_settled(tx, row.resource_id, why))
            raise GiveUp(why) from None
        self._store.write(lambda tx: self._note(tx, made))

    def _made_if_refused_no_more(self, row: Row, stack: Stack) -> Row:
        for pause in _DOUBTS:
            try:
                return self._made(row, stack)
            except Refused:
                time.sleep(pause)
        return self._made(row, stack)

    def _made(self, row: Row, stack: Stack) -> Row:
        """The user as Keystone has it now."""
        enabled = row.wanted is Wanted.ENABLED
        if row.user_id and self._accounts.enable(row.user_id, enabled=enabled):
            return replace(row, state=row.wanted.value)
        project_id = stack.user_project_id
        if project_id == stack.project_id:
            name = project_name(stack.project_id, stack.id)
            project_id = self._accounts.project(name, f"Users of the stack {stack.name} in {stack.project_id}")
        user_id = self._accounts.user(row.name, project_id, self._users.password(row.resource_id))
        if not enabled:
            self._accounts.enable(user_id, enabled=False)
        known = replace(row, user_id=user_id, user_project_id=project_id, domain_id=self._accounts.domain_id)
        return replace(known, state=row.wanted.value)

    def _note(self, tx: Tx, made: Row) -> None:
        """Meanwhile it may be wanted otherwise: then another job waits to see to that."""
        stack = stacks.find(tx, made.root_id, hold=True)
        stack_users.save(tx, made)
        if stack is not None and stack.user_project_id != made.user_project_id:
            stack_users.set_project(tx, made.root_id, str(made.user_project_id))
        self.on_settled(tx, made.resource_id, None)

    def _gone(self, tx: Tx, row: Row) -> None:
        stack = stacks.find(tx, row.root_id, hold=True)
        stack_users.drop(tx, row.resource_id)
        if stack is not None and stack.deleted_at is not None and not stack_users.any_of_root(tx, row.root_id):
            self._defer_project(tx, stack)

    def _remove_project(self, args: Mapping[str, Any]) -> None:
        self._accounts.delete_project(args["id"], args["name"])
