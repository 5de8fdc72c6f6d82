import type { ComponentType } from "preact";
import { ApiError } from "../api/client";
import { useData } from "./data";
import { Data } from "./parts";

type Page = ComponentType<{ names: string[] }>;

/** A page that is loaded when it first opens: the module of `load` exports it as `name`. */
export function lazy(load: () => Promise<Record<string, unknown>>, name: string): Page {
  let page: Page | null = null;
  const open = async () => {
    const module = await load().catch(() => {
      throw new ApiError("This part of the console cannot be loaded: the server may have a newer version. Reload the page.", 0, "");
    });
    page = module[name] as Page;
    return page;
  };
  return function LazyPage(props) {
    const loaded = useData("page", open, 0);
    const Loaded = page;
    return Loaded ? <Loaded {...props} /> : <Data of={loaded}>{() => null}</Data>;
  };
}
