import { parseRange, textOf } from "../model/lines";
import { Copy, download } from "../ui/copy";
import { Pills } from "../ui/filters";
import { useTask } from "../ui/form";
import { type Output, readStream } from "../ui/output";
import { Problem } from "../ui/parts";
import { query, setQuery } from "../ui/router";
import type { LogOf } from "./log";

const STREAMS = [
  { value: "", text: "by time" },
  { value: "apart", text: "side by side" },
  { value: "stdout", text: "stdout" },
  { value: "stderr", text: "stderr" },
];

interface BarProps {
  output: Output;
  of: LogOf;
  hits: readonly number[];
  hit: number;
  /** Whether the search is no regular expression. */
  isWrong: boolean;
  onGo: (step: number) => void;
}

/** Search, streams, and what can be done with the output. */
export function LogBar({ output, of: subject, hits, hit, isWrong, onGo }: BarProps) {
  const search = query.value.get("search") ?? "";
  return (
    <div class="log-bar">
      <label class="filter">
        <span>Search</span>
        <input
          type="search"
          class="text-filter"
          value={search}
          onInput={(event) => setQuery({ search: event.currentTarget.value })}
          onKeyDown={(event) => event.key === "Enter" && onGo(event.shiftKey ? -1 : 1)}
        />
      </label>
      <Switch name="regex" label="regular expression" />
      <span class="quiet" role="status">
        {statusOf(output, hits, hit, isWrong, search)}
      </span>
      <Pills name="stream" label="Streams" of={STREAMS} />
      <Switch name="wrap" label="wrap" />
      <Menu output={output} of={subject} />
    </div>
  );
}

function statusOf(output: Output, hits: readonly number[], hit: number, isWrong: boolean, search: string): string {
  if (isWrong) return "invalid regular expression";
  const count = output.store.lines.length.toLocaleString("en");
  if (search === "") return output.hasMore ? `the last ${count} lines` : `${count} lines`;
  if (output.hasMore) return `searching: ${hits.length.toLocaleString("en")} lines so far`;
  return hits.length > 0 ? `${(hit + 1).toLocaleString("en")} of ${hits.length.toLocaleString("en")} lines` : "no matches";
}

/** A choice of yes or no that is in the URL. */
function Switch({ name, label }: { name: string; label: string }) {
  const isOn = query.value.get(name) === "1";
  return (
    <label class="switch">
      <input type="checkbox" checked={isOn} onChange={() => setQuery({ [name]: isOn ? "" : "1" })} />
      {label}
    </label>
  );
}

function Menu({ output, of: subject }: { output: Output; of: LogOf }) {
  const { error, run } = useTask();
  const save = (stream: string) => {
    void run(async () => download(`${subject.id}.${stream}`, await readStream(subject.id, subject.run, stream)));
  };
  const { lines } = output.store;
  const range = parseRange(query.value.get("lines") ?? "");
  const chosen = () => {
    const [from, to] = range!.map((place) => output.store.find(place.stream, place.offset));
    return lines.slice(from, to! + 1).map(textOf).join("\n");
  };
  return (
    <details class="menu">
      <summary>Copy, download</summary>
      <div class="menu-body">
        {range && <Copy label="Copy the chosen lines" text={chosen} />}
        <Copy label={output.hasMore ? "Copy the loaded lines" : "Copy all"} text={() => lines.map(textOf).join("\n")} />
        <Copy
          label="Copy standard error"
          text={() => lines.filter((line) => line.stream === "stderr").map(textOf).join("\n")}
        />
        <Copy label="Copy the command" text={() => `stoker deployment logs ${subject.id}`} />
        <button class="link" onClick={() => save("stdout")}>
          Download standard output
        </button>
        <button class="link" onClick={() => save("stderr")}>
          Download standard error
        </button>
        {error && <Problem error={error} />}
      </div>
    </details>
  );
}
