import { useState } from "preact/hooks";
import { type Assignment, changeIdentity, type Credential, getIdentity, type Project, type User } from "../api/identity";
import { session } from "../api/session";
import { type Action, Actions, DialogButton, FormDialog, SecretDialog } from "../ui/actions";
import { useData } from "../ui/data";
import { RowChoice } from "../ui/filters";
import { ChoiceField, textOf, TextField } from "../ui/form";
import { Card, Data, Empty, Head, State, Time } from "../ui/parts";
import { query, setQuery } from "../ui/router";
import { type Column, Table } from "../ui/table";

interface Directory {
  users: User[];
  projects: Project[];
  assignments: Assignment[];
}

const ROLES = ["reader", "member", "admin"] as const;

/** The users of the site with their roles, and one's own application credentials. */
export function UsersPage() {
  if (session.domain) {
    return (
      <>
        <Head title="Users" />
        <Empty>The users of this site, their roles and their application credentials are those of its Keystone: manage them there.</Empty>
      </>
    );
  }
  return (
    <>
      {session.is_admin ? <Users /> : <Head title="Users" />}
      {!session.is_admin && <Empty>Only administrators of the site see other users.</Empty>}
      <Credentials />
    </>
  );
}

function Users() {
  const loaded = useData("users", async (signal): Promise<Directory> => {
    const [{ users }, { projects }, { role_assignments: assignments }] = await Promise.all([
      getIdentity<{ users: User[] }>("/users", signal),
      getIdentity<{ projects: Project[] }>("/projects", signal),
      getIdentity<{ role_assignments: Assignment[] }>("/role_assignments?include_names=true", signal),
    ]);
    return { users, projects, assignments };
  }, 30);
  const create = async (values: FormData) => {
    const user = { name: textOf(values, "name"), password: String(values.get("password")), email: textOf(values, "email") };
    const { user: created } = (await changeIdentity("POST", "/users", { user })) as { user: User };
    const role = textOf(values, "role");
    if (role) await changeIdentity("PUT", `/projects/${session.project.id}/users/${created.id}/roles/${role}`);
    setQuery({ user: created.id });
    loaded.reload();
  };
  return (
    <>
      <Head title="Users">
        <DialogButton label="New user" class="primary">
          {(close) => (
            <FormDialog title="New user" label="Create" submit={create} onClose={close}>
              <TextField name="name" label="Name" isRequired />
              <TextField name="password" label="Password" type="password" isRequired />
              <TextField name="email" label="Email" />
              <ChoiceField
                name="role"
                label={`Role in ${session.project.name}`}
                value="member"
                choices={[["", "none"], ...ROLES.map((role) => [role, role] as const)]}
              />
            </FormDialog>
          )}
        </DialogButton>
      </Head>
      <Data of={loaded}>
        {(directory) => (
          <>
            <Table label="Users" rows={directory.users} columns={columnsOf(directory)} keyOf={(user) => user.id} empty={null} />
            <Chosen in={directory} reload={loaded.reload} />
          </>
        )}
      </Data>
    </>
  );
}

function columnsOf(directory: Directory): Column<User>[] {
  return [
    { title: "Name", cell: (user) => <RowChoice name="user" value={user.id} text={user.name} />, sort: (user) => user.name },
    { title: "State", cell: (user) => (user.enabled ? <State of="enabled" tone="good" /> : <State of="disabled" tone="off" />), sort: (user) => `${user.enabled}` },
    { title: "Roles", cell: (user) => assignmentsOf(directory, user).map(textOfAssignment).join(", ") || <span class="quiet">none</span> },
    { title: "Email", cell: (user) => user.email ?? "", isWide: true },
  ];
}

function assignmentsOf(directory: Directory, user: User): Assignment[] {
  return directory.assignments.filter((assignment) => assignment.user.id === user.id);
}

function textOfAssignment({ role, scope }: Assignment): string {
  return `${role.id} ${scope.project ? `in ${scope.project.name ?? scope.project.id}` : "of the site"}`;
}

