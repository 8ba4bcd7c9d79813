// A short word on what has just been done, for eyes and for screen readers.
import { html } from "../app/html.js";
import { createStore, useStore } from "../data/store.js";

const SHOWN_MS = 4000;
const text = createStore("");
let timer = 0;

export function say(words) {
  text.set(words);
  clearTimeout(timer);
  timer = setTimeout(() => text.set(""), SHOWN_MS);
}

export function Said() {
  return html`<div class="said" role="status" aria-live="polite">${useStore(text)}</div>`;
}
