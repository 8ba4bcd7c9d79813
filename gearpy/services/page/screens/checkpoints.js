// Epochs: how fast they end, how large they are, which are kept.
import { html } from "../app/html.js";
import { Chart } from "../charts/chart.js";
import { useAnswer } from "../data/ask.js";
import { eventsOf } from "./events.js";
import { Age, Num, Trouble } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { eventTime } from "../words/time.js";
import { bytes, count, span } from "../words/units.js";

const EVERY_MS = 5000;

export function Checkpoints({ view, series }) {
  const { value, error } = useAnswer(`appmaster/${view.app_id}/checkpoints`, view.finished_ms ? 0 : EVERY_MS);
  const all = { times: series.at_ms, events: eventsOf(view) };
  const stored = [...(value?.epochs ?? [])].reverse();
  return html`
    <section class="charts three" aria-label="the last ten minutes">
      <${Chart} ...${all} title="Time to end an epoch" lines=${[{ values: series.epoch_ms, colour: "blue", fill: true, format: span }]} />
      <${Chart} ...${all} title="Size of an epoch" lines=${[{ values: series.epoch_bytes, colour: "violet", fill: true, format: bytes }]} />
      <${Chart} ...${all} title="State" lines=${[{ values: series.state_bytes, colour: "blue", fill: true, format: bytes }]} />
    </section>
    <section class="card"><h2>Regions</h2><${Table} label="regions" rows=${view.epochs} keyOf=${(row) => row.region} empty="No epoch has ended yet." columns=${[
      { name: "region", cell: (row) => row.region },
      { name: "newest epoch", number: true, cell: (row) => (row.epoch ? count(row.epoch)[0] : "none") },
      { name: "stored", cell: (row) => html`<${Age} at=${row.stored_ms} />` },
      { name: "size", number: true, cell: (row) => Num(bytes(row.size_bytes)) },
      { name: "kept", number: true, cell: (row) => row.kept },
      { name: "given up", number: true, cell: (row) => row.aborted },
      { name: "fallen back", number: true, wide: true, cell: (row) => row.fallbacks },
      { name: "last given up because", words: true, wide: true, cell: (row) => row.last_abort || "—" },
    ]} /></section>
    <section class="card"><header><h2>Kept checkpoints</h2><span class="quiet">a restart goes on from the newest</span></header>
      <${Trouble} error=${value ? null : error} />
      ${value && html`<${Table} label="kept checkpoints" rows=${stored} keyOf=${(row) => `${row.region} ${row.epoch}`} empty="None is kept." columns=${KEPT} />`}
    </section>`;
}

const KEPT = [
  { name: "epoch", number: true, by: (row) => row.epoch, cell: (row) => count(row.epoch)[0] },
  { name: "region", number: true, cell: (row) => row.region },
  { name: "stored", by: (row) => row.stored_ms, cell: (row) => html`<${Age} at=${row.stored_ms} />` },
  { name: "size", number: true, by: (row) => row.size_bytes, cell: (row) => Num(bytes(row.size_bytes)) },
  { name: "files", number: true, wide: true, by: (row) => row.files, cell: (row) => row.files },
  { name: "clock", wide: true, cell: (row) => (row.clock_ms === null ? "—" : eventTime(row.clock_ms)) },
];
