"""/identity/v3/roles and role_assignments: the roles of users in projects and on the system."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, field

from stoker.http.contracts import operation
from stoker.http.decoders import convert
from stoker.http.fields import Absent, Answer, Id, Name, Query, Text, fill
from stoker.http.identity.types import DOMAIN, NO_LINKS, DomainName, NameQuery, NoLinks
from stoker.http.request_context import RequestContext, Response
from stoker.identity import administration
from stoker.identity.directory import ROLES
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import identity
from stoker.store.tx import Tx


class Role(Answer):
    id: Id
    name: Id
    domain_id: None
    description: str | None
    options: dict[str, Any]


class AssignmentQuery(Query):
    user: Text | None = field(name="user.id", default=None)
    project: Text | None = field(name="scope.project.id", default=None)
    system: Annotated[Text | None, Meta(description="Only the roles on the system")] = field(
        name="scope.system", default=None
    )
    role: Text | None = field(name="role.id", default=None)
    include_names: Annotated[Text | None, Meta(description="The assignments contain names")] = None

    def matches(self, user_id: str, role: str) -> bool:
        return self.user in (None, user_id) and self.role in (None, role)


class AssignedRole(Answer):
    """With ``include_names``, all members of the role."""

    id: Id
    name: Id | Absent = UNSET
    domain_id: Absent | None = UNSET
    description: str | Absent | None = UNSET
    options: dict[str, Any] | Absent = UNSET


class NamedId(Answer):
    """With ``include_names``, also the name and the domain."""

    id: Id
    name: str | Absent | None = UNSET
    domain: DomainName | Absent = UNSET


class AssignmentScope(Answer):
    project: NamedId | Absent = UNSET
    system: dict[Literal["all"], bool] | Absent = UNSET


class AssignmentLink(Answer):
    assignment: str


class RoleAssignment(Answer):
    role: AssignedRole
    user: NamedId
    scope: AssignmentScope
    links: AssignmentLink


@operation(200, {"roles": list[Role], "links": NoLinks})
def roles(_: RequestContext, query: NameQuery) -> Response:
    """List the roles."""
    return _respond(role for role in ROLES if query.name in (None, role))


@operation(200, {"role": Role})
def show_role(request: RequestContext) -> Response:
    """Return a role."""
    if request.path["role_id"] not in ROLES:
        raise EntityNotFound(f"Could not find role: {request.path['role_id']}.")
    return Response(200, {"role": _role(request.path["role_id"])})


@operation(201, {"role": Role})
def create_role(_: RequestContext) -> Response:
    """Always refuse: the set of roles is fixed. Raises Forbidden."""
    administration.create_role()


@operation(200, {"role_assignments": list[RoleAssignment], "links": NoLinks})
def index(request: RequestContext, query: AssignmentQuery) -> Response:
    """List the role assignments in projects and on the system that match the query's filters."""
    named = query.include_names not in (None, "0", "false", "False")
    with request.app.store.read() as tx:
        in_projects = identity.list_assignments(tx) if query.system is None else []
        on_system = identity.list_system_assignments(tx) if query.project is None else []
        names = {user.id: user.name for user in identity.list_users(tx)} if named else {}
        names |= {project.id: project.name for project in identity.list_projects(tx)} if named else {}
    root = f"{request.app.settings.public_url}/identity/v3"

    def ref(id: str) -> NamedId:
        return NamedId(id=id, name=names.get(id), domain=DOMAIN) if named else NamedId(id=id)

    def render(user_id: str, role: str, scope: AssignmentScope, place: str) -> RoleAssignment:
        return RoleAssignment(
            role=fill(AssignedRole, _role(role)) if named else AssignedRole(id=role),
            user=ref(user_id),
            scope=scope,
            links=AssignmentLink(assignment=f"{root}/{place}/users/{user_id}/roles/{role}"),
        )

    assignments = [
        render(user_id, role, AssignmentScope(project=ref(project_id)), f"projects/{project_id}")
        for user_id, project_id, role in in_projects
        if query.matches(user_id, role) and query.project in (None, project_id)
    ]
    assignments += [
        render(user_id, role, AssignmentScope(system={"all": True}), "system")
        for user_id, role in on_system
        if query.matches(user_id, role)
    ]
    return Response(200, {"role_assignments": assignments, "links": NO_LINKS})


