// Tasks of one step, and why one holds up others.
import { html } from "../app/html.js";
import { toApp } from "../app/route.js";
import { ShareBar } from "../parts/bars.js";
import { Num } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { bytes, few, rate, span } from "../words/units.js";

export const TaskTable = ({ tasks, app, empty }) => html`<${Table} label="tasks" rows=${tasks} keyOf=${(row) => row.task} empty=${empty} columns=${[
  { name: "task", by: (row) => row.task, cell: (row) => row.task },
  { name: "where", by: (row) => row.executor_id, cell: (row) => (row.executor_id === null ? "—" : html`<a href=${toApp(app, `executor/${row.executor_id}`)}>executor ${row.executor_id}</a>`) },
  { name: "in", number: true, by: (row) => row.records_in_rate, cell: (row) => Num(rate(row.records_in_rate)) },
  { name: "out", number: true, wide: true, by: (row) => row.records_out_rate, cell: (row) => Num(rate(row.records_out_rate)) },
  { name: "busy", by: (row) => row.busy, cell: (row) => html`<${ShareBar} busy=${row.busy} waits=${row.backpressured} />` },
  { name: "queue", number: true, wide: true, by: (row) => row.queue_records, cell: (row) => Num(few(row.queue_records)) },
  { name: "behind", number: true, by: (row) => row.watermark_lag_ms, cell: (row) => Num(span(row.watermark_lag_ms)) },
  { name: "state", number: true, wide: true, by: (row) => row.state_bytes, cell: (row) => Num(bytes(row.state_bytes)) },
  { name: "why", words: true, cell: (row) => row.why ?? "" },
]} />`;
