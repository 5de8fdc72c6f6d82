/** A text of several lines with their numbers. */
export function NumberedText({ of: text, label }: { of: string; label: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <pre class="numbered" tabIndex={0} role="group" aria-label={label}>
      {lines.map((line, index) => (
        <span key={index} class="numbered-line">
          {line}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
