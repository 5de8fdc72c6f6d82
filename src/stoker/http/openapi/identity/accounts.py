"""Projects and users, with their roles and credentials."""

from __future__ import annotations

from stoker.http.identity import application_credentials, assignments, ec2_credentials, projects, users
from stoker.http.openapi.operations import Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    FINE_TIME,
    FLAG,
    ID,
    MAP,
    NOTHING,
    REQUESTED,
    TEXT,
    Schema,
    list_of,
    maybe,
    record,
    ref,
    request,
    text,
    under,
    with_description,
)
from stoker.identity.directory import ROLES

_LINKS = record({})
_NAME = {**text(255, 1), "pattern": r"^[^\u0000]*[^\s\u0000][^\u0000]*$"}
_ONLY_NAME: dict[str, Schema] = {"name": REQUESTED}
_PASSWORD = {"type": "string", "minLength": 1, "maxLength": 4096}
_CREDENTIAL: dict[str, Schema] = {
    "id": ID,
    "name": ID,
    "description": maybe(TEXT),
    "project_id": ID,
    "user_id": ID,
    "roles": list_of(record({"id": ID, "name": ID})),
    "unrestricted": FLAG,
    "expires_at": maybe(FINE_TIME),
    "system": NOTHING,
}
_EC2_CREDENTIAL: dict[str, Schema] = {
    "access": ID,
    "user_id": ID,
    "tenant_id": ID,
    "trust_id": NOTHING,
    "links": record({"self": TEXT}),
}
_THING = record({"id": ID}, name=maybe(TEXT), domain=ref("DomainName"))

SCHEMAS: dict[str, Schema] = {
    "Project": record(
        {
            "id": ID,
            "name": TEXT,
            "domain_id": ID,
            "description": TEXT,
            "enabled": FLAG,
            "is_domain": FLAG,
            "parent_id": maybe(ID),
            "tags": list_of(TEXT),
            "options": MAP,
        }
    ),
    "User": record(
        {
            "id": ID,
            "name": TEXT,
            "domain_id": ID,
            "default_project_id": maybe(TEXT),
            "enabled": FLAG,
            "password_expires_at": NOTHING,
            "options": MAP,
        }
    ),
    "Role": record({"id": ID, "name": ID, "domain_id": NOTHING, "description": maybe(TEXT), "options": MAP}),
    "RoleAssignment": record(
        {
            "role": {"anyOf": [record({"id": ID}), ref("Role")]},
            "user": _THING,
            "scope": {"anyOf": [record({"project": _THING}), record({"system": record({"all": FLAG})})]},
            "links": record({"assignment": TEXT}),
        }
    ),
    "ApplicationCredential": record(_CREDENTIAL),
    "NewApplicationCredential": record({**_CREDENTIAL, "secret": with_description(TEXT, "Shown this once")}),
    "Ec2Credential": record({**_EC2_CREDENTIAL, "secret": with_description(NOTHING, "Shown only where it is made")}),
    "NewEc2Credential": record({**_EC2_CREDENTIAL, "secret": with_description(ID, "Shown this once")}),
}


def _list(noun: str, schema: str) -> Schema:
    return record({noun: list_of(ref(schema)), "links": _LINKS})


PROJECTS = Noun(
    "Projects",
    {
        projects.index: Operation(
            summary="The projects: all for an administrator of the site, for everybody else their own",
            query=_ONLY_NAME,
            answers=ok(_list("projects", "Project")),
        ),
        projects.create: Operation(
            summary="Make a project",
            body=request({"project": request({"name": _NAME}, description=maybe(text(65535)), enabled=FLAG)}),
            answers=ok(under("project", ref("Project")), 201),
            errors=(409,),
        ),
        projects.show: Operation(summary="One project", answers=ok(under("project", ref("Project")))),
        projects.change: Operation(
            summary="Change a project",
            body=request({"project": request(name=_NAME, description=maybe(text(65535)), enabled=FLAG)}),
            answers=ok(under("project", ref("Project"))),
            errors=(409,),
        ),
        projects.delete: Operation(summary="Delete an empty project", answers=empty(), errors=(409,)),
    },
    SCHEMAS,
)

