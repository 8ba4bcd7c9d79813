// Rules that hold for longer than they should, over all applications.
import { html } from "../app/html.js";
import { toApp } from "../app/route.js";
import { overview } from "../data/live.js";
import { useStore } from "../data/store.js";
import { Age, Mark } from "../parts/words.js";
import { Table } from "../parts/table.js";

export function Alerts() {
  const all = useStore(overview);
  if (!all) return html`<p class="quiet">Asking the cluster …</p>`;
  return html`<div class="stack"><h1>Alerts</h1><section class="card"><${AlertTable} alerts=${all.alerts} named /></section></div>`;
}

export const AlertTable = ({ alerts, named = false }) => html`<${Table} label="alerts" rows=${alerts} keyOf=${(row) => `${row.app_id} ${row.rule}`} empty="No rule is broken." columns=${[
  { name: "rule", cell: (row) => html`<${Mark} level=${row.level} />${row.rule}` },
  ...(named ? [{ name: "application", label: true, by: (row) => row.name, cell: (row) => html`<a href=${toApp(row.app_id)}>${row.name}</a>` }] : []),
  { name: "since", by: (row) => row.since_ms, cell: (row) => html`<${Age} at=${row.since_ms} />` },
  { name: "what", words: true, cell: (row) => row.text },
]} />`;
