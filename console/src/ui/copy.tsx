import { useRef, useState } from "preact/hooks";

/** Copies a text. Returns whether the browser did so: it refuses without HTTPS, and without the user's consent. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** A button that copies a text, and says so. */
export function Copy({ text, label }: { text: () => string; label: string }) {
  const [result, setResult] = useState("");
  const copy = async () => {
    setResult((await copyText(text())) ? "copied" : "the browser refused");
    setTimeout(() => setResult(""), 2000);
  };
  return (
    <button class="link" onClick={() => void copy()}>
      {label}
      <span role="status">{result && ` · ${result}`}</span>
    </button>
  );
}

/** A text to copy, with a button. The text is selected, for browsers that refuse. */
export function Copied({ label, text }: { label: string; text: string }) {
  const [isCopied, setCopied] = useState(false);
  const shown = useRef<HTMLPreElement>(null);
  const copy = async () => {
    getSelection()?.selectAllChildren(shown.current!);
    setCopied(await copyText(text));
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

/** Lets the browser save data as a file. */
export function download(name: string, data: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