/** The user that the URL names: roles by project, and what an administrator can do. */
function Chosen({ in: directory, reload }: { in: Directory; reload: () => void }) {
  const user = directory.users.find((one) => one.id === query.value.get("user"));
  if (!user) return null;
  const setEnabled = (enabled: boolean) => () => changeIdentity("PATCH", `/users/${user.id}`, { user: { enabled } });
  const actions: Action[] = user.enabled
    ? [{ label: "Disable", question: `${user.name} can no longer log in, and all tokens of ${user.name} become invalid.`, isDangerous: true, run: setEnabled(false) }]
    : [{ label: "Enable", question: `${user.name} can log in again.`, run: setEnabled(true) }];
  const grant = async (values: FormData) => {
    const project = textOf(values, "project");
    const place = project ? `/projects/${project}` : "/system";
    await changeIdentity("PUT", `${place}/users/${user.id}/roles/${textOf(values, "role") ?? ""}`);
    reload();
  };
  return (
    <Card
      title={user.name}
      aside={
        <div class="actions">
          <DialogButton label="Grant a role">
            {(close) => (
              <FormDialog title={`Grant ${user.name} a role`} label="Grant" submit={grant} onClose={close}>
                <ChoiceField
                  name="project"
                  label="Where"
                  value={session.project.id}
                  choices={[...directory.projects.map((project) => [project.id, project.name] as const), ["", "on the whole site (admin only)"]]}
                />
                <ChoiceField name="role" label="Role" value="member" choices={ROLES.map((role) => [role, role] as const)} />
              </FormDialog>
            )}
          </DialogButton>
          {user.id !== session.user_id && <Actions of={actions} onDone={reload} />}
        </div>
      }
    >
      {assignmentsOf(directory, user).length === 0 && <Empty>{user.name} has no role in any project, and sees nothing.</Empty>}
      <ul class="rows">
        {assignmentsOf(directory, user).map((assignment) => (
          <li key={textOfAssignment(assignment)}>
            <span class="row-text">{textOfAssignment(assignment)}</span>
            <Actions of={[revoke(user, assignment)]} onDone={reload} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

function revoke(user: User, { role, scope }: Assignment): Action {
  const place = scope.project ? `/projects/${scope.project.id}` : "/system";
  return {
    label: "Revoke",
    question: `${user.name} is no longer ${textOfAssignment({ role, scope, user })}.`,
    isDangerous: true,
    run: () => changeIdentity("DELETE", `${place}/users/${user.id}/roles/${role.id}`),
  };
}

/** One's own application credentials: logins for programs. */
function Credentials() {
  const [created, setCreated] = useState<Credential | null>(null);
  const path = `/users/${session.user_id}/application_credentials`;
  const loaded = useData("credentials", async (signal) => {
    return (await getIdentity<{ application_credentials: Credential[] }>(path, signal)).application_credentials;
  }, 30);
  const create = async (values: FormData) => {
    const role = textOf(values, "role");
    const body = { name: textOf(values, "name"), expires_at: textOf(values, "expires_at"), roles: role ? [{ name: role }] : undefined };
    const answer = (await changeIdentity("POST", path, { application_credential: body })) as { application_credential: Credential };
    setCreated(answer.application_credential);
    loaded.reload();
  };
  const remove = (credential: Credential): Action => ({
    label: "Delete",
    question: `Programs that log in with ${credential.name} lose their access immediately.`,
    isDangerous: true,
    run: () => changeIdentity("DELETE", `${path}/${credential.id}`),
  });
  const columns: Column<Credential>[] = [
    { title: "Credential", cell: (credential) => credential.name },
    { title: "Id", cell: (credential) => <span class="mono">{credential.id}</span>, isWide: true },
    { title: "Roles", cell: (credential) => credential.roles.map((role) => role.name).join(", ") },
    { title: "Expires", cell: (credential) => <Time at={credential.expires_at} /> },
    ...(session.can_write ? [{ title: "Change", cell: (credential: Credential) => <Actions of={[remove(credential)]} onDone={loaded.reload} /> }] : []),
  ];
  return (
    <Card
      title="Your application credentials"
      aside={
        <DialogButton label="New credential">
          {(close) => (
            <FormDialog title="New application credential" label="Create" submit={create} onClose={close}>
              <TextField name="name" label="Name" placeholder="backup program" isRequired />
              <ChoiceField name="role" label={`Roles in ${session.project.name}`} choices={[["", "all of your roles"], ...ROLES.map((role) => [role, role] as const)]} />
              <TextField name="expires_at" label="Expires" placeholder="2031-05-06T12:00:00" hint="UTC; empty: never" />
            </FormDialog>
          )}
        </DialogButton>
      }
    >
      <Data of={loaded}>
        {(rows) => <Table label="Your application credentials" rows={rows} columns={columns} keyOf={(row) => row.id} empty="Programs log in with application credentials instead of your password. You have none." />}
      </Data>
      {created && (
        <SecretDialog
          title={`The secret of ${created.name}`}
          text={`OS_APPLICATION_CREDENTIAL_ID=${created.id}\nOS_APPLICATION_CREDENTIAL_SECRET=${created.secret ?? ""}`}
          onClose={() => setCreated(null)}
        >
          Copy the id and the secret now: the secret cannot be shown again.
        </SecretDialog>
      )}
    </Card>
  );
}
