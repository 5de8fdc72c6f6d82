"""Queries for application credentials."""

from __future__ import annotations

from collections.abc import Callable

from stoker.model.principal import ApplicationCredential
from stoker.store.query import execute
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_CREDENTIALS = Repository(ApplicationCredential, "application_credentials")
add, find, delete = _CREDENTIALS.add, _CREDENTIALS.find, _CREDENTIALS.delete
find_by_name: Callable[[Tx, str, str], ApplicationCredential | None] = _CREDENTIALS.finder(
    "user_id = :user_id AND name = :name"
)
#: Return the application credentials of a user, sorted by name.
of_user: Callable[[Tx, str], list[ApplicationCredential]] = _CREDENTIALS.lister("user_id = :user_id ORDER BY name")
delete_of_user: Callable[[Tx, str], None] = execute("DELETE FROM application_credentials WHERE user_id = :user_id")
#: Delete the application credentials that are valid in a project.
delete_in_project: Callable[[Tx, str], None] = execute(
    "DELETE FROM application_credentials WHERE project_id = :project_id"
)
