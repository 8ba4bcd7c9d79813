// Dark, light, or as the machine says; and the colours as a canvas needs them.
import { createStore } from "../data/store.js";

const KEY = "gearpy.theme";
const machine = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;

export const theme = createStore(now());
machine.addEventListener("change", () => theme.set(now()));

function now() {
  return root.dataset.theme ?? (machine.matches ? "dark" : "light");
}

export function switchTheme() {
  const next = now() === "dark" ? "light" : "dark";
  // Back at what the machine says: follow it again.
  if (next === (machine.matches ? "dark" : "light")) {
    delete root.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    root.dataset.theme = next;
    localStorage.setItem(KEY, next);
  }
  theme.set(next);
}

/** A colour of the style sheet as the browser resolves it. */
export function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
