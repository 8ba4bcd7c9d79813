// What Spark has taken: each consumer of a sink, its last batch, and how far it is behind.
import { html } from "../app/html.js";
import { Age, Notice, Num } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { count, few, rate } from "../words/units.js";

export function HandOff({ view }) {
  const troubled = view.consumers.filter(({ report }) => report.trouble);
  return html`
    ${troubled.map(({ sink, report }) => html`<${Notice} level="bad" text=${`${report.name} behind ${sink}: ${report.trouble}`} />`)}
    <section class="card"><header><h2>Consumers</h2><span class="quiet">those who take what a sink has shown</span></header>
      <${Table} label="consumers" rows=${view.consumers} keyOf=${(row) => row.sink + row.task + row.report.name} empty="Nobody takes what its sinks show." columns=${[
        { name: "sink", cell: (row) => row.sink },
        { name: "consumer", cell: (row) => row.report.name },
        { name: "task", wide: true, cell: (row) => row.task },
        { name: "last batch", number: true, by: (row) => row.report.batch_id, cell: (row) => (row.report.batch_id ? count(row.report.batch_id)[0] : "none") },
        { name: "rows taken", number: true, by: (row) => row.report.rows, cell: (row) => Num(few(row.report.rows)) },
        { name: "lately", number: true, by: (row) => row.report.rows_per_s, cell: (row) => Num(rate(row.report.rows_per_s)) },
        { name: "rows waiting", number: true, by: (row) => row.report.waiting_rows, cell: (row) => Num(few(row.report.waiting_rows)) },
        { name: "waiting since", wide: true, cell: (row) => (row.report.waiting_since_ms ? html`<${Age} at=${row.report.waiting_since_ms} />` : "—") },
      ]} />
    </section>`;
}
