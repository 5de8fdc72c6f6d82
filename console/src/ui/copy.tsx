import { useState } from "preact/hooks";

/** A button that copies a text, and says so. */
export function Copy({ text, label }: { text: () => string; label: string }) {
  const [result, setResult] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setResult("copied");
    } catch {
      setResult("the browser refused"); // without HTTPS, or without the user's consent
    }
    setTimeout(() => setResult(""), 2000);
  };
  return (
    <button class="link" onClick={() => void copy()}>
      {label}
      <span role="status">{result && ` · ${result}`}</span>
    </button>
  );
}
