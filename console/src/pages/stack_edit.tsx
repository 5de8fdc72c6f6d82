import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { readForm } from "../model/parameters";
import type { Problem as TemplateProblem } from "../model/template";
import { useData, useGet } from "../ui/data";
import { CheckField, TextField } from "../ui/form";
import { Data, Head, Problem } from "../ui/parts";
import { Link, query, setQuery } from "../ui/router";
import { Editor } from "../views/editor";
import { ParameterForm } from "../views/parameters";
import { EXAMPLES } from "./examples";
import { beginNew, beginUpdate, check, type Checked, type Draft, listMissing } from "./stack_draft";
import { Review } from "./stack_review";

const STEPS = ["Template", "Parameters", "Review"] as const;
/** Milliseconds after the last key until the server checks the template. */
const PAUSE = 500;

/** A new stack: from a file, a pasted text, an example, or an entry of the catalog. */
export function NewStackPage() {
  const source = query.value.get("from") ?? "";
  const begun = useData(`new ${source}`, async (signal) => ({ source, draft: await beginNew(source, signal) }), 0);
  return (
    <>
      <Head title="New stack" />
      <Data of={begun}>{(data) => <Steps key={data.source} draft={data.draft} />}</Data>
    </>
  );
}

/** The update of a stack. */
export function UpdateStackPage({ names: [stack_name = "", stack_id = ""] }: { names: string[] }) {
  const begun = useData(`update ${stack_id}`, (signal) => beginUpdate({ stack_name, stack_id }, signal), 0);
  return (
    <>
      <Head title={`Update ${stack_name}`} kind="Stack">
        <Link to={["stacks", stack_name, stack_id]} class="button">
          Back to the stack
        </Link>
      </Head>
      <Data of={begun}>{(draft) => <Steps draft={draft} />}</Data>
    </>
  );
}

type Change = (changes: Partial<Draft>) => void;

/** Three steps; what a plan shows is only in the last one, so that each edit leaves it and throws it away. */
function Steps({ draft: begun }: { draft: Draft }) {
  const [draft, setDraft] = useState(begun);
  const [step, setStep] = useState(0);
  const [checked, setChecked] = useState<Checked | null>(null);
  const list = useRef<HTMLOListElement>(null);
  const change: Change = (changes) => setDraft((last) => ({ ...last, ...changes }));
  const move = (next: number) => {
    setStep(next);
    window.scrollTo(0, 0);
    list.current?.querySelectorAll("li")[next]?.focus();
  };
  return (
    <>
      <ol class="stepper" ref={list}>
        {STEPS.map((title, index) => (
          <li key={title} tabIndex={-1} aria-current={index === step ? "step" : undefined}>
            {index < step ? (
              <button class="link" onClick={() => move(index)}>
                {index + 1}. {title}
              </button>
            ) : (
              <span>
                {index + 1}. {title}
              </span>
            )}
          </li>
        ))}
      </ol>
      {step === 0 && (
        <TemplateStep
          draft={draft}
          change={change}
          onDone={(result) => {
            setChecked(result);
            move(1);
          }}
        />
      )}
      {step === 1 && checked && <ParameterStep draft={draft} checked={checked} change={change} onDone={() => move(2)} />}
      {step === 2 && checked && <Review draft={draft} groups={checked.groups} onBack={() => move(1)} />}
    </>
  );
}

function TemplateStep({ draft, change, onDone }: { draft: Draft; change: Change; onDone: (checked: Checked) => void }) {
  const { result, error, retry } = useCheck(draft);
  const problems = Array.isArray(result) ? result : [];
  const missing = listMissing(draft);
  return (
    <>
      {draft.present === null && <Sources change={change} />}
      <section class="stack-edit" aria-label="Template">
        <Editor label="Template" text={draft.template} problems={problems} onChange={(template) => change({ template })} />
        {error && <Problem error={error} retry={retry} />}
      </section>
      <Files draft={draft} missing={missing} change={change} />
      <details open={draft.environment !== ""}>
        <summary>Environment{draft.present && ", in addition to the stack's own"}</summary>
        <label class="file">
          From a file <input type="file" onChange={(event) => void readFirst(event, (environment) => change({ environment }))} />
        </label>
        <Editor label="Environment" text={draft.environment} onChange={(environment) => change({ environment })} />
      </details>
      <div class="buttons">
        <button class="primary" disabled={result === null || Array.isArray(result)} onClick={() => onDone(result as Checked)}>
          Next: parameters
        </button>
        <p class="quiet" role="status">
          {wordsOf(draft, result)}
        </p>
      </div>
    </>
  );
}

function wordsOf(draft: Draft, result: Checked | TemplateProblem[] | null): string {
  if (draft.template.trim() === "") return "Choose a template, or write one.";
  if (result === null) return "Checking …";
  if (Array.isArray(result)) return `${result.length === 1 ? "One problem" : `${result.length} problems`} in the template.`;
  const count = result.groups.reduce((sum, group) => sum + group.fields.length, 0);
  return `The template is valid, with ${count === 1 ? "one parameter" : `${count} parameters`}.`;
}

