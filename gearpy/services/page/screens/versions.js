// The versions of an application's program: what was changed, by whom, and what became of it.
import { html } from "../app/html.js";
import { may, session } from "../data/api.js";
import { useAnswer } from "../data/ask.js";
import { useStore } from "../data/store.js";
import { Age, Num, Trouble } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { count, share } from "../words/units.js";
import { askRollback, askScale } from "./changes.js";

const EVERY_MS = 2000;
/** A state, as people say it, and the look of it. */
const STATES = {
  waiting: ["waits", "pending"],
  preparing: ["being prepared", "pending"],
  trial: ["on trial", "pending"],
  running: ["runs", "active"],
  replaced: ["replaced", ""],
  failed: ["failed", "failed"],
};

export function Versions({ view }) {
  const who = useStore(session);
  const { value, error } = useAnswer(`appmaster/${view.app_id}/versions`, view.finished_ms ? 0 : EVERY_MS);
  const versions = value?.versions ?? [];
  const isUnderWay = versions.some((each) => ["waiting", "preparing", "trial"].includes(each.state));
  const canChange = may(who, "submit") && view.status === "active" && !isUnderWay;
  return html`<section class="card"><header><h2>Versions</h2>
      ${canChange ? html`<button onClick=${() => askScale(view)}>Scale…</button>` : html`<span class="quiet">${isUnderWay && "a change is under way"}</span>`}</header>
    <${Trouble} error=${value ? null : error} />
    ${value && html`<${Table} label="versions" rows=${[...versions].reverse()} keyOf=${(row) => row.number} columns=${columnsOf(view, canChange)} />`}
  </section>
  ${view.scaled.length > 0 && html`<section class="card"><header><h2>Autoscale</h2><span class="quiet">it chooses how many tasks these have</span></header>
    <${Table} label="autoscale" rows=${view.scaled} keyOf=${(row) => row.step} columns=${CHOSEN} /></section>`}`;
}

function State({ view, state }) {
  const [words, look] = view.finished_ms && state === "running" ? ["ran last", ""] : STATES[state];
  return html`<span class="chip ${look}">${words}</span>`;
}

const CHOSEN = [
  { name: "step", label: true, cell: (row) => row.step || "executors" },
  { name: "now", number: true, by: (row) => row.tasks, cell: (row) => row.tasks },
  { name: "bounds", cell: ({ bounds }) => html`<span class="nowrap">${bounds.least} to ${bounds.most}</span>` },
  { name: "aim", number: true, wide: true, cell: ({ bounds }) => Num(share(bounds.busy)) },
  { name: "work", number: true, wide: true, cell: (row) => (row.work === null ? "—" : row.work.toFixed(1)) },
  { name: "last decision", words: true, cell: (row) => row.text || "—" },
  { name: "when", wide: true, by: (row) => row.at_ms, cell: (row) => html`<${Age} at=${row.at_ms} />` },
];

const columnsOf = (view, canChange) => [
  { name: "no.", number: true, by: (row) => row.number, cell: (row) => row.number },
  { name: "what changed", label: true, cell: (row) => html`${row.change}${row.reason && html`<p class="quiet">${row.reason.split("\n")[0]}</p>`}` },
  { name: "when", wide: true, by: (row) => row.at_ms, cell: (row) => html`<${Age} at=${row.at_ms || view.submitted_ms} />` },
  { name: "by", wide: true, cell: (row) => row.by || (row.number ? "—" : view.user || "—") },
  { name: "program", wide: true, label: true, cell: (row) => html`<code class="wrap">${[row.filename, ...row.args].join(" ") || "—"}</code>` },
  { name: "from epoch", number: true, wide: true, by: (row) => row.epoch, cell: (row) => (row.epoch ? count(row.epoch)[0] : "—") },
  { name: "state", label: true, cell: (row) => html`<div class="row"><${State} view=${view} state=${row.state} />
    ${canChange && row.state === "replaced" && html`<button onClick=${() => askRollback(view, row)}>Roll back…</button>`}</div>` },
];
