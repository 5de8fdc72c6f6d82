import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { Loading, Problem } from "./parts";

type Page = ComponentType<{ names: string[] }>;

/** A page that is loaded when it first opens: the module of `load` exports it as `name`. */
export function lazy(load: () => Promise<Record<string, unknown>>, name: string): ComponentType<{ names: string[] }> {
  let page: Page | null = null;
  return function LazyPage(props) {
    const [, setRound] = useState(0);
    const [error, setError] = useState<ApiError | null>(null);
    const start = () => {
      setError(null);
      load().then(
        (module) => {
          page = module[name] as Page;
          setRound((round) => round + 1);
        },
        () => setError(new ApiError("This part of the console cannot be loaded: the server may have a newer version. Reload the page.", 0, "")),
      );
    };
    useEffect(() => {
      if (page === null) start();
    }, []);
    if (page !== null) {
      const Loaded = page;
      return <Loaded {...props} />;
    }
    if (error) return <Problem error={error} retry={start} />;
    return <Loading />;
  };
}
