// The whole cluster at a glance: what needs attention first, then applications, workers, masters.
import { html } from "../app/html.js";
import { toApp } from "../app/route.js";
import { mayStart, session } from "../data/api.js";
import { overview } from "../data/live.js";
import { useStore } from "../data/store.js";
import { Copy, Mark, Num, sentence } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { bytes, cores, many, rate } from "../words/units.js";
import { AppTable, NoApplications } from "./app_table.js";
import { WorkerTable } from "./workers.js";

const LIVING = ["pending", "active"];
const ENDED_SHOWN = 8;

export function Overview() {
  const all = useStore(overview);
  const who = useStore(session);
  const canStart = mayStart(who);
  const ofCluster = !who?.of_one_run; // A run has neither workers nor masters that anybody reaches.
  if (!all) return html`<p class="quiet">Asking the cluster …</p>`;
  const living = all.applications.filter((app) => LIVING.includes(app.status));
  const ended = all.applications.filter((app) => !LIVING.includes(app.status)).reverse();
  const slots = all.workers.reduce((sum, each) => sum + each.slots, 0);
  const free = all.workers.reduce((sum, each) => sum + each.free_slots, 0);
  const flow = living.reduce((sum, app) => sum + (app.records_in_rate ?? 0), 0);
  return html`<div class="stack">
    <h1>Overview</h1>
    <${Attention} items=${all.attention} alerts=${all.alerts} />
    <section class="card" aria-label="figures"><dl class="facts">
      <div><dt>applications running</dt><dd>${living.length}</dd></div>
      <div><dt>records in</dt><dd>${Num(rate(flow))}</dd></div>
      ${ofCluster && html`<div><dt>slots in use</dt><dd>${(slots - free).toLocaleString("en")}<span class="unit"> of ${slots.toLocaleString("en")}</span></dd></div>
      <div><dt>workers</dt><dd>${all.workers.length}</dd></div>`}
      ${ofCluster && all.masters.length > 0 && html`<div><dt>masters</dt><dd>${all.masters.length}</dd></div>`}
      <div><dt>version</dt><dd>${all.version}</dd></div>
    </dl></section>
    ${!all.applications.length && html`<${NoApplications} />`}
    ${living.length > 0 && html`<section class="card"><header><h2>Running</h2>${canStart && html`<a href="#/submit">submit another</a>`}</header><${AppTable} apps=${living} /></section>`}
    ${ended.length > 0 && html`<section class="card"><header><h2>Ended</h2>${ended.length > ENDED_SHOWN && html`<a href="#/apps">all ${ended.length}</a>`}</header><${AppTable} apps=${ended.slice(0, ENDED_SHOWN)} ended /></section>`}
    ${ofCluster && html`<section class="card"><h2>Workers</h2><${WorkerTable} workers=${all.workers} /></section>`}
    ${ofCluster && all.masters.length > 0 && html`<section class="card"><h2>Masters</h2><${Table} label="masters" rows=${all.masters} keyOf=${(row) => row.address} columns=${[
      { name: "address", cell: (row) => (row.address ? html`<${Copy} text=${row.address} />` : "in this process") },
      { name: "role", cell: (row) => (row.leader ? "leader" : "standby") },
      { name: "memory", number: true, cell: (row) => Num(bytes(row.rss_bytes)) },
      { name: "CPU", number: true, cell: (row) => Num(cores(row.cpu)) },
    ]} /></section>`}
  </div>`;
}

function Attention({ items, alerts }) {
  if (!items.length && alerts.length) return html`<p><${Mark} level=${alerts.some((each) => each.level === "bad") ? "bad" : "warn"} /><a href="#/alerts">${many(alerts.length, "alert")}</a></p>`;
  if (!items.length) return html`<p class="quiet"><${Mark} level="ok" />Nothing needs attention.</p>`;
  const level = items.some((each) => each.level === "bad") ? "bad" : items.some((each) => each.level === "warn") ? "warn" : "info";
  return html`<section class="notice ${level}" aria-label="what needs attention">
    <ul>${items.map((each) => html`<li><${Mark} level=${each.level} />${sentence(each.text)}${each.app_id !== null && html` <a href=${toApp(each.app_id)}>Look</a>`}</li>`)}</ul>
  </section>`;
}
