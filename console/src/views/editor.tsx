import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Problem } from "../model/template";

const COLORS = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
    { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
    { tag: [tags.keyword, tags.meta, tags.labelName], color: "var(--warn)" },
  ]),
);

const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px", maxHeight: "60vh" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px", minHeight: "120px" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-gutters": { color: "var(--quiet)", backgroundColor: "var(--raised)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--raised) 60%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--chosen-ground)",
  },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-tooltip": { color: "var(--text)", backgroundColor: "var(--surface)", border: "1px solid var(--edge)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
});

/**
 * Replaces selected text by what is typed. Left to the browser, Chromium keeps the look of the selection by styles within
 * the text, which the content policy forbids.
 */
function replaceChosen(event: InputEvent, view: EditorView): boolean {
  if (event.inputType !== "insertText" || event.data === null || view.composing || view.state.selection.main.empty) return false;
  if (!view.state.readOnly) view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  event.preventDefault();
  return true;
}

/**
 * A text of YAML with line numbers. `problems` stand at their lines. It is in a shadow root, into which its styles can
 * be put without breaking the content policy. Tab leaves it, as any other field.
 */
export function Editor(props: {
  label: string;
  text: string;
  problems?: readonly Problem[];
  /** Receives each change; without it, the text is only shown. */
  onChange?: (text: string) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const onChange = useRef(props.onChange);
  onChange.current = props.onChange;
  const isReadOnly = props.onChange === undefined;

  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    view.current = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: props.text,
        extensions: [
          lineNumbers(),
          lintGutter(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          yaml(),
          COLORS,
          THEME,
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorState.readOnly.of(isReadOnly),
          EditorView.contentAttributes.of({ "aria-label": props.label, tabindex: "0", ...(isReadOnly ? { "aria-readonly": "true" } : {}) }),
          EditorView.domEventHandlers({ beforeinput: replaceChosen }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) onChange.current?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    return () => view.current?.destroy();
  }, []);

  // Before the next key: an effect after it would put the text before that key back.
  useLayoutEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== props.text) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.text } });
    }
  }, [props.text]);

  useEffect(() => {
    const { state } = view.current!;
    const diagnostics = (props.problems ?? []).flatMap(({ line, text }) => {
      if (line === null || line > state.doc.lines) return [];
      const { from, to } = state.doc.line(line);
      return [{ from, to, severity: "error" as const, message: text }];
    });
    view.current!.dispatch(setDiagnostics(state, diagnostics));
  }, [props.problems]);

  /** Moves the cursor to the line of a problem. */
  const open = (line: number) => {
    const editor = view.current!;
    const { from } = editor.state.doc.line(Math.min(line, editor.state.doc.lines));
    editor.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    editor.focus();
  };

  return (
    <div class="editor">
      <div class="editor-host" ref={host} />
      {(props.problems ?? []).length > 0 && (
        <ul class="problem problems" role="alert">
          {props.problems!.map(({ line, text }) => (
            <li key={`${line} ${text}`}>
              {line !== null && (
                <>
                  <button class="link" onClick={() => open(line)}>
                    Line {line}
                  </button>{" "}
                </>
              )}
              {text}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
