import { useMemo, useRef, useState } from "preact/hooks";
import type { Drawing, GraphNode, Vertex } from "../model/graph";
import { layOut, type Edge, type Layout, type Place, type Requirements } from "../model/layout";
import { SYMBOLS, toneOf, wordsOf, type Tone } from "../model/state";
import { durationOf, parseTime } from "../model/time";
import { download } from "../ui/copy";
import { now } from "../ui/parts";

const WIDTH = 236;
const HEIGHT = 44;
const GAP_X = 56;
const GAP_Y = 14;

/** The resources of a stack, each right of those that it depends on. Arrow keys follow the edges. */
export function Graph({ drawing, names, onOpen }: { drawing: Drawing; names: ReadonlyMap<string, string>; onOpen: (vertex: Vertex) => void }) {
  const { vertices, requires } = drawing;
  const previous = useRef<Layout | undefined>(undefined);
  const svg = useRef<SVGSVGElement>(null);
  const structure = [...requires].map(([name, others]) => `${name}:${others.join()}`).join(";");
  // States change often, the structure seldom: a place is computed once for a structure.
  const layout = useMemo(() => (previous.current = layOut(requires, previous.current)), [structure]);
  const [current, setCurrent] = useState("");
  const stop = vertices.has(current) ? current : [...vertices.keys()][0];

  const move = (event: KeyboardEvent, vertex: Vertex) => {
    const next = neighborOf(event.key, vertex.key, layout, requires);
    if (event.key === "Enter" || event.key === " ") onOpen(vertex);
    else if (next) {
      setCurrent(next);
      svg.current?.querySelector<SVGRectElement>(`[data-name="${CSS.escape(next)}"]`)?.focus();
    } else return;
    event.preventDefault();
  };
  const width = 16 + layout.ranks * (WIDTH + GAP_X) - GAP_X;
  const height = 16 + layout.rows * (HEIGHT + GAP_Y) - GAP_Y;
  return (
    <div class="graph" role="group" tabIndex={0} aria-label="Dependencies of the resources; the table has the same resources">
      <svg ref={svg} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        {layout.edges.map((edge) => (
          <path key={`${edge.from} ${edge.to}`} class="edge" d={curve(edge, layout)} aria-hidden="true" />
        ))}
        {[...vertices.values()].map((vertex) => {
          const { x, y } = pointOf(layout.nodes.get(vertex.key)!);
          return (
            <g key={vertex.key} class={`node ${toneOfVertex(vertex)}`} transform={`translate(${x} ${y})`}>
              <rect
                width={WIDTH}
                height={HEIGHT}
                rx="6"
                role="button"
                tabIndex={vertex.key === stop ? 0 : -1}
                data-name={vertex.key}
                aria-label={describe(vertex, requires, names)}
                {...(vertex.isOpen === null ? {} : { "aria-expanded": vertex.isOpen })}
                onClick={() => onOpen(vertex)}
                onFocus={() => setCurrent(vertex.key)}
                onKeyDown={(event) => move(event, vertex)}
              >
                <title>{describe(vertex, requires, names)}</title>
              </rect>
              <Texts vertex={vertex} names={names} />
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function Texts({ vertex, names }: { vertex: Vertex; names: ReadonlyMap<string, string> }) {
  const { node, lanes, isOpen } = vertex;
  const fold = isOpen === null ? "" : isOpen ? "▾ " : "▸ ";
  const title = lanes ? `${lanes.servers} servers · ${lanes.deployments === 1 ? "1 deployment" : `${lanes.deployments} deployments`}` : `${SYMBOLS[toneOf(node.resource_status)]} ${node.resource_name}`;
  const detail = lanes ? countsOf(vertex) : (waitOf(node, names) ?? placeOf(node));
  return (
    <>
      <text x="12" y="18" class="node-name" aria-hidden="true">
        {shorten(fold + title, 28)}
      </text>
      <text x="12" y="34" class="node-type" aria-hidden="true">
        {shorten(detail, lanes ? 34 : 26)}
      </text>
      {!lanes && node.start_time && (
        <text x={WIDTH - 10} y="34" text-anchor="end" class="node-type" aria-hidden="true">
          {node.end_time ? durationOf(parseTime(node.end_time) - parseTime(node.start_time)) : <Running since={node.start_time} />}
        </text>
      )}
    </>
  );
}

/** A time that runs: only this text changes each second, not the graph. */
function Running({ since }: { since: string }) {
  return <>{durationOf(now.value - parseTime(since))} …</>;
}

function countsOf({ lanes }: Vertex): string {
  return [...lanes!.counts].map(([state, count]) => `${SYMBOLS[toneOf(state)]} ${count} ${wordsOf(state)}`).join("  ");
}

/** Returns the server of a deployment, or else the type. */
function placeOf(node: GraphNode): string {
  const isServer = node.physical_resource_id === node.server_id;
  return node.server_name && !isServer ? `on ${node.server_name}` : shortType(node.resource_type);
}

/** Returns what keeps a resource from running, if anything does. */
function waitOf(node: GraphNode, names: ReadonlyMap<string, string>): string | null {
  if (node.breakpoint) return `at breakpoint ${node.breakpoint}`;
  return node.waits_for.length > 0 ? `waits for ${node.waits_for.map((id) => names.get(id) ?? "another").join(", ")}` : null;
}

function toneOfVertex({ node, lanes }: Vertex): Tone {
  const states = lanes ? [...lanes.counts.keys()] : [node.resource_status];
  const tones = states.map(toneOf);
  return (["bad", "busy", "wait", "good"] as const).find((tone) => tones.includes(tone)) ?? tones[0]!;
}

function describe(vertex: Vertex, requires: Requirements, names: ReadonlyMap<string, string>): string {
  const { node, lanes } = vertex;
  const others = requires.get(vertex.key) ?? [];
  const parts = lanes
    ? [`${lanes.servers} servers with ${lanes.deployments === 1 ? "1 deployment" : `${lanes.deployments} deployments`} each`, countsOf(vertex)]
    : [node.resource_name, shortType(node.resource_type), node.server_name ? `on ${node.server_name}` : null, wordsOf(node.resource_status), waitOf(node, names)];
  return [...parts, others.length > 0 ? `after ${others.join(", ")}` : null].filter(Boolean).join(", ");
}

function neighborOf(key: string, name: string, layout: Layout, requires: Requirements): string | undefined {
  const node = layout.nodes.get(name)!;
  if (key === "ArrowLeft") return requires.get(name)?.[0];
  if (key === "ArrowRight") return layout.edges.find((edge) => edge.from === name)?.to;
  const column = [...layout.nodes].filter(([, place]) => place.rank === node.rank);
  column.sort(([, one], [, other]) => one.row - other.row);
  const index = column.findIndex(([other]) => other === name);
  const step = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
  return step ? column[index + step]?.[0] : undefined;
}

function pointOf(place: Place): { x: number; y: number } {
  return { x: 8 + place.rank * (WIDTH + GAP_X), y: 8 + place.row * (HEIGHT + GAP_Y) };
}

/** Returns the line of an edge: a curve from column to column, straight where it passes one. */
function curve(edge: Edge, layout: Layout): string {
  const places = [...edge.through, layout.nodes.get(edge.to)!];
  const start = pointOf(layout.nodes.get(edge.from)!);
  let [x, y] = [start.x + WIDTH, start.y + HEIGHT / 2];
  let path = `M${x} ${y}`;
  for (const place of places) {
    const next = pointOf(place);
    const middle = (x + next.x) / 2;
    path += `C${middle} ${y} ${middle} ${next.y + HEIGHT / 2} ${next.x} ${next.y + HEIGHT / 2}`;
    if (place !== places[places.length - 1]) path += `h${WIDTH}`;
    [x, y] = [next.x + WIDTH, next.y + HEIGHT / 2];
  }
  return path;
}

function shorten(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Returns a type without the part that all types have: Heat::SoftwareConfig. */
export function shortType(type: string): string {
  return type.replace(/^OS::/, "");
}

/** What a picture keeps of the page's styles. */
const STYLES = ["fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight"];

/** Saves the graph as an SVG file, as it is on the page. */
export function downloadGraph(name: string): void {
  const svg = document.querySelector<SVGSVGElement>(".graph svg");
  if (!svg) return;
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const [shown, copied] = [svg.querySelectorAll("path, rect, text"), copy.querySelectorAll("path, rect, text")];
  shown.forEach((element, index) => {
    const style = getComputedStyle(element);
    for (const property of STYLES) copied[index]!.setAttribute(property, style.getPropertyValue(property));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  download(`${name}.svg`, new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
}
