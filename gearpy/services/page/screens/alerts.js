// Rules that hold for longer than they should, over all applications.
import { html } from "../app/html.js";
import { toApp } from "../app/route.js";
import { useAnswer } from "../data/ask.js";
import { overview } from "../data/live.js";
import { useStore } from "../data/store.js";
import { Age, Mark } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { joined, share, span } from "../words/units.js";

const EVERY_MS = 5000;

export function Alerts() {
  const all = useStore(overview);
  const { value } = useAnswer("alerts", EVERY_MS);
  if (!all) return html`<p class="quiet">Asking the cluster …</p>`;
  return html`<div class="stack"><h1>Alerts</h1><section class="card"><${AlertTable} alerts=${all.alerts} named /></section>
    ${value && html`<section class="card"><h2>Lately</h2><${HistoryTable} changes=${[...value.history].reverse()} /></section>
    <section class="card"><h2>Rules</h2><${RuleTable} rules=${value.rules} firing=${all.alerts} />
      <p class="quiet after">Limits, and alerts.off, which leaves rules out, are keys of the configuration.</p></section>`}</div>`;
}

export const AlertTable = ({ alerts, named = false }) => html`<${Table} label="alerts" rows=${alerts} keyOf=${(row) => `${row.app_id} ${row.rule}`} empty="No rule is broken." columns=${[
  { name: "rule", cell: (row) => html`<${Mark} level=${row.level} />${row.rule}` },
  { name: "since", by: (row) => row.since_ms, cell: (row) => html`<${Age} at=${row.since_ms} />` },
  { name: "what", words: true, cell: (row) => html`${named && html`<a href=${toApp(row.app_id)}>${row.name}</a>: `}${row.text}` },
]} />`;

const HistoryTable = ({ changes }) => html`<${Table} label="what has fired lately" rows=${changes} keyOf=${(row) => `${row.at_ms} ${row.app_id} ${row.alert.rule} ${row.state}`} empty="Nothing has fired yet." columns=${[
  { name: "when", cell: (row) => html`<${Age} at=${row.at_ms} />` },
  { name: "rule", cell: (row) => html`<${Mark} level=${row.state === "firing" ? row.alert.level : "ok"} />${row.alert.rule} ${row.state === "firing" ? "" : "resolved"}` },
  { name: "application", label: true, cell: (row) => html`<a href=${toApp(row.app_id)}>${row.name}</a>` },
  { name: "what", wide: true, words: true, cell: (row) => row.alert.text },
]} />`;

const LIMITS = { seconds: (value) => joined(span(value * 1000)), share: (value) => joined(share(value)), count: String };

const RuleTable = ({ rules, firing }) => html`<${Table} label="rules" rows=${rules} keyOf=${(row) => row.rule} columns=${[
  { name: "rule", cell: (row) => row.rule },
  { name: "level", wide: true, cell: (row) => row.level },
  { name: "fires at", number: true, cell: (row) => LIMITS[row.unit](row.above) },
  { name: "for", number: true, cell: (row) => (row.for_s ? joined(span(row.for_s * 1000)) : "at once") },
  { name: "now", cell: (row) => (row.is_off ? "off" : firing.some((each) => each.rule === row.rule) ? "fires" : "quiet") },
]} />`;
