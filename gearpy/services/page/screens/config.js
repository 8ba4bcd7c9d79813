// The settings that hold for an application, and where each was set.
import { html, useState } from "../app/html.js";
import { useAnswer } from "../data/ask.js";
import { Copy, Trouble } from "../parts/words.js";
import { Table } from "../parts/table.js";

export function Config({ view }) {
  const { value, error } = useAnswer(`appmaster/${view.app_id}/config`);
  const [text, setText] = useState("");
  const rows = flat(value ?? {}).filter((row) => row.key.toLowerCase().includes(text.toLowerCase()));
  return html`<section class="card"><header><h2>Configuration</h2>
      <label><span class="hidden">filter by key</span><input placeholder="key" value=${text} onInput=${(event) => setText(event.target.value)} /></label></header>
    <${Trouble} error=${error} />
    ${value && html`<${Table} label="settings" rows=${rows} keyOf=${(row) => row.key} empty="No key is like this." columns=${[
      { name: "key", by: (row) => row.key, cell: (row) => html`<${Copy} text=${row.key} shown=${html`<code>${row.key}</code>`} />` },
      { name: "value", words: true, cell: (row) => html`<code class="wrap">${row.value}</code>` },
    ]} />`}
  </section>`;
}

/** Nested tables as rows with dotted keys. */
function flat(table, before = "") {
  return Object.entries(table).flatMap(([key, value]) =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? flat(value, `${before}${key}.`)
      : [{ key: before + key, value: typeof value === "string" ? value : JSON.stringify(value) }]);
}
