import "./styles/tokens.css";
import "./styles/base.css";

/** Signs in with the one-time code of the URL's fragment, which is removed from the address first. */
async function enter(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code") ?? "";
  history.replaceState(null, "", location.pathname);
  const csrf = document.querySelector<HTMLMetaElement>('meta[name="stoker-csrf"]')?.content ?? "";
  const response = await fetch("enter", { method: "POST", body: new URLSearchParams({ code, csrf }), headers: { Accept: "application/json" } });
  const answer = (await response.json()) as { next?: string; error?: { message?: string } };
  if (response.ok && answer.next) location.replace(answer.next);
  else throw new Error(answer.error?.message ?? `The server answered ${response.status}`);
}

enter().catch((problem: unknown) => {
  const state = document.getElementById("state")!;
  state.className = "problem";
  state.textContent = `${(problem as Error).message}.`;
});
