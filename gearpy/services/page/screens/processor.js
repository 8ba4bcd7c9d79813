// One step: its figures, its own three charts, and all of its tasks with their skew.
import { html } from "../app/html.js";
import { toApp } from "../app/route.js";
import { Chart } from "../charts/chart.js";
import { RangePicker, useRange } from "../charts/range.js";
import { may, session } from "../data/api.js";
import { useAnswer } from "../data/ask.js";
import { report } from "../data/report.js";
import { useStore } from "../data/store.js";
import { Num, Trouble } from "../parts/words.js";
import { eventTime } from "../words/time.js";
import { brief, bytes, count, few, many, rate, share, span } from "../words/units.js";
import { askScale } from "./changes.js";
import { eventsOf } from "./events.js";
import { KeptState } from "./kept_state.js";
import { MetricTable } from "./app_tables.js";
import { TaskTable } from "./task_table.js";

const SOME_MS = 2000;
const MANY_MS = 5000; // A thousand tasks are 300 kB an answer.
const MANY = 200;
const UNEVEN = 1.5;

export function Processor({ view, series: lately, at }) {
  const series = useRange(view.app_id, lately);
  const step = view.processors.find((each) => each.id === at.item);
  const every = view.finished_ms ? 0 : step?.parallelism > MANY ? MANY_MS : SOME_MS;
  const { value, error } = useAnswer(`appmaster/${view.app_id}/processor/${at.item}`, every);
  const canScale = may(useStore(session), "submit") && view.status === "active";
  if (!step) return html`<p class="quiet">There is no step ${at.item}. <a href=${toApp(view.app_id)}>Back to the graph</a></p>`;
  const own = series.processors[step.id] ?? { rate: [], busy: [], backpressured: [] };
  const all = { times: series.at_ms, events: eventsOf(view) };
  return html`
    <p class="quiet"><a href=${toApp(view.app_id)}>Graph</a> / <b>${brief(step)}</b></p>
    ${step.steps.length > 2 && html`<p class="quiet">${step.steps.join(" → ")}</p>`}
    <section class="card" aria-label="figures"><dl class="facts">
      ${facts(step, value).map(([name, told, hint]) => html`<div title=${hint}><dt>${name}</dt><dd>${told}</dd></div>`)}
    </dl></section>
    <div><${RangePicker} /><section class="charts three" aria-label="charts">
      <${Chart} ...${all} title="Rate" lines=${[{ values: own.rate, colour: "blue", fill: true, format: rate }]} />
      <${Chart} ...${all} title="Busy" lines=${[{ values: own.busy, colour: "blue", fill: true, format: share }]} />
      <${Chart} ...${all} title="Back-pressured" lines=${[{ values: own.backpressured, colour: "amber", fill: true, format: share }]} />
    </section></div>
    ${step.metrics.length > 0 && html`<section class="card"><h2>Metrics of the program</h2><${MetricTable} metrics=${step.metrics} /></section>`}
    <section class="card"><header><h2>${many(step.parallelism, "task")}</h2>
      ${canScale && html`<button onClick=${() => askScale(view, step.id)}>Scale…</button>`}
      <span class="quiet">${!value?.skew || step.parallelism < 2 ? "" : `the fastest has ${value.skew.toFixed(1)} × the mean${value.skew > UNEVEN ? ": its keys are uneven" : ""}`}</span></header>
      <${Trouble} error=${value ? null : error} />
      <${TaskTable} tasks=${value?.tasks ?? []} app=${view.app_id} empty=${value ? "none runs" : "…"} />
    </section>
    ${!report && html`<${KeptState} key=${step.id} app=${view.app_id} step=${step.id} />`}`;
}

const facts = (step, value) => [
  ["records in", Num(rate(step.records_in_rate)), `${count(step.records_in)[0]} in all`],
  ["records out", Num(rate(step.records_out_rate)), `${count(step.records_out)[0]} in all`],
  ["busy", Num(share(step.busy)), "share of the time in which it worked"],
  ["waits", Num(share(step.backpressured)), "share of the time in which it waited for those behind it"],
  ["skew", value?.skew ? `${value.skew.toFixed(2)} ×` : "—", "the highest rate of a task over the mean"],
  ["behind", Num(span(step.watermark_lag_ms)), step.watermark_ms === null ? "" : `watermark ${eventTime(step.watermark_ms)}`],
  ["latency p50", Num(span(step.latency_p50_ms)), "from the source to here"],
  ["latency p99", Num(span(step.latency_p99_ms)), "from the source to here"],
  ["queue", Num(few(step.queue_records)), "records that wait before it"],
  ["state", Num(bytes(step.state_bytes)), ""],
  ["late", count(step.late)[0], ""],
  ["skipped", count(step.skipped)[0], ""],
  ["quarantined", count(step.quarantined)[0], ""],
];
