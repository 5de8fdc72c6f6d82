import { useEffect, useRef, useState } from "preact/hooks";
import type { Schemas } from "../api/client";
import { toneOf, wordsOf } from "../model/state";

type Target = Schemas["TriggerTarget"];

/** All targets of a trigger as cells of one canvas. The table beside it has the same targets for screen readers. */
export function Matrix({ targets, onOpen }: { targets: readonly Target[]; onOpen: (target: Target) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
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
    const frame = requestAnimationFrame(() => draw(element, targets, columns, size));
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
        {hover ? `${hover.server_name}: ${wordsOf(hover.status)}` : "Each cell is a server. Point at a cell for its name."}
      </p>
    </div>
  );
}

function draw(canvas: HTMLCanvasElement, targets: readonly Target[], columns: number, size: number): void {
  const context = canvas.getContext("2d")!;
  const style = getComputedStyle(canvas);
  const ratio = window.devicePixelRatio || 1;
  const colors = new Map(["good", "bad", "busy", "wait", "off", "warn"].map((tone) => [tone, colorOf(style, tone)]));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  targets.forEach((target, index) => {
    const tone = toneOf(target.status);
    const [x, y] = [(index % columns) * size, Math.floor(index / columns) * size];
    context.fillStyle = context.strokeStyle = colors.get(tone)!;
    const [inner, gap] = [size - 3, 1];
    // The shape differs, too: a waiting cell is a frame, a failed one has a cross.
    if (tone === "wait" || tone === "off") context.strokeRect(x + gap + 0.5, y + gap + 0.5, inner - 1, inner - 1);
    else context.fillRect(x + gap, y + gap, inner, inner);
    if (tone === "bad") cross(context, x + gap, y + gap, inner, style.getPropertyValue("--surface"));
  });
}

function cross(context: CanvasRenderingContext2D, x: number, y: number, size: number, color: string): void {
  context.strokeStyle = color;
  context.beginPath();
  context.moveTo(x + 2, y + 2);
  context.lineTo(x + size - 2, y + size - 2);
  context.moveTo(x + size - 2, y + 2);
  context.lineTo(x + 2, y + size - 2);
  context.stroke();
}

/** Returns a color of the style sheet as the canvas takes it; canvases do not know light-dark(). */
function colorOf(style: CSSStyleDeclaration, tone: string): string {
  const probe = document.createElement("span");
  probe.className = `state ${tone}`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color || style.color;
}
