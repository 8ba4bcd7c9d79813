// A question to the server that a screen shows the answer of, once or again and again.
import { useEffect, useState } from "../vendor/hooks.js";
import { get } from "./api.js";

const NOTHING = { value: null, error: null };

/** `{value, error, again}` of a GET; asked every `everyMs` while the page is looked at; null asks nothing. */
export function useAnswer(path, everyMs = 0) {
  const [answer, setAnswer] = useState({ path, ...NOTHING });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    let ended = false;
    let timer = 0;
    const ask = async () => {
      if (!document.hidden) {
        try {
          const value = await get(path);
          if (!ended) setAnswer({ path, value, error: null });
        } catch (error) {
          if (!ended) setAnswer((old) => ({ path, value: old.path === path ? old.value : null, error }));
        }
      }
      if (!ended && everyMs) timer = setTimeout(ask, everyMs);
    };
    ask();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [path, everyMs, turn]);
  const current = answer.path === path ? answer : NOTHING;
  return { value: current.value, error: current.error, again: () => setTurn((n) => n + 1) };
}
