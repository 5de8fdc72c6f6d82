/** A difference of texts, whose lines begin with + or - where they differ. */
export function Diff({ of: text }: { of: string }) {
  return (
    <pre class="diff" tabIndex={0}>
      {text.split("\n").map((line, index) => (
        <span key={index} class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : ""}>
          {line}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
