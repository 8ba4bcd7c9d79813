// Applications as rows; and what to do where there are none.
import { html } from "../app/html.js";
import { toApp } from "../app/route.js";
import { Age, Command, Mark, Num, Status } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { few, rate, span } from "../words/units.js";

export function AppTable({ apps, ended = false }) {
  const columns = [
    { name: "id", number: false, by: (app) => app.id, cell: (app) => app.id },
    { name: "application", by: (app) => app.name, cell: (app) => html`<a href=${toApp(app.id)}><b>${app.name}</b></a>` },
    { name: "status", by: (app) => app.status, cell: (app) => html`<${Status} status=${app.status} />` },
    ended
      ? { name: "records in", number: true, wide: true, by: (app) => app.records_in, cell: (app) => Num(few(app.records_in)) }
      : { name: "in", number: true, by: (app) => app.records_in_rate, cell: (app) => Num(rate(app.records_in_rate)) },
    ended
      ? { name: "out", number: true, wide: true, by: (app) => app.records_out, cell: (app) => Num(few(app.records_out)) }
      : { name: "out", number: true, wide: true, by: (app) => app.records_out_rate, cell: (app) => Num(rate(app.records_out_rate)) },
    !ended && { name: "behind", number: true, by: (app) => app.watermark_lag_ms, cell: (app) => Num(span(app.watermark_lag_ms)) },
    { name: ended ? "ended" : "submitted", wide: !ended, by: (app) => (ended ? app.finished_ms : app.submitted_ms), cell: (app) => html`<${Age} at=${ended ? app.finished_ms : app.submitted_ms} />` },
    { name: "user", wide: true, by: (app) => app.user, cell: (app) => app.user || "—" },
    { name: "details", wide: true, words: true, cell: (app) => html`<${Mark} level=${app.headline.level} />${app.headline.text}` },
  ].filter(Boolean);
  return html`<${Table} label=${ended ? "applications that ended" : "applications"} rows=${apps} keyOf=${(app) => app.id} columns=${columns} />`;
}

export const NoApplications = () => html`<section class="card">
  <h2>No application yet</h2>
  <p class="quiet">Start one from a terminal, in the folder of gearpy, or <a href="#/submit">submit a program here</a>:</p>
  <${Command} text=${'bin/gear app submit examples/wordcount.py -- "$PWD/README.md"'} />
  <${Command} text="bin/gear app submit your_program.py" />
</section>`;
