import { useRef, useState } from "preact/hooks";
import { addCondition, type Completion, completionsAt, type FactName, quote, removeCondition, splitConditions } from "../model/selector";
import { useGet } from "./data";

/** Reads the names that selectors can use, once for a page. */
export function useFacts(): readonly FactName[] {
  return useGet("/v1/{project}/server_facts", {}, {}, 0).data?.server_facts ?? [];
}

/** A name with more values than this is no menu, such as a host name. */
const MOST = 30;

interface Props {
  value: string;
  /** Called when the text is complete: at Enter, at a chosen condition, and when the field loses the focus. */
  onChange: (value: string) => void;
}

/** A selector of servers: a text with completion, and menus and pills that write it. */
export function SelectorField({ value, onChange }: Props) {
  const facts = useFacts();
  return (
    <div class="selector">
      <div class="selector-row">
        <SelectorInput key={value} value={value} onChange={onChange} facts={facts} />
        <ConditionMenu facts={facts} onChoose={(condition) => onChange(addCondition(value, condition))} />
      </div>
      <Conditions value={value} onChange={onChange} />
    </div>
  );
}

function SelectorInput({ value, onChange, facts }: Props & { facts: readonly FactName[] }) {
  const [text, setText] = useState(value);
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const options = isOpen ? completionsAt(text, input.current?.selectionStart ?? text.length, facts) : [];
  const complete = (option: Completion) => {
    const cursor = input.current?.selectionStart ?? text.length;
    setText(text.slice(0, option.from) + option.insert + text.slice(cursor));
    setChosen(-1);
    input.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && options.length > 0) {
      setChosen((chosen + step + options.length + (chosen < 0 && step < 0 ? 1 : 0)) % options.length);
    } else if (event.key === "Enter") {
      const option = options[chosen];
      if (option) complete(option);
      else {
        setOpen(false);
        onChange(text.trim());
      }
    } else if (event.key === "Escape" && options.length > 0) setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <label class="filter selector-input">
      <span>Selector</span>
      <input
        ref={input}
        class="text-filter"
        role="combobox"
        aria-expanded={options.length > 0}
        aria-controls="selector-options"
        aria-autocomplete="list"
        {...(options[chosen] ? { "aria-activedescendant": `selector-option-${chosen}` } : {})}
        autocomplete="off"
        spellcheck={false}
        placeholder="tier=web and os.family=debian"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setOpen(true);
          setChosen(-1);
        }}
        onFocus={() => setOpen(true)}
        onKeyDown={onKeyDown}
        onBlur={() => {
          setOpen(false);
          if (text.trim() !== value) onChange(text.trim());
        }}
      />
      <ul class="completions" id="selector-options" role="listbox" aria-label="Completions" hidden={options.length === 0}>
        {options.map((option, index) => (
          <li
            key={option.insert}
            id={`selector-option-${index}`}
            role="option"
            aria-selected={index === chosen}
            onMouseDown={(event) => {
              event.preventDefault();
              complete(option);
            }}
          >
            <span class="mono">{option.insert}</span>
            <span class="quiet">{option.count}</span>
          </li>
        ))}
      </ul>
    </label>
  );
}

/** Values by which servers are often chosen, as a menu. */
function ConditionMenu({ facts, onChoose }: { facts: readonly FactName[]; onChoose: (condition: string) => void }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const useful = facts
    .filter((fact) => fact.values.length > 0 && fact.values.length <= MOST)
    .sort((one, other) => Number(other.is_label ?? false) - Number(one.is_label ?? false));
  const choose = (condition: string) => {
    if (menu.current) menu.current.open = false;
    onChoose(condition);
  };
  return (
    <details class="menu" ref={menu}>
      <summary>Add a condition</summary>
      <div class="menu-body">
        {useful.length === 0 && <p class="quiet">No server has labels or facts yet.</p>}
        {useful.map((fact) => (
          <div key={fact.name} class="menu-group">
            <p class="quiet">{fact.name}</p>
            <div class="pills">
              {fact.values.map((one) => (
                <button key={one.value} type="button" class="pill" onClick={() => choose(`${fact.name}=${quote(one.value)}`)}>
                  {one.value} <b>{one.count}</b>
                </button>
              ))}
            </div>
          </div>
        ))}
      </div>
    </details>
  );
}

/** The conditions of a selector, each of which a click removes. */
function Conditions({ value, onChange }: Props) {
  const conditions = splitConditions(value) ?? [];
  if (conditions.length === 0) return null;
  return (
    <div class="pills" role="group" aria-label="Conditions">
      {conditions.map((condition) => (
        <button
          key={condition}
          type="button"
          class="pill mono"
          aria-label={`Remove ${condition}`}
          onClick={() => onChange(removeCondition(value, condition))}
        >
          {condition} <span aria-hidden="true">✕</span>
        </button>
      ))}
    </div>
  );
}
