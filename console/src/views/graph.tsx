import { useMemo, useRef, useState } from "preact/hooks";
import type { Schemas } from "../api/client";
import { layOut, type Edge, type Layout, type Place } from "../model/layout";
import { SYMBOLS, toneOf, wordsOf } from "../model/state";

type Resource = Schemas["StackResource"];

const WIDTH = 190;
const HEIGHT = 44;
const GAP_X = 56;
const GAP_Y = 14;

/** The resources of a stack, each right of those that it depends on. Arrow keys follow the edges. */
export function Graph({ resources, onOpen }: { resources: readonly Resource[]; onOpen: (name: string) => void }) {
  const previous = useRef<Layout | undefined>(undefined);
  const svg = useRef<SVGSVGElement>(null);
  const requires = useMemo(() => requirementsOf(resources), [resources]);
  const structure = [...requires].map(([name, others]) => `${name}:${others.join()}`).join(";");
  // States change often, the structure seldom: a place is computed once for a structure.
  const layout = useMemo(() => (previous.current = layOut(requires, previous.current)), [structure]);
  const [current, setCurrent] = useState(resources[0]?.resource_name ?? "");

  const move = (event: KeyboardEvent, name: string) => {
    const next = neighborOf(event.key, name, layout, requires);
    if (event.key === "Enter" || event.key === " ") onOpen(name);
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
        {resources.map((resource) => {
          const { x, y } = pointOf(layout.nodes.get(resource.resource_name)!);
          const tone = toneOf(resource.resource_status);
          return (
            <g key={resource.resource_name} class={`node ${tone}`} transform={`translate(${x} ${y})`}>
              <rect
                width={WIDTH}
                height={HEIGHT}
                rx="6"
                role="button"
                tabIndex={resource.resource_name === current ? 0 : -1}
                data-name={resource.resource_name}
                aria-label={describe(resource, requires)}
                onClick={() => onOpen(resource.resource_name)}
                onFocus={() => setCurrent(resource.resource_name)}
                onKeyDown={(event) => move(event, resource.resource_name)}
              />
              <text x="12" y="18" class="node-name" aria-hidden="true">
                {SYMBOLS[tone]} {shorten(resource.resource_name, 22)}
              </text>
              <text x="12" y="34" class="node-type" aria-hidden="true">
                {shorten(shortType(resource.resource_type), 24)}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function requirementsOf(resources: readonly Resource[]): Map<string, string[]> {
  const requires = new Map<string, string[]>(resources.map((resource) => [resource.resource_name, []]));
  for (const resource of resources) {
    for (const name of resource.required_by) requires.get(name)?.push(resource.resource_name);
  }
  return requires;
}

function neighborOf(key: string, name: string, layout: Layout, requires: Map<string, string[]>): string | undefined {
  const node = layout.nodes.get(name)!;
  if (key === "ArrowLeft") return requires.get(name)?.[0];
  if (key === "ArrowRight") return layout.edges.find((edge) => edge.from === name)?.to;
  const column = [...layout.nodes].filter(([, place]) => place.rank === node.rank);
  column.sort(([, one], [, other]) => one.row - other.row);
  const index = column.findIndex(([other]) => other === name);
  const step = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
  return step ? column[index + step]?.[0] : undefined;
}

function describe(resource: Resource, requires: Map<string, string[]>): string {
  const others = requires.get(resource.resource_name) ?? [];
  const after = others.length > 0 ? `, after ${others.join(", ")}` : "";
  return `${resource.resource_name}, ${shortType(resource.resource_type)}, ${wordsOf(resource.resource_status)}${after}`;
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
