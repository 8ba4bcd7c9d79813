// One application: its name and actions, the tabs, and the screen of the tab.
import { html } from "../app/html.js";
import { toApp } from "../app/route.js";
import { may, session } from "../data/api.js";
import { application, link } from "../data/live.js";
import { report } from "../data/report.js";
import { useStore } from "../data/store.js";
import { Age, Copy, Notice, Status } from "../parts/words.js";
import { joined, many, span } from "../words/units.js";
import { Actions } from "./actions.js";
import { askCallOff } from "./changes.js";
import { Checkpoints } from "./checkpoints.js";
import { Config } from "./config.js";
import { Errors } from "./errors.js";
import { Executor } from "./executor.js";
import { HandOff } from "./handoff.js";
import { Live } from "./live.js";
import { Plan } from "./plan.js";
import { Processor } from "./processor.js";
import { Versions } from "./versions.js";

const SCREENS = { live: Live, step: Processor, executor: Executor, errors: Errors, checkpoints: Checkpoints, plan: Plan, versions: Versions, handoff: HandOff, config: Config };

export function Application({ at }) {
  const { id, view, series, missing } = useStore(application);
  const { state } = useStore(link);
  const who = useStore(session);
  if (missing) return html`<h1>No such application</h1><p class="quiet">${missing}. <a href="#/apps">All applications</a></p>`;
  if (id !== at.app || !view) return html`<p class="quiet">${state === "lost" ? "The application cannot be asked." : `Asking application ${at.app} …`}</p>`;
  const Screen = SCREENS[at.screen] ?? Live;
  const failures = view.failures.length + view.totals.quarantined;
  const tabs = [
    ["", "Live", ["live", "step", "executor"]],
    ["errors", failures ? `Errors · ${failures.toLocaleString("en")}` : "Errors", ["errors"]],
    ...(view.of_actors ? [] : [["checkpoints", "Checkpoints", ["checkpoints"]], ["plan", "Plan", ["plan"]], ...(report ? [] : [["versions", "Versions", ["versions"]]])]),
    ...(view.consumers.length ? [["handoff", "Spark hand-off", ["handoff"]]] : []),
    ["config", "Configuration", ["config"]],
  ];
  return html`<div class="stack">
    <div>
      <div class="title"><h1>${view.name}</h1><${Status} status=${view.status} />${may(who, "submit") && html`<${Actions} view=${view} />`}</div>
      <p class="quiet"><${Facts} view=${view} /></p>
    </div>
    ${view.known_ms > 0 && html`<${Notice} level="warn" text="Its app master went without a word, and nobody knows anything newer">
      ${" "}It is shown as it was <${Age} at=${view.known_ms} />.<//>`}
    ${view.change && html`<${Notice} level="info" text=${`Version ${view.change.version}, ${view.change.change}: ${view.change.doing}`}>
      ${view.change.may_be_called_off && may(who, "submit") && html` <button onClick=${() => askCallOff(view)}>Call it off…</button>`}<//>`}
    <nav class="tabs" aria-label="parts of the application">${tabs.map(([part, words, screens]) => html`<a href=${toApp(id, part)} aria-current=${screens.includes(at.screen) ? "page" : undefined}>${words}</a>`)}</nav>
    <${Screen} view=${view} series=${series} at=${at} key=${`${at.screen}${at.item ?? ""}`} />
  </div>`;
}

function Facts({ view }) {
  const tasks = view.processors.reduce((sum, each) => sum + each.parallelism, 0);
  const parts = [html`application <${Copy} text=${view.app_id} />`];
  if (view.user) parts.push(`by ${view.user}`);
  if (view.finished_ms) {
    parts.push(html`ended <${Age} at=${view.finished_ms} />`);
    if (view.started_ms) parts.push(`ran ${joined(span(view.finished_ms - view.started_ms))}`);
  } else parts.push(html`${view.started_ms ? "started" : "submitted"} <${Age} at=${view.started_ms || view.submitted_ms} />`);
  if (view.executors.length) parts.push(many(view.executors.length, "executor"));
  if (tasks) parts.push(many(tasks, "task"));
  if (view.totals.epoch) parts.push(`epoch ${view.totals.epoch.toLocaleString("en")}`);
  if (view.totals.restarts) parts.push(many(view.totals.restarts, "restart"));
  return parts.map((part, at) => html`${at > 0 && " · "}${part}`);
}
