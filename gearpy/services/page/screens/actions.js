// What stops or starts an application. Each asks once and says what happens to the data.
import { html } from "../app/html.js";
import { go, toApp } from "../app/route.js";
import { call, mayStart, session } from "../data/api.js";
import { refresh } from "../data/live.js";
import { useStore } from "../data/store.js";
import { ask } from "../parts/dialog.js";
import { say } from "../parts/said.js";

export function Actions({ view }) {
  const isActive = view.status === "active";
  const isPending = view.status === "pending";
  const canStart = mayStart(useStore(session));
  const hasEpochs = isActive && !view.of_actors;
  return html`<div class="row">
    ${!isPending && canStart && html`<button onClick=${() => askRestart(view, isActive)}>Restart…</button>`}
    ${hasEpochs && html`<button onClick=${() => askDrain(view)}>Drain…</button>`}
    ${hasEpochs && view.has_savepoints && html`<button onClick=${() => askSavepoint(view)}>Savepoint…</button>`}
    ${(isActive || isPending) && html`<button onClick=${() => askKill(view, canStart)}>Kill…</button>`}
  </div>`;
}

const ANEW = "An application of actors begins anew: what its app master has stored stays with this run.";
const epochOf = (view) => view.totals.epoch.toLocaleString("en");

function askKill(view, canStart) {
  const again = canStart ? ` A restart goes on from epoch ${epochOf(view)}.` : "";
  ask({
    title: `Kill ${view.name}?`,
    text: [
      `All of its ${view.of_actors ? "executors" : "tasks"} stop at once; it becomes terminated.`,
      view.of_actors ? ANEW : view.totals.epoch
        ? `What was read since epoch ${epochOf(view)} is not finished. Transactional sinks show nothing of it; others may have shown some.${again}`
        : "No epoch of it is stored: who starts it again begins with the first record.",
    ],
    note: view.of_actors ? null : "To lose nothing and finish what was read, drain it instead.",
    yes: "Kill",
    danger: true,
    act: async () => {
      await call("DELETE", `appmaster/${view.app_id}`);
      done(`${view.name} was killed`);
    },
  });
}

function askDrain(view) {
  ask({
    title: `Drain ${view.name}?`,
    text: [
      "Its sources stop. All that they have read is processed and shown, with one last epoch; then it ends as terminated.",
      "No record is lost or shown twice. Windows that are still open are part of that epoch, for who goes on from it.",
    ],
    yes: "Drain",
    act: async () => {
      await call("POST", `appmaster/${view.app_id}/drain`);
      done(`${view.name} drains`);
    },
  });
}

function askSavepoint(view) {
  const name = `${view.name}-${epochOf(view)}`.replace(/[^A-Za-z0-9._-]/g, "-").replace(/^[^A-Za-z]+/, "s");
  ask({
    title: `Stop ${view.name} with a savepoint?`,
    text: [
      `It is drained, and its last epoch is kept as ${name} until that is dropped.`,
      session.get()?.of_one_run
        ? "The run goes on from there when it is started again with --resume."
        : "Another application goes on from it: gear app submit --from-checkpoint and this name.",
    ],
    yes: "Stop",
    act: async () => {
      await call("POST", `appmaster/${view.app_id}/drain?savepoint=${encodeURIComponent(name.slice(0, 63))}`);
      done(`${view.name} drains; ${name} is its savepoint then`);
    },
  });
}

function askRestart(view, isLiving) {
  const fromStart = view.status === "succeeded" || !view.totals.epoch;
  ask({
    title: `Restart ${view.name}?`,
    text: [
      `${isLiving ? "It is stopped, and the" : "The"} same program starts once more, under a new id.`,
      view.of_actors ? ANEW : fromStart
        ? `It begins with the first record, as ${view.status === "succeeded" ? "it had come to its end" : "no epoch is stored"}.`
        : `It goes on from epoch ${epochOf(view)}: records since then are read again, and transactional sinks show them once.`,
    ],
    yes: "Restart",
    danger: isLiving,
    act: async () => {
      const answer = await call("POST", `appmaster/${view.app_id}/restart`);
      done(`${view.name} starts again`);
      const id = answer?.app_id ?? answer?.appId;
      if (id !== undefined) go(toApp(id));
    },
  });
}

function done(words) {
  say(words);
  refresh();
}