@operation(200, {"roles": list[Role], "links": NoLinks})
def of_user(request: RequestContext) -> Response:
    """List the roles of a user in a project. Raises EntityNotFound."""
    with request.app.store.read() as tx:
        roles = identity.roles(tx, request.path["user_id"], request.path["project_id"])
        if not roles:  # a user without a role in the project must not learn whether the project exists
            _refuse_unknown(tx, request)
    return _respond(sorted(roles))


@operation(204)
def check(request: RequestContext) -> Response:
    """Return 204 if the user has the role in the project. Raises EntityNotFound otherwise."""
    with request.app.store.read() as tx:
        roles = identity.roles(tx, request.path["user_id"], request.path["project_id"])
    return _respond_to_check(request, roles)


@operation(204)
def grant(request: RequestContext) -> Response:
    """Give a user a role in a project."""
    request.app.store.write(lambda tx: administration.grant(tx, *_grant(request)))
    return Response(204)


@operation(204)
def revoke(request: RequestContext) -> Response:
    """Remove a role of a user in a project."""
    request.app.store.write(lambda tx: administration.revoke(tx, *_grant(request)))
    return Response(204)


@operation(200, {"roles": list[Role], "links": NoLinks})
def of_user_on_system(request: RequestContext) -> Response:
    """List the roles of a user on the system."""
    with request.app.store.read() as tx:
        return _respond(sorted(identity.system_roles(tx, request.path["user_id"])))


@operation(204)
def check_on_system(request: RequestContext) -> Response:
    """Return 204 if the user has the role on the system. Raises EntityNotFound otherwise."""
    with request.app.store.read() as tx:
        return _respond_to_check(request, identity.system_roles(tx, request.path["user_id"]))


@operation(204)
def grant_on_system(request: RequestContext) -> Response:
    """Give a user a role on the system."""
    user_id, role = request.path["user_id"], request.path["role_id"]
    request.app.store.write(lambda tx: administration.grant_system(tx, user_id, role))
    return Response(204)


@operation(204)
def revoke_on_system(request: RequestContext) -> Response:
    """Remove a system role. Users cannot remove their own, so that a site always keeps an administrator."""
    user_id, role = request.path["user_id"], request.path["role_id"]
    if user_id == request.user.user_id:
        raise Invalid("you cannot remove your own system role: another administrator of the site has to do it")
    request.app.store.write(lambda tx: administration.revoke_system(tx, user_id, role))
    return Response(204)


def _refuse_unknown(tx: Tx, request: RequestContext) -> None:
    """Raises EntityNotFound if the user or the project does not exist, or if the caller may not know."""
    if request.limited_to is not None:
        raise EntityNotFound(f"Could not find project: {request.path['project_id']}.")
    administration.user(tx, request.path["user_id"])
    administration.project(tx, request.path["project_id"])


def _respond_to_check(request: RequestContext, roles: frozenset[str]) -> Response:
    """Return 204 if the path's role is among ``roles``. Raises EntityNotFound otherwise."""
    if request.path["role_id"] not in roles:
        raise EntityNotFound("Could not find role assignment.")
    return Response(204)


def _grant(request: RequestContext) -> tuple[str, str, str]:
    return request.path["user_id"], request.path["project_id"], convert(request.path["role_id"], Name, "role")


def _respond(roles: Iterable[str]) -> Response:
    return Response(200, {"roles": [_role(role) for role in roles], "links": NO_LINKS})


def _role(role: str) -> Role:
    return Role(id=role, name=role, domain_id=None, description=None, options={})
