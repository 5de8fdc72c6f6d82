"""Projects, users, roles and application credentials, by the real clients of Keystone's API."""

from __future__ import annotations

import uuid

import pytest
from keystoneauth1 import exceptions as auth_errors
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from openstack import exceptions
from openstack.connection import Connection

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def somebody(cloud):
    """A member of a project of their own: (user, project, password)."""
    name = uuid.uuid4().hex
    project = cloud.identity.create_project(name=f"project-{name}", description="for a test")
    user = cloud.identity.create_user(name=f"user-{name}", password="horse staple", default_project_id=project.id)
    cloud.identity.assign_project_role_to_user(project, user, "member")
    yield user, project, "horse staple"
    cloud.identity.delete_user(user, ignore_missing=True)
    cloud.identity.delete_project(project, ignore_missing=True)


def connect(auth):
    return Connection(session=Session(auth=auth), region_name="RegionOne")


def logged_in(stoker, user, project, password):
    return connect(v3.Password(f"{stoker.url}/identity/v3", password, user_id=user.id, project_id=project.id))


def test_a_member_works_in_its_own_project(stoker, cloud, somebody):
    user, project, password = somebody
    theirs = logged_in(stoker, user, project, password)
    assert list(theirs.orchestration.stacks()) == []
    config = theirs.orchestration.create_software_config(name="theirs", config="x")
    assert config.id not in [each.id for each in cloud.orchestration.software_configs()]
    with pytest.raises(exceptions.ConflictException, match="software configs"):
        cloud.identity.delete_project(project)
    theirs.orchestration.delete_software_config(config)


def test_an_application_credential_has_the_rights_that_its_user_chose(stoker, cloud, somebody):
    user, project, password = somebody
    theirs = logged_in(stoker, user, project, password)
    made = theirs.identity.create_application_credential(user, "program")
    assert made.secret
    assert theirs.identity.get_application_credential(user, made.id).secret is None
    program = connect(v3.ApplicationCredential(f"{stoker.url}/identity/v3", made.secret, made.id))
    config = program.orchestration.create_software_config(name="by a program")
    program.orchestration.delete_software_config(config)
    with pytest.raises(exceptions.ConflictException):
        theirs.identity.create_application_credential(user, "program")
    theirs.identity.delete_application_credential(user, made.id)
    with pytest.raises((exceptions.HttpException, auth_errors.Unauthorized)):
        list(program.orchestration.stacks())


def test_wrong_secrets_and_names_are_401(stoker, somebody):
    user, _, _ = somebody
    for given in (
        {"application_credential_id": "nobody", "application_credential_secret": "x"},
        {"application_credential_name": "nobody", "user_id": user.id, "application_credential_secret": "x"},
    ):
        auth = v3.ApplicationCredential(auth_url=f"{stoker.url}/identity/v3", **given)
        with pytest.raises(auth_errors.Unauthorized):
            Session(auth=auth).get_token()


def test_a_user_changes_their_own_password(stoker, somebody):
    user, project, password = somebody
    theirs = logged_in(stoker, user, project, password)
    url = f"{stoker.url}/identity/v3/users/{user.id}/password"
    said = {"user": {"original_password": "wrong", "password": "another horse staple"}}
    assert theirs.session.post(url, json=said, raise_exc=False, authenticated=True).status_code == 401
    theirs = logged_in(stoker, user, project, password)
    said["user"]["original_password"] = password
    assert theirs.session.post(url, json=said).status_code == 204
    assert list(logged_in(stoker, user, project, "another horse staple").orchestration.stacks()) == []


@pytest.mark.slow
def test_the_openstack_command_manages_users_and_projects(openstack):
    project = openstack("project", "create", "osc-project", "--description", "of a test", "-f", "json")
    user = openstack(
        "user", "create", "osc-user", "--password", "horse staple", "--project", "osc-project", "-f", "json"
    )
    openstack("role", "add", "--project", "osc-project", "--user", "osc-user", "reader")
    listed = openstack("role", "assignment", "list", "--user", "osc-user", "--names", "-f", "json")
    assert [(each["Role"], each["Project"]) for each in listed] == [("reader", "osc-project@Default")]
    openstack("project", "set", "osc-project", "--description", "another")
    assert openstack("project", "show", "osc-project", "-f", "json")["description"] == "another"
    assert "osc-user" in [each["Name"] for each in openstack("user", "list", "-f", "json")]
    made = openstack(
        "application", "credential", "create", "osc-program", "--expiration", "2100-01-31T12:00:00", "-f", "json"
    )
    assert (made.get("expires_at") or made["Expires At"]) == "2100-01-31T12:00:00.000000"  # without Z, as in Keystone
    assert "osc-program" in [each["Name"] for each in openstack("application", "credential", "list", "-f", "json")]
    openstack("application", "credential", "delete", "osc-program")
    openstack("role", "remove", "--project", "osc-project", "--user", "osc-user", "reader")
    openstack("user", "delete", user["id"])
    openstack("project", "delete", project["id"])
    assert "osc-project" not in [each["Name"] for each in openstack("project", "list", "-f", "json")]


