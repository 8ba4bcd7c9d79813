// Workers and their slots.
import { html } from "../app/html.js";
import { overview } from "../data/live.js";
import { useStore } from "../data/store.js";
import { Copy, Num } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { clock } from "../words/time.js";
import { bytes, cores } from "../words/units.js";

const DRAWN_SLOTS = 64;

export function Workers() {
  const all = useStore(overview);
  if (!all) return html`<p class="quiet">Asking the cluster …</p>`;
  return html`<div class="stack"><h1>Workers</h1>
    <section class="card"><${WorkerTable} workers=${all.workers} /></section>
    <p class="quiet">A task needs one slot. An application that finds none free is pending until one is.</p>
  </div>`;
}

export const WorkerTable = ({ workers }) => html`<${Table} label="workers" rows=${workers} keyOf=${(row) => row.id}
  empty="No worker is there, so nothing can run: start one with bin/worker." columns=${[
    { name: "worker", by: (row) => row.id, cell: (row) => html`${row.id} <span class="quiet">${noteOf(row)}</span>` },
    { name: "address", wide: true, by: (row) => row.address, cell: (row) => (row.address ? html`<${Copy} text=${row.address} />` : html`<span class="quiet">in the process of the master</span>`) },
    { name: "slots in use", by: (row) => row.slots - row.free_slots, cell: (row) => html`<${Slots} ...${row} />` },
    { name: "executors", number: true, wide: true, by: (row) => row.executors, cell: (row) => row.executors },
    { name: "memory", number: true, by: (row) => row.rss_bytes, cell: (row) => Num(bytes(row.rss_bytes)) },
    { name: "CPU", number: true, by: (row) => row.cpu, cell: (row) => Num(cores(row.cpu)) },
  ]} />`;

function noteOf(worker) {
  if (worker.is_leaving) return "leaving";
  return worker.aside_until_ms ? `came and went: gets nothing until ${clock(worker.aside_until_ms)}` : "";
}

function Slots({ slots, free_slots: free }) {
  const used = slots - free;
  const words = `${used.toLocaleString("en")} of ${slots.toLocaleString("en")}`;
  if (slots > DRAWN_SLOTS) return words;
  return html`<div class="row"><div class="slots" aria-hidden="true">${Array.from({ length: slots }, (_, at) => html`<i class=${at < used ? "used" : ""}></i>`)}</div><span>${words}</span></div>`;
}
