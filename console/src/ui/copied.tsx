import { useRef, useState } from "preact/hooks";

/** A text to copy, with a button. */
export function Copied({ label, text }: { label: string; text: string }) {
  const [isCopied, setCopied] = useState(false);
  const shown = useRef<HTMLPreElement>(null);
  const copy = async () => {
    getSelection()?.selectAllChildren(shown.current!);
    // Browsers offer the clipboard with HTTPS and on the machine itself only; elsewhere the text is selected.
    await navigator.clipboard?.writeText(text);
    setCopied(navigator.clipboard !== undefined);
  };
  return (
    <div class="copied">
      <p class="quiet">{label}</p>
      <pre ref={shown} tabIndex={0}>
        {text}
      </pre>
      <button onClick={() => void copy()} aria-label={`Copy ${label.toLowerCase()}`}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
