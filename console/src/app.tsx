import { useEffect, useRef, useState } from "preact/hooks";
import { hasEnded, renew, root, session } from "./api/session";
import { isUpgraded } from "./api/stream";
import { ACTIONS, ROUTES, SECTIONS, type Section } from "./pages/routes";
import { Form, TextField } from "./ui/form";
import { KEYS, useKeys } from "./ui/keys";
import { Palette, type Place } from "./ui/palette";
import { Dialog, Empty, Head } from "./ui/parts";
import { Link, segments } from "./ui/router";

/** The pages and actions of the palette; readers see no actions. */
const PLACES: readonly Place[] = [
  ...SECTIONS.map(({ segment, title }) => ({ kind: "Page", title, path: segment ? [segment] : [] })),
  ...(session.can_write ? ACTIONS.map((action) => ({ kind: "Action", ...action })) : []),
];

/** The console: navigation, the page of the URL, and the dialogs over it. */
export function App() {
  const [isHelping, setHelping] = useState(false);
  const [isSearching, setSearching] = useState(false);
  useKeys({ sections: SECTIONS, onHelp: () => setHelping(true), onPalette: () => setSearching(true) });
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Navigation onHelp={() => setHelping(true)} onPalette={() => setSearching(true)} />
      <Upgraded />
      <main id="main" tabIndex={-1}>
        <Page />
      </main>
      {isSearching && <Palette places={PLACES} onClose={() => setSearching(false)} />}
      {isHelping && <Help onClose={() => setHelping(false)} />}
      {hasEnded.value && <SignIn />}
    </>
  );
}

function Page() {
  const [segment = "", ...names] = segments.value;
  const route = ROUTES.find((one) => one.segment === segment && one.count === names.length);
  const refusal = route?.refusal?.();
  if (!route || refusal) {
    return (
      <>
        <Head title={refusal?.title ?? "Page not found"} />
        <Empty>
          {refusal?.reason ?? "No page has this address."} <Link to={refusal?.instead ?? []}>{refusal?.link ?? "Open the overview"}</Link>
        </Empty>
      </>
    );
  }
  // A key of its own, so that a page of another object begins with a state of its own.
  return <route.page key={segments.value.join("/")} names={names} />;
}

function Navigation({ onHelp, onPalette }: { onHelp: () => void; onPalette: () => void }) {
  const current = segments.value[0] ?? "";
  return (
    <header class="bar">
      <Link to={[]} class="brand">
        Stoker
      </Link>
      <nav aria-label="Pages">
        {SECTIONS.filter((section) => !section.isMore).map(({ segment, title }) => (
          <Link key={segment} to={segment ? [segment] : []} aria-current={current === segment ? "page" : undefined}>
            {title}
          </Link>
        ))}
        <More sections={SECTIONS.filter((section) => section.isMore)} current={current} />
      </nav>
      <div class="account">
        {session.has_projects ? (
          <a href={root} title="Choose another project">
            {session.project.name}
          </a>
        ) : (
          <span>{session.project.name}</span>
        )}
        <span class="quiet">
          {session.user}
          {session.can_write ? "" : " (reader)"}
        </span>
        <button class="link" onClick={onPalette} title="Go to … (Ctrl-K)">
          Go to …
        </button>
        <button class="link" onClick={onHelp} aria-label="Keys" title="Keys (?)">
          ?
        </button>
        <form method="post" action={`${root}sign-out`}>
          <input type="hidden" name="csrf" value={session.csrf} />
          <button class="link">Sign out</button>
        </form>
      </div>
    </header>
  );
}

/** The pages that few people open each day: a menu, which a wide window shows as links beside the others. */
function More({ sections, current }: { sections: readonly Section[]; current: string }) {
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

/** Says that the server was upgraded while the page was open. */
function Upgraded() {
  if (!isUpgraded.value) return null;
  return (
    <p class="banner upgraded" role="status">
      Stoker was upgraded. <button onClick={() => location.reload()}>Reload</button>
    </p>
  );
}

/** Asks for the password again when the session has ended; the page behind keeps its state. */
function SignIn() {
  const submit = async (values: FormData) => {
    const problem = await renew(String(values.get("password")), String(values.get("domain") ?? ""));
    if (problem) throw new Error(problem);
  };
  return (
    <Dialog title="Your session has ended">
      <Form label="Sign in" submit={submit} buttons={<a href={`${root}sign-in`}>Sign in as another user</a>}>
        <p>Sign in again as {session.user}. The page stays as it is.</p>
        {session.domain && <TextField name="domain" label="Domain" value={session.domain} isRequired />}
        <TextField name="password" label="Password" type="password" autocomplete="current-password" isRequired isFirst />
      </Form>
    </Dialog>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  const keys = [...KEYS, ...SECTIONS.map(({ key, title }) => [`g ${key}`, title.toLowerCase()] as const)];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <div class="buttons">
        <button onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}
