"""
Administration of projects, users, roles and application credentials.

Every change that removes a permission notifies all processes, so that none relies on cached tokens.
"""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from stoker.identity.directory import DOMAIN_ID, ROLES
from stoker.identity.tokens import ADMIN
from stoker.model.errors import Conflict, EntityNotFound, Forbidden, Invalid
from stoker.model.ids import SITE
from stoker.model.principal import ApplicationCredential, Principal, Project, User
from stoker.store import artifacts, identity, servers
from stoker.store.notifier import TOKENS_TOPIC
from stoker.store.tx import Tx

#: An id in Keystone's format, or a UUID.
_KEYSTONE_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def create_project(tx: Tx, name: str, description: str, *, enabled: bool) -> Project:
    """Create a project. Raises Conflict if the name is in use."""
    _free(identity.find_project_by_name(tx, name, DOMAIN_ID), "project", name)
    project = Project(id=uuid.uuid4().hex, name=name, domain_id=DOMAIN_ID, description=description, enabled=enabled)
    identity.add_project(tx, project)
    return project


def change_project(tx: Tx, id: str, **changes: Any) -> Project:
    """Change fields of a project. Raises EntityNotFound, and Conflict if the new name is in use."""
    old = project(tx, id)
    changed = replace(old, **changes)
    if changed.name != old.name:
        _free(identity.find_project_by_name(tx, changed.name, DOMAIN_ID), "project", changed.name)
    identity.save_project(tx, changed)
    tx.notify(TOKENS_TOPIC)
    return changed


def delete_project(tx: Tx, id: str) -> None:
    """Raises Conflict unless the project is empty."""
    project(tx, id)
    if left := identity.in_project(tx, id):
        raise Conflict(f"The project has {', '.join(left)}: delete them first.")
    identity.delete_credentials_in(tx, id)
    artifacts.delete_in_project(tx, id)
    servers.delete_relays_in(tx, id)
    identity.delete_project(tx, id)
    tx.notify(TOKENS_TOPIC)


def create_user(tx: Tx, *, name: str, password_hash: str, **fields: Any) -> User:
    """Create a user with these fields of ``model.principal.User``. Raises Conflict if the name is in use."""
    _free(identity.find_user_by_name(tx, name, DOMAIN_ID), "user", name)
    user = User(id=uuid.uuid4().hex, name=name, domain_id=DOMAIN_ID, password_hash=password_hash, **fields)
    identity.add_user(tx, user)
    return user


def change_user(tx: Tx, id: str, **changes: Any) -> User:
    """Change fields of a user. A new password, or disabling the user, revokes all tokens of the user."""
    old = user(tx, id)
    changed = replace(old, **changes)
    if changed.name != old.name:
        _free(identity.find_user_by_name(tx, changed.name, DOMAIN_ID), "user", changed.name)
    identity.save_user(tx, changed)
    if changed.password_hash != old.password_hash or not changed.enabled:
        identity.drop_tokens_of(tx, id)
    tx.notify(TOKENS_TOPIC)
    return changed


def delete_user(tx: Tx, id: str) -> None:
    """Delete a user with its tokens and application credentials. Raises EntityNotFound."""
    user(tx, id)
    identity.drop_tokens_of(tx, id)
    identity.delete_credentials_of(tx, id)
    identity.delete_user(tx, id)
    tx.notify(TOKENS_TOPIC)


def grant(tx: Tx, user_id: str, project_id: str, role: str) -> None:
    """
    Give a user a role in a project, or on the SITE, which Keystone's API calls the system.

    Raises EntityNotFound, and Forbidden for a role on the site other than ``admin``.
    """
    user(tx, user_id)
    if project_id != SITE:
        project(tx, project_id)
    if role not in ROLES:
        raise EntityNotFound(f"Could not find role: {role}.")
    if project_id == SITE and role != ADMIN:
        raise Forbidden(f"The system has one role, {ADMIN}: give others in a project.")
    if role in identity.roles(tx, user_id, project_id):
        return
    identity.add_role(tx, user_id, project_id, role)
    tx.notify(TOKENS_TOPIC)


