import { useEffect, useState } from "preact/hooks";
import { change } from "../api/client";
import { session } from "../api/session";
import { changeAll, describeFailures } from "../model/bulk";
import { selectorOf } from "../model/selector";
import { joinNames, parseLabels } from "../model/targets";
import { DialogButton, FormDialog } from "../ui/actions";
import { Copied } from "../ui/copy";
import { textOf, TextField } from "../ui/form";
import { Dialog } from "../ui/parts";
import { navigate, query, setQuery } from "../ui/router";
import { loadServers, readChosen, type Server, type ServerFilter } from "../ui/servers";

/** A change of each chosen server. */
interface Bulk {
  label: string;
  question: string;
  isDangerous?: boolean;
  /** Whether the change concerns a server. */
  concerns?: (server: Server) => boolean;
  act: (server: Server, text: string) => Promise<unknown>;
  /** The label of a text that the change needs, with an example; `check` throws an Error with a sentence. */
  text?: { label: string; hint: string; check: (text: string) => void };
}

const isPending = (server: Server) => server.status === "PENDING_APPROVAL";

const LABELS: Bulk = {
  label: "Change labels …",
  question: "NAME=VALUE sets a label, NAME- removes it.",
  text: { label: "Changes", hint: "tier=web site-", check: parseLabels },
  act: (server, text) => change("PATCH", "/v1/{project}/servers/{server}", { server: server.id }, { labels: parseLabels(text) }),
};
const APPROVE: Bulk = {
  label: "Approve",
  question: "They become servers of this project, and can fetch what is deployed on them.",
  concerns: isPending,
  act: (server) => change("POST", "/v1/{project}/servers/{server}/approve", { server: server.id }, {}),
};
const REJECT: Bulk = {
  label: "Reject",
  question: "They do not become servers. Their agents have to enroll again.",
  isDangerous: true,
  concerns: isPending,
  act: (server) => change("POST", "/v1/{project}/servers/{server}/reject", { server: server.id }, {}),
};

interface Props {
  servers: readonly Server[];
  filter: ServerFilter;
  total: number;
  onDone: () => void;
}

/** What can be done with the chosen servers of a list. */
export function SelectionBar({ servers, filter, total, onDone }: Props) {
  const [bulk, setBulk] = useState<Bulk | null>(null);
  const chosen = readChosen();
  const count = chosen === "all" ? total : chosen.size;
  if (!session.can_write) return null;
  const load = () => loadServers(undefined, chosen === "all" ? filter : { name: [...chosen] });
  const isApproving = query.value.get("status") === "PENDING_APPROVAL" || servers.some((server) => isPending(server) && (chosen === "all" || chosen.has(server.id)));
  return (
    <>
      {total > 0 && (
        <div class="selection" role="group" aria-label="Selected servers">
          <span>
            <b>{count.toLocaleString("en")}</b> selected
          </span>
          {chosen !== "all" && chosen.size < servers.length && (
            <button onClick={() => setQuery({ chosen: servers.map((server) => server.id).join(",") })}>Select this page</button>
          )}
          {chosen !== "all" && <button onClick={() => setQuery({ chosen: "all" })}>Select all {total.toLocaleString("en")} that match</button>}
          {count > 0 && (
            <>
              <button onClick={() => setQuery({ chosen: "" })}>Select none</button>
              <span class="divider" aria-hidden="true" />
              <button onClick={() => void openRun(load, filter, "")}>Run a command …</button>
              <button onClick={() => void openRun(load, filter, "upgrade")}>Upgrade agents …</button>
              {[LABELS, ...(isApproving ? [APPROVE, REJECT] : [])].map((one) => (
                <button key={one.label} class={one.isDangerous ? "danger" : ""} onClick={() => setBulk(one)}>
                  {one.label}
                </button>
              ))}
              <DialogButton label="Export …">
                {(close) => <ExportDialog load={load} filter={chosen === "all" ? filter : null} onClose={close} />}
              </DialogButton>
            </>
          )}
        </div>
      )}
      {/* not within the bar, which a change can make disappear */}
      {bulk && <BulkDialog bulk={bulk} load={load} onDone={onDone} onClose={() => setBulk(null)} />}
    </>
  );
}

/** Returns whether a filter is a selector alone, which chooses the same servers elsewhere. */
function isSelector(filter: ServerFilter): boolean {
  return Boolean(filter.selector) && !filter.name && !filter.status && filter.agent_outdated === undefined;
}

/** Opens the page that runs something on the selected servers; those that a selector alone chooses stay a selector. */
async function openRun(load: () => Promise<Server[]>, filter: ServerFilter, what: string): Promise<void> {
  if (readChosen() === "all" && isSelector(filter)) navigate(["run"], { selector: filter.selector!, what });
  else navigate(["run"], { servers: joinNames((await load()).map((server) => server.name)), what });
}

interface DialogProps {
  load: () => Promise<Server[]>;
}

/** Changes the servers. Those that have failed are named, and changed again on request. */
function BulkDialog({ bulk, load, onDone, onClose }: DialogProps & { bulk: Bulk; onDone: () => void; onClose: () => void }) {
  const [progress, setProgress] = useState("");
  const [failed, setFailed] = useState<readonly Server[]>([]);
  const [controller] = useState(() => new AbortController());
  useEffect(() => () => controller.abort(), []);
  const title = bulk.label.replace(" …", "");
  const start = async (values: FormData) => {
    const text = textOf(values, "text") ?? "";
    bulk.text?.check(text);
    setProgress("Loading the servers …");
    const servers = failed.length > 0 ? failed : (await load()).filter(bulk.concerns ?? (() => true));
    const report = (count: number) => setProgress(`${count.toLocaleString("en")} of ${servers.length.toLocaleString("en")} servers`);
    const failures = await changeAll(servers, (server) => bulk.act(server, text), report, controller.signal);
    onDone();
    setFailed(failures.map(({ item }) => item));
    if (failures.length > 0) throw new Error(describeFailures(failures, servers.length));
    if (!controller.signal.aborted) setQuery({ chosen: "" });
  };
  return (
    <FormDialog class="stack" title={title} label={failed.length > 0 ? "Try again" : title} isDangerous={bulk.isDangerous} submit={start} onClose={onClose}>
      <p>{bulk.question}</p>
      {bulk.text && <TextField name="text" label={bulk.text.label} placeholder={bulk.text.hint} isFirst />}
      {progress && <p role="status">{progress}</p>}
    </FormDialog>
  );
}

function ExportDialog({ load, filter, onClose }: DialogProps & { filter: ServerFilter | null; onClose: () => void }) {
  const [servers, setServers] = useState<Server[] | null>(null);
  useEffect(() => void load().then(setServers), []);
  if (servers === null) return null;
  const hosts = servers.flatMap((server) => (server.hostname ? [server.hostname] : []));
  const selector = filter && isSelector(filter) ? filter.selector : hosts.length === servers.length ? selectorOf(hosts) : null;
  return (
    <Dialog title="Export" onClose={onClose}>
      <p>{servers.length === 1 ? "1 server" : `${servers.length.toLocaleString("en")} servers`}, to paste into a selector, or into a stoker command.</p>
      {selector && <Copied label="Selector" text={selector} />}
      <Copied label="Names" text={joinNames(servers.map((server) => server.name))} />
      <div class="buttons">
        <button onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}
