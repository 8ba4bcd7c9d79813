// Tables of one application: steps, executors, events.
import { html } from "../app/html.js";
import { toApp } from "../app/route.js";
import { session } from "../data/api.js";
import { useStore } from "../data/store.js";
import { ShareBar } from "../parts/bars.js";
import { Age, Copy, Num } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { LOUD } from "../words/events.js";
import { brief, bytes, cores, count, few, plain, rate, share, span } from "../words/units.js";

export const StepTable = ({ view, picked }) => html`<${Table} label="steps" rows=${view.processors} keyOf=${(row) => row.id} picked=${picked} columns=${[
  { name: "step", label: true, by: (row) => row.name, cell: (row) => html`<a href=${toApp(view.app_id, `step/${row.id}`)}>${brief(row)}</a>` },
  { name: "tasks", number: true, wide: true, by: (row) => row.parallelism, cell: (row) => row.parallelism },
  ...(view.finished_ms ? IN_ALL : LATELY),
]} />`;

/** Of an application that has ended: what all of it came to. */
const IN_ALL = [
  ["in", (row) => row.records_in], ["out", (row) => row.records_out], ["late", (row) => row.late],
  ["skipped", (row) => row.skipped], ["quarantined", (row) => row.quarantined],
].map(([name, by], at) => ({ name, by, number: true, wide: at > 2, cell: (row) => count(by(row))[0] }));

const LATELY = [
  { name: "in", number: true, by: (row) => row.records_in_rate, cell: (row) => Num(rate(row.records_in_rate)) },
  { name: "out", number: true, by: (row) => row.records_out_rate, cell: (row) => Num(rate(row.records_out_rate)) },
  { name: "busy", by: (row) => row.busy, cell: (row) => html`<${ShareBar} busy=${row.busy} waits=${row.backpressured} />` },
  { name: "waits", number: true, wide: true, by: (row) => row.backpressured, cell: (row) => Num(share(row.backpressured)) },
  { name: "queue", number: true, wide: true, by: (row) => row.queue_records, cell: (row) => Num(few(row.queue_records)) },
  { name: "behind", number: true, by: (row) => row.watermark_lag_ms, cell: (row) => Num(span(row.watermark_lag_ms)) },
  { name: "p99", number: true, wide: true, by: (row) => row.latency_p99_ms, cell: (row) => Num(span(row.latency_p99_ms)) },
  { name: "state", number: true, wide: true, by: (row) => row.state_bytes, cell: (row) => Num(bytes(row.state_bytes)) },
  { name: "late", number: true, wide: true, by: (row) => row.late, cell: (row) => Num(few(row.late)) },
];

export function ExecutorTable({ view }) {
  const columns = executorColumns(view, useStore(session)?.of_one_run);
  return html`<${Table} label="executors" rows=${view.executors} keyOf=${(row) => row.id} columns=${columns} />`;
}

const executorColumns = (view, ofOneRun) => [
  { name: "executor", by: (row) => row.id, cell: (row) => html`<a href=${toApp(view.app_id, `executor/${row.id}`)}>${row.id < 0 ? "app master" : `executor ${row.id}`}</a>` },
  { name: "status", by: (row) => row.status, cell: (row) => (view.finished_ms ? "ended" : row.status) },
  ...(ofOneRun ? [] : [{ name: "worker", number: true, wide: true, by: (row) => row.worker_id, cell: (row) => row.worker_id }]),
  { name: "process", number: true, wide: true, cell: (row) => (row.pid ? html`<${Copy} text=${row.pid} />` : "—") },
  ...(view.of_actors ? [] : MEASURED), // Those of actors run no tasks, and report nothing.
  { name: "launch", number: true, wide: true, by: (row) => row.launch, cell: (row) => row.launch },
];

const MEASURED = [
  { name: "tasks", number: true, by: (row) => row.tasks.length, cell: (row) => row.tasks.length },
  { name: "memory", number: true, by: (row) => row.rss_bytes, cell: (row) => Num(bytes(row.rss_bytes)) },
  { name: "CPU", number: true, by: (row) => row.cpu, cell: (row) => Num(cores(row.cpu)) },
  { name: "gc", number: true, wide: true, by: (row) => row.gc_pause_share, cell: (row) => Num(share(row.gc_pause_share)) },
];

export const EventTable = ({ events }) => html`<${Table} label="events" rows=${[...events].reverse()} keyOf=${(row) => `${row.at_ms} ${row.text}`} empty="Nothing has happened yet." columns=${[
  { name: "when", cell: (row) => html`<${Age} at=${row.at_ms} />` },
  { name: "kind", cell: (row) => html`<span class="nowrap ${LOUD.has(row.kind) ? "mark bad" : ""}">${LOUD.has(row.kind) && "✗ "}${row.kind}</span>` },
  { name: "what", words: true, cell: (row) => row.text },
]} />`;

/** Metrics that the program makes itself, of all tasks of a step together. */
export const MetricTable = ({ metrics }) => html`<${Table} label="metrics of the program" rows=${metrics} keyOf=${(row) => row.name} columns=${[
  { name: "metric", label: true, by: (row) => row.name, cell: (row) => row.name },
  { name: "kind", wide: true, by: (row) => row.kind, cell: (row) => row.kind },
  { name: "value", number: true, by: (row) => row.value, cell: (row) => plain(row.value) },
  { name: "rate", number: true, by: (row) => row.rate, cell: (row) => Num(rate(row.rate)) },
  { name: "p50", number: true, by: (row) => row.p50, cell: (row) => plain(row.p50) },
  { name: "p99", number: true, by: (row) => row.p99, cell: (row) => plain(row.p99) },
]} />`;
