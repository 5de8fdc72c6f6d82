import { useEffect, useRef, useState } from "preact/hooks";
import type { Schemas } from "../api/client";
import { toneOf, wordsOf, type Tone } from "../model/state";

type Target = Schemas["CompactTarget"];

interface MatrixProps {
  targets: readonly Target[];
  /** The positions of the canaries' targets, which have frames. */
  canaries: ReadonlySet<number>;
  onOpen: (target: Target) => void;
}

/** What is on the canvas: its size and colors, and the look of each cell. */
interface Drawn {
  key: string;
  colors: ReadonlyMap<string, string>;
  looks: string[];
}

/** All targets of a trigger as cells of one canvas. The table beside it has the same targets for screen readers. */
export function Matrix({ targets, canaries, onOpen }: MatrixProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<Drawn>({ key: "", colors: new Map(), looks: [] });
  const [width, setWidth] = useState(0);
  const [hover, setHover] = useState<Target | null>(null);
  const size = targets.length > 2000 ? 8 : targets.length > 400 ? 12 : 20;
  const columns = Math.max(1, Math.floor(width / size));
  const rows = Math.ceil(targets.length / columns);

  useEffect(() => {
    const box = canvas.current!.parentElement!;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current;
    if (width === 0 || !element) return;
    const frame = requestAnimationFrame(() => {
      const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
      const key = [columns, rows, size, window.devicePixelRatio, isDark].join();
      if (drawn.current.key !== key) drawn.current = { key, colors: colorsOf(element), looks: [] };
      draw(element.getContext("2d")!, targets, canaries, columns, size, drawn.current);
    });
    return () => cancelAnimationFrame(frame);
  });

  const targetAt = (event: MouseEvent): Target | null => {
    const bounds = canvas.current!.getBoundingClientRect();
    const column = Math.floor((event.clientX - bounds.left) / size);
    const row = Math.floor((event.clientY - bounds.top) / size);
    return column < columns ? (targets[row * columns + column] ?? null) : null;
  };
  const ratio = window.devicePixelRatio || 1;
  return (
    <div class="matrix">
      <canvas
        ref={canvas}
        aria-hidden="true"
        width={columns * size * ratio}
        height={rows * size * ratio}
        style={{ width: `${columns * size}px`, height: `${rows * size}px` }}
        onMouseMove={(event) => setHover(targetAt(event))}
        onMouseLeave={() => setHover(null)}
        onClick={(event) => {
          const target = targetAt(event);
          if (target) onOpen(target);
        }}
      />
      <p class="quiet" aria-hidden="true">
        {hover ? describe(hover, canaries) : `Each cell is a server: point at it for its name.${canaries.size > 0 ? " Framed cells are canaries." : ""}`}
      </p>
    </div>
  );
}

function describe(target: Target, canaries: ReadonlySet<number>): string {
  const code = target.exit_code ? `, exit code ${target.exit_code}` : "";
  return `${target.server_name}: ${wordsOf(target.status)}${code}${canaries.has(target.position) ? ", canary" : ""}`;
}

/** Draws the cells whose look has changed. Targets with one state are neighbors, so these are few. */
function draw(
  context: CanvasRenderingContext2D,
  targets: readonly Target[],
  canaries: ReadonlySet<number>,
  columns: number,
  size: number,
  { colors, looks }: Drawn,
): void {
  const ratio = window.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  targets.forEach((target, index) => {
    const tone = toneOf(target.status);
    const isFramed = canaries.has(target.position);
    const look = isFramed ? `${tone} framed` : tone;
    if (looks[index] === look) return;
    looks[index] = look;
    const [x, y] = [(index % columns) * size, Math.floor(index / columns) * size];
    context.clearRect(x, y, size, size);
    // A canary is smaller, within a frame.
    const [inner, gap] = isFramed ? [size - 7, 3] : [size - 3, 1];
    if (isFramed) frame(context, x, y, size - 1, colors.get("text")!);
    context.fillStyle = context.strokeStyle = colors.get(tone)!;
    // The shape differs, too: a waiting cell is a frame, a failed one has a cross.
    if (tone === "wait" || tone === "off") context.strokeRect(x + gap + 0.5, y + gap + 0.5, inner - 1, inner - 1);
    else context.fillRect(x + gap, y + gap, inner, inner);
    if (tone === "bad") cross(context, x + gap, y + gap, inner, colors.get("surface")!);
  });
  for (let index = targets.length; index < looks.length; index++) {
    context.clearRect((index % columns) * size, Math.floor(index / columns) * size, size, size);
  }
  looks.length = targets.length;
}

function frame(context: CanvasRenderingContext2D, x: number, y: number, size: number, color: string): void {
  context.strokeStyle = color;
  context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
}

function cross(context: CanvasRenderingContext2D, x: number, y: number, size: number, color: string): void {
  context.strokeStyle = color;
  context.beginPath();
  const edge = size > 6 ? 2 : 0;
  context.moveTo(x + edge, y + edge);
  context.lineTo(x + size - edge, y + size - edge);
  context.moveTo(x + size - edge, y + edge);
  context.lineTo(x + edge, y + size - edge);
  context.stroke();
}

/** Returns colors of the style sheet as the canvas takes them; canvases do not know light-dark(). */
function colorsOf(canvas: HTMLCanvasElement): Map<string, string> {
  const names = ["good", "bad", "busy", "wait", "off", "warn", "text", "surface"] as const satisfies readonly (Tone | "text" | "surface")[];
  const probe = document.createElement("span");
  canvas.after(probe);
  const colors = names.map((name) => {
    probe.style.color = `var(--${name})`;
    return [name, getComputedStyle(probe).color] as const;
  });
  probe.remove();
  return new Map(colors);
}
