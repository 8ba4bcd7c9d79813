// A look at the state of a step, as at the end of an epoch; asked for, as it is read from the store.
import { html, useState } from "../app/html.js";
import { get } from "../data/api.js";
import { Table } from "../parts/table.js";
import { Trouble } from "../parts/words.js";
import { eventTime } from "../words/time.js";
import { count, many } from "../words/units.js";

const ROWS = 20;

export function KeptState({ app, step }) {
  const [key, setKey] = useState("");
  const [name, setName] = useState("");
  const [{ value, error }, setFound] = useState({ value: null, error: null });
  const look = async (event) => {
    event.preventDefault();
    const wanted = new URLSearchParams({ limit: ROWS, ...(key && { key }), ...(name && { state: name }) });
    try {
      setFound({ value: await get(`appmaster/${app}/state/${step}?${wanted}`), error: null });
    } catch (refused) {
      setFound({ value: null, error: refused });
    }
  };
  return html`<section class="card" aria-label="state"><header><h2>State</h2>
      <span class="quiet">${value ? `epoch ${count(value.moment.epoch)[0]}: ${many(value.total, "row")}` : "as at the end of the newest epoch"}</span></header>
    <form class="row" onSubmit=${look}>
      <input aria-label="key" placeholder="key (all if empty)" value=${key} onInput=${(event) => setKey(event.target.value)} />
      <input aria-label="state, if there are several" placeholder="state, if there are several" value=${name} onInput=${(event) => setName(event.target.value)} />
      <button title="read the state of this step from the checkpoint store">Look inside</button>
    </form>
    <${Trouble} error=${error} />
    ${value && html`<${Table} label="state" rows=${value.rows} keyOf=${(row) => JSON.stringify(row)} empty="no such key" columns=${value.columns.map(shown)} />`}
  </section>`;
}

/** A value as a text; what is a time by its name is read as one. */
function told(name, value) {
  if (name.endsWith("_ms") && Number.isInteger(value)) return html`<span title=${value}>${eventTime(value)}</span>`;
  return typeof value === "string" ? value : JSON.stringify(value);
}

const shown = ({ name, type }) => ({
  name,
  number: /^(u?int|double|float)/.test(type),
  wide: name === "key_group",
  words: true,
  cell: (row) => told(name, row[name]),
});
