// What went wrong and was survived, or not; and the records that were put aside, to look at and to replay.
import { html, useState } from "../app/html.js";
import { call, may, session } from "../data/api.js";
import { useAnswer } from "../data/ask.js";
import { refresh } from "../data/live.js";
import { useStore } from "../data/store.js";
import { ask } from "../parts/dialog.js";
import { ErrorCard } from "../parts/error_card.js";
import { say } from "../parts/said.js";
import { Age, Trouble } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { eventTime } from "../words/time.js";
import { many } from "../words/units.js";

const EVERY_MS = 3000;

export function Errors({ view }) {
  return html`
    ${view.cause && html`<${ErrorCard} error=${view.cause} app=${view.app_id} title="What ended it" />`}
    <${Quarantine} view=${view} />
    <section class="card"><header><h2>Failures</h2><span class="quiet">the latest first</span></header>
      ${!view.failures.length && html`<p class="quiet">None since the application started.</p>`}
      <div class="stack">${[...view.failures].reverse().map((each) => html`<div class="part" key=${each.at_ms + each.what}>
        <p><b>${each.what}</b> <span class="quiet"><${Age} at=${each.at_ms} /></span></p><${ErrorCard} error=${each.error} app=${view.app_id} open=${false} bare /></div>`)}</div>
    </section>`;
}

function Quarantine({ view }) {
  const who = useStore(session);
  const { value, error, again } = useAnswer(`appmaster/${view.app_id}/quarantine`, EVERY_MS);
  const [shown, setShown] = useState(null);
  const records = [...(value?.records ?? [])].reverse();
  const total = value?.total || records.length;
  const nameOf = (id) => view.processors.find((each) => each.id === id)?.name ?? `step ${id}`;
  const canReplay = may(who, "submit") && view.status === "active";
  const replay = (numbers) => ask({
    title: numbers.length ? `Replay record ${numbers.join(", ")}?` : `Replay ${many(total, "record")}?`,
    text: [
      "Each is given back to the step that refused it, with its event time; what that step puts out goes on as ever.",
      "A record that fails once more comes back to quarantine. One behind the watermark counts as late there.",
    ],
    yes: "Replay",
    act: async () => {
      await call("POST", `appmaster/${view.app_id}/quarantine/replay`, { numbers });
      say(`${numbers.length || total} given back`);
      setShown(null);
      again();
      refresh();
    },
  });
  const columns = [
    { name: "no.", by: (row) => row.number, cell: (row) => html`<button class="copy" onClick=${() => setShown(shown === row.number ? null : row.number)} aria-expanded=${shown === row.number}>${row.number}</button>` },
    { name: "put aside", wide: true, by: (row) => row.at_ms, cell: (row) => html`<${Age} at=${row.at_ms} />` },
    { name: "step", by: (row) => nameOf(row.processor_id), cell: (row) => row.error.operator || nameOf(row.processor_id) },
    { name: "event time", wide: true, by: (row) => row.event_time_ms, cell: (row) => html`<span class="nowrap">${eventTime(row.event_time_ms)}</span>` },
    { name: "cause", words: true, cell: (row) => row.error.cause },
    { name: "record", wide: true, words: true, cell: (row) => html`<code>${row.error.record}</code>` },
    { name: "", cell: (row) => canReplay && html`<button onClick=${() => replay([row.number])}>Replay…</button>` },
  ];
  return html`<section class="card"><header><h2>Quarantine</h2>${total > 1 && canReplay && html`<button onClick=${() => replay([])}>Replay all ${total.toLocaleString("en")}…</button>`}</header>
    <${Trouble} error=${value ? null : error} />
    ${value && html`<${Table} label="records in quarantine" rows=${records} keyOf=${(row) => row.number} picked=${shown} columns=${columns}
      empty="No record was put aside. That is what application.on-error = 'quarantine' does with one that an operator raises on." />
      ${total > records.length && html`<p class="quiet">${records.length} of ${total.toLocaleString("en")} are shown.</p>`}`}
    ${shown !== null && html`<${Whole} app=${view.app_id} number=${shown} />`}
  </section>`;
}

function Whole({ app, number }) {
  const { value, error } = useAnswer(`appmaster/${app}/quarantine?number=${number}`);
  const record = value?.records?.find((each) => each.number === number);
  return html`<${Trouble} error=${error} />${record && html`<${ErrorCard} error=${record.error} app=${app} record=${number} title=${`Record ${number}`} />`}`;
}