/** Checks the template on the server after each pause in writing. The result is null until the server has answered. */
function useCheck(draft: Draft) {
  const [state, setState] = useState<{ of: Draft; result: Checked | TemplateProblem[] | null; error: ApiError | null } | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (draft.template.trim() === "") return;
    let isOver = false;
    const keep = (result: Checked | TemplateProblem[] | null, error: ApiError | null) => {
      if (!isOver) setState({ of: draft, result, error });
    };
    const timer = window.setTimeout(() => {
      check(draft).then((result) => keep(result, null), (error: unknown) => keep(null, error as ApiError));
    }, state === null ? 0 : PAUSE);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [draft.template, draft.environment, draft.chosen, round]);
  const isCurrent =
    state !== null &&
    state.of.template === draft.template &&
    state.of.environment === draft.environment &&
    state.of.chosen === draft.chosen &&
    draft.template.trim() !== "";
  return {
    result: isCurrent ? state.result : null,
    error: isCurrent ? state.error : null,
    retry: () => setRound((last) => last + 1),
  };
}

/** Where a new template comes from; an example or an entry of the catalog is in the URL. */
function Sources({ change }: { change: Change }) {
  const entries = useGet("/v1/{project}/catalog", {}, {}, 0).data?.entries ?? [];
  return (
    <div class="filters">
      <label class="filter">
        <span>Template from a file</span>
        <input type="file" accept=".yaml,.yml,.json,.template" onChange={(event) => void readFirst(event, (template) => change({ template }))} />
      </label>
      <label class="filter">
        <span>An example, or an entry of the catalog</span>
        <select value={query.value.get("from") ?? ""} onChange={(event) => setQuery({ from: event.currentTarget.value })}>
          <option value="">none</option>
          <optgroup label="Examples">
            {EXAMPLES.map((name) => (
              <option key={name} value={`example:${name}`}>
                {name}
              </option>
            ))}
          </optgroup>
          <optgroup label="Catalog">
            {entries.map(({ name, version, description }) => (
              <option key={`${name}/${version}`} value={`catalog:${name}/${version}`}>
                {name}/{version}: {description}
              </option>
            ))}
          </optgroup>
        </select>
      </label>
    </div>
  );
}

async function readFirst(event: Event, use: (text: string) => void): Promise<void> {
  const file = (event.currentTarget as HTMLInputElement).files?.[0];
  if (file) use(await file.text());
}

/** The files that the template names: chosen ones, and missing ones. */
function Files({ draft, missing, change }: { draft: Draft; missing: readonly string[]; change: Change }) {
  const names = Object.keys(draft.chosen);
  const add = async (event: Event) => {
    const input = event.currentTarget as HTMLInputElement;
    const texts = await Promise.all([...(input.files ?? [])].map(async (file) => [file.webkitRelativePath || file.name, await file.text()] as const));
    change({ chosen: { ...draft.chosen, ...Object.fromEntries(texts) } });
  };
  if (names.length === 0 && missing.length === 0 && draft.present === null) return null;
  return (
    <section class="stack-edit" aria-label="Files">
      {missing.length > 0 && (
        <p class="banner">
          The template names {missing.length === 1 ? "a file" : "files"} that {missing.length === 1 ? "is" : "are"} missing:{" "}
          <b>{missing.join(", ")}</b>
        </p>
      )}
      <label class="file">
        Files that the template names <input type="file" multiple onChange={(event) => void add(event)} />
      </label>
      {names.length > 0 && <p class="quiet">Chosen: {names.join(", ")}</p>}
    </section>
  );
}

function ParameterStep(props: { draft: Draft; checked: Checked; change: Change; onDone: () => void }) {
  const { draft, checked, change } = props;
  const [problems, setProblems] = useState<Record<string, string>>({});
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const found = readForm(checked.groups, draft.texts, draft.present?.texts).problems;
    setProblems(found);
    const [first] = Object.keys(found);
    if (first === undefined) props.onDone();
    else document.getElementById(`parameter-${first}`)?.focus();
  };
  return (
    <form class="stack-edit" onSubmit={submit}>
      {checked.description && <p class="lead">{checked.description}</p>}
      {draft.present === null && (
        <div class="fields">
          <TextField
            name="name"
            label="Name of the stack"
            value={draft.name}
            pattern="[a-zA-Z][a-zA-Z0-9_.\-]{0,254}"
            hint="Letters, digits, dots, dashes and underscores, beginning with a letter"
            onInput={(name) => change({ name })}
            isRequired
          />
        </div>
      )}
      {checked.groups.length === 0 && <p class="quiet">The template has no parameters.</p>}
      <ParameterForm
        groups={checked.groups}
        texts={draft.texts}
        before={draft.present?.texts ?? {}}
        problems={problems}
        onChange={(texts) => change({ texts })}
      />
      <details>
        <summary>Options</summary>
        <div class="fields">
          <TextField
            name="timeout"
            label="Time limit (minutes)"
            value={draft.timeout}
            placeholder="the site's default"
            pattern="[1-9][0-9]*"
            onInput={(timeout) => change({ timeout })}
          />
          <TextField name="tags" label="Tags, separated by commas" value={draft.tags} onInput={(tags) => change({ tags })} />
          <CheckField name="is_rolled_back" label="Roll back if it fails" isChecked={draft.isRolledBack} onChange={(isRolledBack) => change({ isRolledBack })} />
        </div>
      </details>
      <div class="buttons">
        <button class="primary">Next: review</button>
      </div>
    </form>
  );
}
