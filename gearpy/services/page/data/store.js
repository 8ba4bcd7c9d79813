// A value that tells when it changes, and the hook that draws again when it does.
import { useLayoutEffect, useState } from "../vendor/hooks.js";

export function createStore(value) {
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const each of [...listeners]) each(value);
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The value of a store, or what `pick` takes of it; draws again only when that changes. */
export function useStore(store, pick = (value) => value) {
  const [, redraw] = useState(0);
  const picked = pick(store.get());
  useLayoutEffect(() => { // At once: what changes before the next frame is drawn, too.
    let last = picked;
    const look = (value) => {
      const next = pick(value);
      if (Object.is(next, last)) return;
      last = next;
      redraw((n) => n + 1);
    };
    look(store.get()); // It may have changed between drawing and now.
    return store.listen(look);
  }, [store]);
  return picked;
}
