// A failure: cause, step, line of code, record, traceback.
import { html } from "../app/html.js";
import { eventTime } from "../words/time.js";
import { Copy } from "./words.js";

/** The command that runs the task again, with the state that it had; see `gear debug`. */
function again(error, app, record) {
  if (!error.epoch || !app) return "";
  return record ? `gear debug ${app} --record ${record}` : `gear debug ${app} ${error.task} --epoch ${error.epoch - 1} --until ${error.epoch}`;
}

export function ErrorCard({ error, app, record, title, open = true, bare = false }) {
  const command = again(error, app, record);
  const fields = [
    ["step", error.operator],
    ["task", error.task],
    ["at", error.source && html`<${Copy} text=${error.source} />`],
    ["line", error.source_line && html`<code class="wrap">${error.source_line}</code>`],
    ["record", error.record && html`<code class="wrap">${error.record}</code>`],
    ["event time", error.event_time_ms !== null && error.event_time_ms !== undefined && eventTime(error.event_time_ms)],
    ["run again", command && html`<${Copy} text=${command} />`],
  ].filter(([, value]) => value);
  return html`<section class=${bare ? "bare" : "card"} aria-label=${title}>
    ${title && html`<h2>${title}</h2>`}
    <p class="cause">${error.cause}</p>
    <dl class="fields">${fields.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    ${error.traceback && html`<details open=${open && !fields.length}><summary>traceback</summary><pre class="text">${error.traceback}</pre></details>`}
  </section>`;
}
