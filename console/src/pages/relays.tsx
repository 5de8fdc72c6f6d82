import { useState } from "preact/hooks";
import { change, type Schemas } from "../api/client";
import { session } from "../api/session";
import { Actions, DialogButton, FormDialog, SecretDialog } from "../ui/actions";
import { useGet } from "../ui/data";
import { textOf, TextField } from "../ui/form";
import { Data, Head, State, Time } from "../ui/parts";
import { type Column, Table } from "../ui/table";

type Relay = Schemas["ShownRelay"];
type Created = Schemas["CreatedRelay"];

/** The relays of the project: programs of remote sites that serve the agents there over a few connections. */
export function RelaysPage() {
  const [created, setCreated] = useState<Created | null>(null);
  const loaded = useGet("/v1/{project}/relays");
  const create = async (values: FormData) => {
    const body = { name: textOf(values, "name"), url: textOf(values, "url"), ca: textOf(values, "ca") };
    setCreated(((await change("POST", "/v1/{project}/relays", {}, body)) as { relay: Created }).relay);
    loaded.reload();
  };
  return (
    <>
      <Head title="Relays">
        <DialogButton label="New relay" class="primary">
          {(close) => (
            <FormDialog title="New relay" label="Create" submit={create} onClose={close}>
              <TextField name="name" label="Name" placeholder="site1" isRequired />
              <TextField name="url" label="URL" placeholder="https://relay.site1.example:8005" hint="Where the agents of the site reach the relay" isRequired />
              <TextField name="ca" label="Certificate of its CA" rows={3} class="mono" placeholder="PEM; empty if the machines trust it" />
            </FormDialog>
          )}
        </DialogButton>
      </Head>
      <Data of={loaded}>
        {({ relays }) => (
          <Table
            label="Relays"
            rows={relays}
            columns={columnsOf(loaded.reload)}
            keyOf={(relay) => relay.id}
            empty="All agents reach Stoker directly. A relay serves the agents of a remote site over a few connections."
          />
        )}
      </Data>
      {created && (
        <SecretDialog title={`The key of ${created.name}`} text={created.key} onClose={() => setCreated(null)}>
          Copy the key now: it cannot be shown again. On the machine of the relay, <code>stoker relay install</code> and{" "}
          <code>stoker relay run</code> read it.
        </SecretDialog>
      )}
    </>
  );
}

function columnsOf(reload: () => void): Column<Relay>[] {
  const remove = (relay: Relay) => ({
    label: "Delete",
    question: `The key of ${relay.name} becomes invalid. Its agents keep their keys, but have to reach Stoker at another URL.`,
    isDangerous: true,
    run: () => change("DELETE", "/v1/{project}/relays/{relay}", { relay: relay.id }),
  });
  return [
    { title: "Name", cell: (relay) => relay.name, sort: (relay) => relay.name },
    { title: "State", cell: (relay) => <State of={relay.online ? "ONLINE" : relay.last_seen ? "OFFLINE" : "NEVER_SEEN"} />, sort: (relay) => `${relay.online}` },
    { title: "Agents", cell: (relay) => relay.agents, sort: (relay) => relay.agents, isNumber: true },
    { title: "Version", cell: (relay) => relay.version ?? "", sort: (relay) => relay.version ?? "", isWide: true },
    { title: "URL", cell: (relay) => relay.url, isWide: true },
    { title: "Last seen", cell: (relay) => <Time at={relay.last_seen} />, sort: (relay) => relay.last_seen ?? "", isWide: true },
    { title: "Created by", cell: (relay) => relay.created_by ?? "", isWide: true },
    ...(session.can_write ? [{ title: "Change", cell: (relay: Relay) => <Actions of={[remove(relay)]} onDone={reload} /> }] : []),
  ];
}
