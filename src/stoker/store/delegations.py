"""Queries for delegations: the trusts by which Stoker acts at Keystone for the owners of stacks."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from stoker.store.repository import Repository
from stoker.store.schema import delegations
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """The trust of a tree of stacks. ``user_id`` is the trustor, in the project ``project_id``."""

    root_id: str
    project_id: str
    user_id: str
    trust_id: str
    is_ended: bool = False


_DELEGATIONS = Repository(Delegation, delegations, key=("root_id",))
_ENDED = _DELEGATIONS.select(delegations.c.is_ended == sa.true())


def find(tx: Tx, root_id: str) -> Delegation | None:
    """Return the delegation of a tree of stacks, or None."""
    return _DELEGATIONS.find(tx, root_id)


def ended(tx: Tx) -> list[Delegation]:
    """Return the delegations of deleted stacks."""
    return _DELEGATIONS.all(tx, _ENDED, {})


def replace(tx: Tx, new: Delegation) -> None:
    """Store a delegation in place of the previous one of the same stack."""
    _DELEGATIONS.delete(tx, new.root_id)
    _DELEGATIONS.add(tx, new, encrypt=("trust_id",))


def save(tx: Tx, changed: Delegation) -> None:
    """Write a delegation."""
    _DELEGATIONS.save(tx, changed, encrypt=("trust_id",))


def delete(tx: Tx, root_id: str) -> None:
    """Delete a delegation."""
    _DELEGATIONS.delete(tx, root_id)