def revoke(tx: Tx, user_id: str, project_id: str, role: str) -> None:
    """Remove a role of a user in a project, or on the SITE. Raises EntityNotFound."""
    if role not in identity.roles(tx, user_id, project_id):
        place = "system: all" if project_id == SITE else f"project: {project_id}"
        raise EntityNotFound(f"Could not find role assignment with role: {role}, user: {user_id}, {place}.")
    identity.drop_role(tx, user_id, project_id, role)
    tx.notify(TOKENS_TOPIC)


def create_credential(
    tx: Tx,
    requester: Principal,
    *,
    name: str,
    description: str,
    secret_hash: str,
    roles: list[str] | None,
    unrestricted: bool,
    expires_at: datetime | None,
) -> ApplicationCredential:
    """
    Create an application credential for the user and the project of ``requester``.

    ``roles`` None: all roles of the requester. Raises Conflict if the name is in use, Invalid if the requester does not
    have one of the roles.
    """
    user_id, project_id = requester.user_id, requester.project_id
    if project_id is None:
        raise Invalid("an application credential needs a token of its project")
    available = requester.roles & identity.roles(tx, user_id, project_id)
    granted = sorted(available) if roles is None else roles
    if not set(granted) <= available or not granted:
        raise Invalid("an application credential can only have roles that this token has in the project")
    if expires_at is not None and expires_at <= tx.now:
        raise Invalid("expires_at must be in the future")
    _free(identity.find_credential_by_name(tx, user_id, name), "application credential", name)
    credential = ApplicationCredential(
        id=uuid.uuid4().hex,
        user_id=user_id,
        project_id=project_id,
        name=name,
        description=description,
        secret_hash=secret_hash,
        roles=tuple(granted),
        unrestricted=unrestricted,
        expires_at=expires_at,
    )
    identity.add_credential(tx, credential)
    return credential


def delete_credential(tx: Tx, user_id: str, id: str) -> None:
    """Delete a user's application credential. Raises EntityNotFound."""
    credential(tx, user_id, id)
    identity.delete_credential(tx, id)
    tx.notify(TOKENS_TOPIC)


def project(tx: Tx, id: str) -> Project:
    """The project with this id. Raises EntityNotFound."""
    project = identity.project(tx, id)
    if project is None:
        raise EntityNotFound(f"Could not find project: {id}.")
    return project


def user(tx: Tx, id: str) -> User:
    """The user with this id. Raises EntityNotFound."""
    user = identity.user(tx, id)
    if user is None:
        raise EntityNotFound(f"Could not find user: {id}.")
    return user


def credential(tx: Tx, user_id: str, id: str) -> ApplicationCredential:
    """The user's application credential with this id. Raises EntityNotFound."""
    credential = identity.find_credential(tx, id)
    if credential is None or credential.user_id != user_id:
        raise EntityNotFound(f"Could not find Application Credential: {id}.")
    return credential


def _free(taken: object, kind: str, name: str) -> None:
    if taken is not None:
        raise Conflict(f"Conflict occurred attempting to store {kind} - Duplicate entry found with name {name}.")


def find_own_project(tx: Tx, ref: str) -> str:
    """
    Return the id of Stoker's own project with this id, or with this name in the default domain. Raises Invalid.
    """
    project = identity.project(tx, ref) or identity.find_project_by_name(tx, ref, DOMAIN_ID)
    if project is None:
        raise Invalid(f"there is no project {ref!r:.100}: give the id or the name of one (`stoker project list`)")
    return project.id


def check_keystone_project(_: Tx, ref: str) -> str:
    """
    Return ``ref``, which must have the form of an id: a transaction must not wait for Keystone. Raises Invalid.
    """
    if not _KEYSTONE_ID.fullmatch(ref):
        raise Invalid(f"{ref!r:.100} is no project id: give the id (`openstack project show -c id`), not the name")
    return ref
