import { useEffect, useState } from "preact/hooks";
import { ApiError, change } from "../api/client";
import { session } from "../api/session";
import { quote } from "../model/selector";
import { joinNames, parseLabels } from "../model/targets";
import { Copied } from "../ui/copied";
import { Dialog, Problem } from "../ui/parts";
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
      {bulk && (
        <BulkDialog
          bulk={bulk}
          load={load}
          onClose={(isDone) => {
            setBulk(null);
            if (isDone) {
              setQuery({ chosen: "" });
              onDone();
            }
          }}
        />
      )}
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

function BulkDialog({ bulk, load, onClose }: DialogProps & { bulk: Bulk; onClose: (isDone: boolean) => void }) {
  const [text, setText] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [progress, setProgress] = useState<{ done: number; total: number; failures: string[] } | null>(null);
  const isOver = progress !== null && progress.done === progress.total;
  const start = async () => {
    try {
      bulk.text?.check(text);
      const servers = (await load()).filter(bulk.concerns ?? (() => true));
      const state = { done: 0, total: servers.length, failures: [] as string[] };
      setProgress({ ...state });
      const queue = [...servers];
      const work = async () => {
        for (let server = queue.shift(); server; server = queue.shift()) {
          await bulk.act(server, text).catch((problem: unknown) => state.failures.push(`${server!.name}: ${(problem as Error).message}`));
          state.done++;
          setProgress({ ...state });
        }
      };
      await Promise.all(Array.from({ length: AT_A_TIME }, work));
      if (state.failures.length === 0) onClose(true);
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError((problem as Error).message, 0, ""));
    }
  };
  return (
    <Dialog title={bulk.label.replace(" …", "")} onClose={() => onClose(isOver)}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <p>{bulk.question}</p>
        {bulk.text && (
          <label>
            {bulk.text.label}
            <input autofocus placeholder={bulk.text.hint} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
        )}
        {error && <Problem error={error} />}
        {progress && (
          <div role="status">
            <p>
              {progress.done} of {progress.total} servers
              {progress.failures.length > 0 && `, ${progress.failures.length} failed`}
            </p>
            {progress.failures.length > 0 && (
              <ul class="rows bad">
                {progress.failures.slice(0, 5).map((failure) => (
                  <li key={failure}>{failure}</li>
                ))}
              </ul>
            )}
          </div>
        )}
        <div class="buttons">
          {!isOver && (
            <button class={bulk.isDangerous ? "danger" : "primary"} disabled={progress !== null}>
              {bulk.label.replace(" …", "")}
            </button>
          )}
          <button type="button" onClick={() => onClose(isOver)}>
            {isOver ? "Close" : "Leave it"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function ExportDialog({ load, filter, onClose }: DialogProps & { filter: ServerFilter | null; onClose: () => void }) {
  const [servers, setServers] = useState<Server[] | null>(null);
  useEffect(() => void load().then(setServers), []);
  if (servers === null) return null;
  const hosts = servers.flatMap((server) => (server.hostname ? [quote(server.hostname)] : []));
  const isWhole = filter?.selector && !filter.name && !filter.status && filter.agent_outdated === undefined;
  const selector = isWhole ? filter.selector : hosts.length === servers.length ? `hostname in (${hosts.join(", ")})` : null;
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