@pytest.mark.slow
def test_the_openstack_command_filters_lists_and_shows_what_they_contain(openstack):
    name = f"filtered-{uuid.uuid4().hex[:8]}"
    openstack("project", "create", name, "--disable")
    openstack("user", "create", name, "--password", "horse staple", "--description", "of a test", "--email", "a@b.c")
    user = openstack("user", "show", name, "-f", "json")
    assert (user["description"], user["email"]) == ("of a test", "a@b.c")
    openstack("user", "set", name, "--email", "d@e.f")
    assert openstack("user", "show", name, "-f", "json")["email"] == "d@e.f"

    def names(*words, key="Name"):
        return [row[key] for row in openstack(*words, "-f", "json")]

    assert name in names("project", "list", "--disabled")
    assert name not in names("project", "list", "--enabled")
    assert name in names("user", "list", "--domain", "default")
    assert names("role", "assignment", "list", "--domain", "default", key="Role") == []
    assert names("endpoint", "list", "--service", "heat", "--interface", "public", key="ID") == ["orchestration-public"]
    assert openstack("service", "show", "orchestration", "-f", "json")["name"] == "heat"
    assert openstack("endpoint", "show", "identity-public", "-f", "json")["interface"] == "public"
    assert openstack("region", "show", "RegionOne", "-f", "json")["region"] == "RegionOne"
    assert openstack("domain", "show", "Default", "-f", "json")["id"] == "default"
    assert names("group", "list") == names("group", "list", "--user", name) == []
    assert names("project", "list", "--tags", "a") == []
    openstack("user", "delete", name)
    openstack("project", "delete", name)


@pytest.mark.parametrize(
    ("path", "ids"),
    [
        ("services?type=orchestration", ["orchestration"]),
        ("services?name=zaqar", ["messaging"]),
        ("endpoints?interface=admin&service_id=identity", ["identity-admin"]),
        ("endpoints?region_id=other", []),
        ("regions?parent_region_id=RegionOne", []),
        ("domains?name=Default", ["default"]),
        ("domains?name=other", []),
        ("domains?enabled=false", []),
        ("users?domain_id=other", []),
        ("users?enabled=false", []),
        ("users?name=admin&domain_id=default", ["admin"]),
        ("projects?domain_id=default&parent_id=default&name=default&enabled=true", ["default"]),
        ("projects?domain_id=other", []),
        ("projects?parent_id=other", []),
        ("projects?is_domain=true", []),
        ("roles?domain_id=default", []),
        ("users/{user}/groups", []),
    ],
)
def test_lists_honor_their_filters(stoker, cloud, path, ids):
    headers = {"X-Auth-Token": stoker.token}
    answer = stoker.request("GET", f"/identity/v3/{path.format(user=cloud.current_user_id)}", headers=headers)
    [entries] = [value for value in answer.body.values() if isinstance(value, list)]
    assert [entry["name"] if path.startswith(("users", "projects")) else entry["id"] for entry in entries] == ids


@pytest.mark.parametrize("path", ["services/no", "endpoints/no", "regions/no", "domains/no"])
def test_unknown_entries_are_404(stoker, path):
    answer = stoker.request("GET", f"/identity/v3/{path}", headers={"X-Auth-Token": stoker.token})
    assert (answer.status, "Could not find" in str(answer.body)) == (404, True)


@pytest.mark.slow
def test_the_openstack_command_appoints_a_site_administrator(stoker, openstack):
    """With ``--system all``; a session with the scope of the system is one then."""
    name = f"site-{uuid.uuid4().hex[:8]}"
    openstack("user", "create", name, "--password", "horse staple")
    openstack("role", "add", "--system", "all", "--user", name, "admin")
    listed = openstack("role", "assignment", "list", "--system", "all", "--names", "-f", "json")
    assert (name + "@Default", "all") in [(each["User"], each["System"]) for each in listed]
    login = {"username": name, "password": "horse staple", "user_domain_name": "Default"}
    auth = v3.Password(f"{stoker.url}/identity/v3", **login, system_scope="all")
    site = connect(auth)
    assert name in [each.name for each in site.identity.users()]
    openstack("role", "remove", "--system", "all", "--user", name, "admin")
    stoker.run("user", "grant", name, "--system")
    assert [(each["system"], each["role"]) for each in stoker.json("user", "roles", name)] == [("all", "admin")]
    stoker.run("user", "revoke", name, "--system")
    assert stoker.json("user", "roles", name) == []
