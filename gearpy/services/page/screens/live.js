// The first screen of an application: a sentence, the graph, four charts, and the tasks of one step.
import { html, useEffect, useMemo, useRef, useState } from "../app/html.js";
import { toApp } from "../app/route.js";
import { Four } from "../charts/four.js";
import { useAnswer } from "../data/ask.js";
import { may, session } from "../data/api.js";
import { useStore } from "../data/store.js";
import { Dag } from "../graph/dag.js";
import { ErrorCard } from "../parts/error_card.js";
import { Age, Notice, sentence } from "../parts/words.js";
import { brief, count, joined, many, span } from "../words/units.js";
import { AlertTable } from "./alerts.js";
import { Ask } from "./ask.js";
import { EventTable, ExecutorTable, StepTable } from "./app_tables.js";
import { eventsOf } from "./events.js";
import { TaskTable } from "./task_table.js";

const PEEK_MS = 150; // A pointer on its way elsewhere asks nothing.
const TASKS_MS = 2000;
const SHOWN_TASKS = 10;

export function Live({ view, series, at }) {
  const chosen = at.asked.step === undefined ? null : Number(at.asked.step);
  const [peeked, peek] = usePeek();
  const picked = peeked ?? chosen;
  const wanted = picked ?? view.headline.processor ?? view.processors[0]?.id ?? null;
  const step = view.processors.find((each) => each.id === wanted) ?? view.processors[0];
  const isEnded = Boolean(view.finished_ms);
  const mayAsk = may(useStore(session), "submit") && view.of_actors && !isEnded;
  const events = useMemo(() => eventsOf(view), [view.events.length, view.failures.length]);
  return html`
    <${Notice} level=${view.headline.level} text=${view.headline.text} advice=${view.headline.advice}>
      ${view.waits && !view.headline.text.includes(view.waits) && html`<p>${sentence(view.waits)}</p>`}<//>
    ${view.cause && html`<${ErrorCard} error=${view.cause} app=${view.app_id} title="What ended it" />`}
    ${isEnded && html`<${Ended} view=${view} />`}
    ${mayAsk && html`<${Ask} view=${view} />`}
    ${view.processors.length > 0 && html`<${Dag} view=${view} picked=${picked} onPeek=${peek} />`}
    ${(!isEnded || series.records_in_rate.some((each) => each !== null)) && view.processors.length > 0 && html`<${Four} app=${view.app_id} series=${series} events=${events} />`}
    ${step && !isEnded && html`<${Tasks} view=${view} step=${step} />`}
    ${view.processors.length > 0 && html`<section class="card"><h2>Steps</h2><${StepTable} view=${view} picked=${picked} /></section>`}
    ${view.executors.length > 0 && html`<section class="card"><h2>Executors</h2><${ExecutorTable} view=${view} /></section>`}
    ${view.alerts.length > 0 && html`<section class="card"><h2>Alerts</h2><${AlertTable} alerts=${view.alerts} /></section>`}
    <section class="card"><h2>Events</h2><${EventTable} events=${events} /></section>`;
}

/** Tasks of the step that is looked at; those that are furthest behind come first. */
function Tasks({ view, step }) {
  const { value, error } = useAnswer(`appmaster/${view.app_id}/processor/${step.id}`, TASKS_MS);
  const tasks = value ? value.tasks : [];
  const shown = tasks.length <= SHOWN_TASKS ? tasks : [...tasks].sort(mostTelling).slice(0, SHOWN_TASKS);
  const to = toApp(view.app_id, `step/${step.id}`);
  // The last table stays until the next one is there: the page does not jump.
  const last = useRef(null);
  if (value) last.current = shown;
  return html`<section class="card" aria-live="off"><header><h2>Tasks of <a href=${to}>${brief(step)}</a></h2>
      ${tasks.length > SHOWN_TASKS && html`<a href=${to}>all ${many(tasks.length, "task")}</a>`}</header>
    ${error && !value ? html`<p class="quiet">${error.message}</p>` : html`<${TaskTable} tasks=${last.current ?? []} app=${view.app_id} empty=${value ? "none runs" : "…"} />`}
  </section>`;
}

const mostTelling = (a, b) =>
  (b.why ? 1 : 0) - (a.why ? 1 : 0) || (b.holds_clock ? 1 : 0) - (a.holds_clock ? 1 : 0) || (b.busy ?? 0) - (a.busy ?? 0);

function Ended({ view }) {
  const { totals } = view;
  const sinks = view.processors.filter((each) => each.role === "sink").map((each) => each.steps.at(-1) ?? each.name);
  const facts = [
    ["ended", html`<${Age} at=${view.finished_ms} />`],
    ["ran for", view.started_ms ? joined(span(view.finished_ms - view.started_ms)) : "—"],
    ["records in", count(totals.records_in)[0]],
    ["records out", count(totals.records_out)[0]],
    ["late", count(totals.late)[0]],
    ["quarantined", count(totals.quarantined)[0]],
    ["last epoch", totals.epoch ? count(totals.epoch)[0] : "none"],
    ["results in", sinks.join(", ") || "—"],
  ];
  return html`<section class="card" aria-label="how it ended"><dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>`;
}

function usePeek() {
  const [id, setId] = useState(null);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  return [id, (next) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setId(next), PEEK_MS);
  }];
}
