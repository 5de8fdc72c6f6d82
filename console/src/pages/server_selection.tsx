import { useEffect, useState } from "preact/hooks";
import { change } from "../api/client";
import { session } from "../api/session";
import { selectorOf } from "../model/selector";
import { joinNames, parseLabels } from "../model/targets";
import { Copied } from "../ui/copy";
import { FormDialog, textOf, TextField } from "../ui/form";
import { Dialog } from "../ui/parts";
import { hrefOf, navigate, query, setQuery } from "../ui/router";
import { loadServers, readChosen, type Server, type ServerFilter } from "../ui/servers";

/** Changes of servers at the same time. */
const AT_A_TIME = 4;

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
  label: "Labels …",
  question: "NAME=VALUE sets a label, NAME- removes it.",
  text: { label: "Changes", hint: "tier=web site-", check: parseLabels },
  act: (server, text) => change("PATCH", "/v1/{project}/servers/{server}", { server: server.id }, { labels: parseLabels(text) }),
};
const APPROVE: Bulk = {
  label: "Approve",
  question: "They become servers of this project, and may fetch what is deployed on them.",
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
  const [isExporting, setExporting] = useState(false);
  const chosen = readChosen();
  const count = chosen === "all" ? total : chosen.size;
  if (!session.can_write || total === 0) return null;
  const load = () => loadServers(undefined, chosen === "all" ? filter : { name: [...chosen] });
  const pending = servers.filter((server) => isPending(server) && (chosen === "all" || chosen.has(server.id)));
  return (
    <div class="selection" role="group" aria-label="Chosen servers">
      <span>
        <b>{count.toLocaleString("en")}</b> chosen
      </span>
      {chosen !== "all" && chosen.size < servers.length && (
        <button onClick={() => setQuery({ chosen: servers.map((server) => server.id).join(",") })}>Choose this page</button>
      )}
      {chosen !== "all" && <button onClick={() => setQuery({ chosen: "all" })}>Choose all {total.toLocaleString("en")} that match</button>}
      {count > 0 && (
        <>
          <button onClick={() => setQuery({ chosen: "" })}>Choose none</button>
          <span class="divider" aria-hidden="true" />
          <button onClick={() => void openRun(load, filter, "")}>Run a command …</button>
          <button onClick={() => setBulk(LABELS)}>{LABELS.label}</button>
          <button onClick={() => void openRun(load, filter, "upgrade")}>Upgrade agents …</button>
          {(pending.length > 0 || query.value.get("status") === "PENDING_APPROVAL") && (
            <>
              <button onClick={() => setBulk(APPROVE)}>{APPROVE.label}</button>
              <button class="danger" onClick={() => setBulk(REJECT)}>
                {REJECT.label}
              </button>
            </>
          )}
          <button onClick={() => setExporting(true)}>Export …</button>
        </>
      )}
      {bulk && <BulkDialog bulk={bulk} load={load} onDone={onDone} onClose={() => setBulk(null)} />}
      {isExporting && <ExportDialog load={load} filter={chosen === "all" ? filter : null} onClose={() => setExporting(false)} />}
    </div>
  );
}

/** Opens the page that runs something on the chosen servers; those that a selector alone chooses stay a selector. */
async function openRun(load: () => Promise<Server[]>, filter: ServerFilter, what: string): Promise<void> {
  const hasOnlySelector = filter.selector && !filter.name && !filter.status && filter.agent_outdated === undefined;
  if (readChosen() === "all" && hasOnlySelector) {
    navigate(hrefOf(["run"], { selector: filter.selector!, what }));
    return;
  }
  const names = (await load()).map((server) => server.name);
  navigate(hrefOf(["run"], { servers: joinNames(names), what }));
}

interface DialogProps {
  load: () => Promise<Server[]>;
}

/** Changes the servers one after the other. What has failed is named, and sent again on request. */
function BulkDialog({ bulk, load, onDone, onClose }: DialogProps & { bulk: Bulk; onDone: () => void; onClose: () => void }) {
  const [progress, setProgress] = useState("");
  const title = bulk.label.replace(" …", "");
  const start = async (values: FormData) => {
    const text = textOf(values, "text") ?? "";
    bulk.text?.check(text);
    const servers = (await load()).filter(bulk.concerns ?? (() => true));
    const queue = [...servers];
    const failures: string[] = [];
    const work = async () => {
      for (let server = queue.shift(); server; server = queue.shift()) {
        await bulk.act(server, text).catch((problem: unknown) => failures.push(`${server!.name}: ${(problem as Error).message}`));
        setProgress(`${servers.length - queue.length} of ${servers.length} servers`);
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    onDone();
    if (failures.length > 0) throw new Error(`${failures.length} failed. ${failures.slice(0, 5).join(" ")}`);
    setQuery({ chosen: "" });
  };
  return (
    <FormDialog class="stack" title={title} label={title} isDangerous={bulk.isDangerous} submit={start} onClose={onClose}>
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
  const isWhole = filter?.selector && !filter.name && !filter.status && filter.agent_outdated === undefined;
  const selector = isWhole ? filter.selector : hosts.length === servers.length ? selectorOf(hosts) : null;
  return (
    <Dialog title="Export" onClose={onClose}>
      <p>{servers.length} servers, to paste into a selector, or after a command of stoker.</p>
      {selector && <Copied label="Selector" text={selector} />}
      <Copied label="Names" text={joinNames(servers.map((server) => server.name))} />
      <div class="buttons">
        <button onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}
