// Windows above the page: one question before something is stopped; the browser keeps the focus inside.
import { html, useLayoutEffect, useRef, useState } from "../app/html.js";
import { createStore, useStore } from "../data/store.js";
import { Trouble } from "./words.js";

const open = createStore(null);

/** Ask once; `act` is called on a yes, and its refusal is shown in the window. */
export function ask({ title, text, yes, act, danger = false, note = null }) {
  open.set({ title, text, yes, act, danger, note });
}

/** Show something else in a window: a component that is given `close`. */
export function show(content, label) {
  open.set({ content, label });
}

export const closeDialog = () => open.set(null);
export const isOpen = () => open.get() !== null;

export function Dialogs() {
  const what = useStore(open);
  const element = useRef(null);
  useLayoutEffect(() => { // At once: a key that is pressed next is meant for the window.
    if (what) element.current?.showModal();
  }, [what]);
  if (!what) return null;
  const close = () => {
    element.current?.close();
    open.set(null);
  };
  const ended = () => element.current?.open || close(); // Told late: another one may be shown by then.
  const beside = (event) => event.target === element.current && close();
  return html`<dialog ref=${element} onCancel=${close} onClose=${ended} onClick=${beside} aria-label=${what.title ?? what.label}>
    ${what.content ? html`<${what.content} close=${close} />` : html`<${Question} ...${what} close=${close} />`}
  </dialog>`;
}

function Question({ title, text, yes, act, danger, note, close }) {
  const [state, setState] = useState({ busy: false, error: null });
  const agree = async () => {
    setState({ busy: true, error: null });
    try {
      await act();
      close();
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<h2>${title}</h2>
    ${text.map((each) => html`<p>${each}</p>`)}
    ${note && html`<p class="quiet">${note}</p>`}
    <${Trouble} error=${state.error} />
    <footer>
      <button onClick=${close}>Cancel</button>
      <button class=${danger ? "danger" : "main"} disabled=${state.busy} onClick=${agree}>${yes}</button>
    </footer>`;
}
