import { useEffect, useRef, useState } from "preact/hooks";
import { Link, segments } from "./router";

/** The pages that few people open each day: a menu, which a wide window shows as links beside the others. */
export function More({ sections, current }: { sections: readonly { segment: string; title: string }[]; current: string }) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const path = segments.value.join("/");
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    if (!isOpen) return;
    const onPointer = (event: Event) => !box.current?.contains(event.target as Node) && setOpen(false);
    document.addEventListener("pointerdown", onPointer);
    return () => document.removeEventListener("pointerdown", onPointer);
  }, [isOpen]);
  const chosen = sections.find(({ segment }) => segment === current);
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isOpen) return;
    setOpen(false);
    box.current?.querySelector("button")?.focus();
  };
  const onLeave = (event: FocusEvent) => {
    if (event.relatedTarget && !box.current?.contains(event.relatedTarget as Node)) setOpen(false);
  };
  return (
    <div class={`more${isOpen ? " open" : ""}`} ref={box} onKeyDown={onKey} onFocusOut={onLeave}>
      <button class={chosen ? "chosen" : ""} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        More{chosen && <span class="wide">: {chosen.title}</span>} <span aria-hidden="true">▾</span>
      </button>
      <div class="more-pages">
        {sections.map(({ segment, title }) => (
          <Link key={segment} to={[segment]} aria-current={segment === current ? "page" : undefined}>
            {title}
          </Link>
        ))}
      </div>
    </div>
  );
}
