// Numbers, ages, names and levels as elements.
import { html, useEffect, useState } from "../app/html.js";
import { application, overview } from "../data/live.js";
import { absolute, ago, ticking } from "../words/time.js";
import { say } from "./said.js";

/** A number with its unit set small: `Num(rate(x))`. */
export const Num = (pair) => html`${pair[0]}${pair[1] && html`<span class="unit">\u202f${pair[1]}</span>`}`;

/** How long ago something was; the date on hover. */
export function Age({ at }) {
  const [text, setText] = useState(() => (at ? ago(at) : ""));
  useEffect(() => {
    if (!at) return undefined;
    setText(ago(at));
    return ticking.listen(() => setText(ago(at)));
  }, [at]);
  if (!at) return "—";
  return html`<time class="nowrap" datetime=${new Date(at).toISOString()} title=${absolute(at)}>${text}</time>`;
}

/** An identifier that a click copies. */
export function Copy({ text, shown = text }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(String(text));
    } catch {
      // Clipboards are for secure addresses only; a selection works everywhere.
      const field = document.createElement("textarea");
      field.value = String(text);
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    say(`copied: ${text}`);
  };
  return html`<button class="copy" title="copy ${text}" onClick=${copy}>${shown}</button>`;
}

/** What to type into a terminal. */
export const Command = ({ text }) =>
  html`<div class="command"><code>${text}</code><${Copy} text=${text} shown="copy" /></div>`;

const MARKS = { ok: "✓", info: "·", warn: "!", bad: "✗" }; // As in the terminal.

/** A level as a shape, so that colour is not all. */
export const Mark = ({ level }) =>
  html`<span class="mark ${level}" role="img" aria-label=${level}>${MARKS[level] ?? "·"}</span>`;

export const Status = ({ status }) => html`<span class="chip ${status}">${status}</span>`;

/** A headline with its advice. */
export function Notice({ level, text, advice, children }) {
  return html`<div class="notice ${level}" role=${level === "bad" ? "alert" : "status"}>
    <${Mark} level=${level} /><b>${withCommands(sentence(text))}</b>${advice && html` ${withCommands(sentence(advice))}`}${children}
  </div>`;
}

/** Commands within a text can be copied. */
const withCommands = (text) =>
  text.split(/'(gear [^']+)'/).map((part, at) => (at % 2 ? html`<${Copy} text=${part} shown=${html`<code>${part}</code>`} />` : part));

/** A text as a sentence: a capital first, a full stop last. */
export const sentence = (text) => capital(text) + (/[.!?…:]$/.test(text) ? "" : ".");

/** A capital first; but names of the program, such as those of steps, stay as they are. */
export const capital = (text) => (beginsWithName(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));

function beginsWithName(text) {
  const apps = overview.get()?.applications ?? [];
  const steps = (application.get().view?.processors ?? []).flatMap((each) => [each.name, ...each.steps]);
  return [...apps.map((each) => each.name), ...steps].some((name) => name && text.startsWith(name) && !/[A-Za-z]/.test(text.charAt(name.length)));
}

/** What a question was refused with, and the fix. */
export const Trouble = ({ error }) =>
  error && html`<${Notice} level="bad" text=${error.message} advice=${error.fix ?? ""} />`;