USERS = Noun(
    "Users",
    {
        users.index: Operation(summary="The users", query=_ONLY_NAME, answers=ok(_list("users", "User"))),
        users.create: Operation(
            summary="Make a user",
            body=request(
                {
                    "user": request(
                        {"name": _NAME, "password": _PASSWORD}, enabled=FLAG, default_project_id=maybe(text(255))
                    )
                }
            ),
            answers=ok(under("user", ref("User")), 201),
            errors=(404, 409),
        ),
        users.show: Operation(summary="One user", answers=ok(under("user", ref("User")))),
        users.change: Operation(
            summary="Change a user",
            body=request(
                {"user": request(name=_NAME, password=_PASSWORD, enabled=FLAG, default_project_id=maybe(text(255)))}
            ),
            answers=ok(under("user", ref("User"))),
            errors=(409,),
        ),
        users.delete: Operation(summary="Delete a user", answers=empty(), errors=(409,)),
        users.change_password: Operation(
            summary="Change one's own password; all tokens end",
            body=request({"user": request({"password": _PASSWORD, "original_password": TEXT})}),
            answers=empty(),
        ),
        users.projects: Operation(
            summary="The projects that a user has a role in", answers=ok(_list("projects", "Project"))
        ),
    },
)

ROLES_AND_GRANTS = Noun(
    "Roles",
    {
        assignments.roles: Operation(summary="The roles", query=_ONLY_NAME, answers=ok(_list("roles", "Role"))),
        assignments.show_role: Operation(summary="One role", answers=ok(under("role", ref("Role")))),
        assignments.create_role: Operation(
            summary=f"Always refused: the roles are {', '.join(ROLES)}", body=MAP, body_needed=False, answers={}
        ),
        assignments.index: Operation(
            summary="Who has which role where",
            query={
                "user.id": REQUESTED,
                "scope.project.id": REQUESTED,
                "scope.system": with_description(REQUESTED, "Only those on the system"),
                "role.id": REQUESTED,
                "include_names": with_description(REQUESTED, "With names"),
            },
            answers=ok(_list("role_assignments", "RoleAssignment")),
        ),
        assignments.of_user: Operation(summary="A user's roles in a project", answers=ok(_list("roles", "Role"))),
        assignments.check: Operation(summary="Whether a user has a role in a project", answers=empty()),
        assignments.grant: Operation(summary="Give a user a role in a project", answers=empty()),
        assignments.revoke: Operation(summary="Take a user's role in a project", answers=empty()),
        assignments.of_user_on_system: Operation(
            summary="A user's roles on the system", answers=ok(_list("roles", "Role"))
        ),
        assignments.check_on_system: Operation(summary="Whether a user has a role on the system", answers=empty()),
        assignments.grant_on_system: Operation(summary="Let a user administer the site", answers=empty()),
        assignments.revoke_on_system: Operation(
            summary="Let a user administer the site no longer; not oneself", answers=empty()
        ),
    },
)

CREDENTIALS = Noun(
    "Credentials",
    {
        application_credentials.index: Operation(
            summary="A user's application credentials",
            query=_ONLY_NAME,
            answers=ok(_list("application_credentials", "ApplicationCredential")),
        ),
        application_credentials.create: Operation(
            summary="Make an application credential for the token's project",
            body=request(
                {
                    "application_credential": request(
                        {"name": _NAME},
                        description=maybe(text(65535)),
                        secret=maybe(text(4096)),
                        roles={"type": ["array", "null"], "items": request(id=TEXT, name=TEXT)},
                        unrestricted=FLAG,
                        expires_at=with_description(maybe(TEXT), "A time such as 2030-01-31T12:00:00"),
                    )
                }
            ),
            answers=ok(under("application_credential", ref("NewApplicationCredential")), 201),
            errors=(409,),
        ),
        application_credentials.show: Operation(
            summary="One application credential",
            answers=ok(under("application_credential", ref("ApplicationCredential"))),
        ),
        application_credentials.delete: Operation(summary="Delete an application credential", answers=empty()),
        ec2_credentials.index: Operation(
            summary="A user's EC2 credentials", answers=ok(_list("credentials", "Ec2Credential"))
        ),
        ec2_credentials.create: Operation(
            summary="Make an EC2 credential",
            body=request(tenant_id=with_description(maybe(text(255)), "For this project; else for the token's")),
            answers=ok(under("credential", ref("NewEc2Credential")), 201),
        ),
        ec2_credentials.show: Operation(
            summary="One EC2 credential", answers=ok(under("credential", ref("Ec2Credential")))
        ),
        ec2_credentials.delete: Operation(summary="Delete an EC2 credential", answers=empty()),
    },
)
