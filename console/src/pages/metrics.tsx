import { useMemo, useRef } from "preact/hooks";
import { send } from "../api/client";
import { root } from "../api/session";
import { meanOf, parseMetrics, rateOf, type Reading, sumOf } from "../model/metrics";
import { useData } from "../ui/data";
import { Card, Data, Head } from "../ui/parts";
import { Plot, textOf } from "../views/plot";

/** Seconds between two readings, and readings that the page keeps. */
const SECONDS = 3;
const MOST = 600;

/** How busy the service is, since the page was opened; a monitoring system keeps more. */
export function MetricsPage() {
  const readings = useRef<Reading[]>([]);
  const loaded = useData("metrics", async (signal) => {
    const response = await send("GET", `${root}api/metrics`, undefined, signal, { Accept: "text/plain" });
    readings.current = [...readings.current, { at: Date.now(), samples: parseMetrics(await response.text()) }].slice(-MOST);
    return readings.current;
  }, SECONDS);
  return (
    <>
      <Head title="Metrics" />
      <p class="lead">Since you opened this page, for all processes behind this address. For the past, use a monitoring system that reads /metrics.</p>
      <Data of={loaded}>{(all) => <Plots readings={all} />}</Data>
    </>
  );
}

function Plots({ readings }: { readings: readonly Reading[] }) {
  const shown = useMemo(() => {
    const pairs = readings.slice(1).map((reading, index) => [readings[index]!, reading] as const);
    const agents = (status: string) => pairs.map(([, after]) => sumOf(after.samples, "stoker_agents", { status }));
    const mean = (name: string) => pairs.map(([before, after]) => milliseconds(meanOf(before, after, name)));
    const rate = (name: string, labels = {}) => pairs.map(([before, after]) => rateOf(before, after, name, labels));
    return {
      times: pairs.map(([, after]) => after.at),
      requests: [{ label: "requests", color: "accent", values: rate("stoker_http_requests_total") }],
      runs: [
        { label: "delivered", color: "accent", values: rate("stoker_delivery_seconds_count") },
        { label: "results", color: "good", values: rate("stoker_signal_seconds_count") },
      ],
      latency: [
        { label: "requests", color: "accent", values: mean("stoker_http_handler_seconds") },
        { label: "commits", color: "warn", values: mean("stoker_commit_seconds") },
      ],
      agents: [
        { label: "online", color: "good", values: agents("ONLINE") },
        { label: "offline", color: "bad", values: agents("OFFLINE") },
      ],
    };
  }, [readings]);
  if (shown.times.length === 0) return <p class="quiet">The first point needs two readings, {SECONDS} s apart.</p>;
  const plots = [
    ["Requests", "per second", shown.requests],
    ["Runs", "per second", shown.runs],
    ["Latency", "ms", shown.latency],
    ["Agents", "servers", shown.agents],
  ] as const;
  return (
    <div class="columns plots">
      {plots.map(([title, unit, series]) => (
        <Card key={title} title={title} aside={<span>{unit}, now {series.map((one) => textOf(one.values[one.values.length - 1])).join(" and ")}</span>}>
          <Plot label={title} unit={unit} times={shown.times} series={series} />
        </Card>
      ))}
    </div>
  );
}

function milliseconds(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1000;
}
