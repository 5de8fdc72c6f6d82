import type { LineStore } from "../model/lines";
import { bytesOf, parseTime } from "../model/time";

interface LineProps {
  store: LineStore;
  index: number;
  /** The line's number, negative from the end; null if it is not known. */
  label: number | null;
  /** Characters that are shown. */
  most: number;
  isChosen: boolean;
  isHit: boolean;
  isCurrent: boolean;
  onChoose: (index: number, isRange: boolean) => void;
  onMore: () => void;
}

/** A line of the output, or the bytes that are missing in its place. */
export function LogLine({ store, index, label, most, isChosen, isHit, isCurrent, onChoose, onMore }: LineProps) {
  const line = store.lines[index]!;
  const classes = ["line", line.stream, isChosen && "chosen", isHit && "hit", isCurrent && "current"].filter(Boolean).join(" ");
  const cut = store.cut(index, most);
  return (
    <div class={classes}>
      <button
        class="line-number"
        tabIndex={-1}
        aria-pressed={isChosen}
        aria-label={`Line ${label ?? `at ${line.stream} ${line.offset}`}`}
        onClick={(event) => onChoose(index, event.shiftKey)}
      >
        {label ?? "·"}
      </button>
      <span class="line-time" title={line.time}>
        {new Date(parseTime(line.time)).toLocaleTimeString("en-GB")}
      </span>
      {line.gap > 0 ? (
        <span class="line-text gap">
          … {bytesOf(line.gap)} of {line.stream === "stderr" ? "standard error" : "standard output"} are not stored …
        </span>
      ) : (
        <span class="line-text">
          {store.spans(index, most).map((span, place) => (
            <span key={place} class={span.style}>
              {span.text}
            </span>
          ))}
        </span>
      )}
      {cut > 0 && (
        <button class="link line-more" onClick={onMore}>
          show {cut.toLocaleString("en")} more characters
        </button>
      )}
    </div>
  );
}
