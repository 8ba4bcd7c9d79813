// What went wrong and was survived, or not; and the records that were put aside, to look at and to replay.
import { html, useLayoutEffect, useRef, useState } from "../app/html.js";
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
const PAGE = 20; // Records that are shown whole at a time, each in as many lines as it needs.

export function Errors({ view }) {
  const failures = byCause([...view.failures].reverse(), ({ what }) => what);
  return html`
    ${view.cause && html`<${ErrorCard} error=${view.cause} app=${view.app_id} title="What ended it" />`}
    <${Quarantine} view=${view} />
    <section class="card"><header><h2>Failures</h2><span class="quiet">the latest first</span></header>
      ${!failures.length && html`<p class="quiet">None since the application started.</p>`}
      <div class="stack">${failures.map((group) => html`<div class="part" key=${group.at(-1).at_ms + group[0].what}>
        <p><b>${group.length > 1 && `${group.length} × `}${group[0].what}</b> <span class="quiet"><${Age} at=${group[0].at_ms} />${group.length > 1 && html`, first <${Age} at=${group.at(-1).at_ms} />`}</span></p>
        <${ErrorCard} error=${group[0].error} app=${view.app_id} open=${false} bare /></div>`)}</div>
    </section>`;
}

/** Those with the same step, line and type of exception together; the order of both stays. */
function byCause(list, more = () => "") {
  const groups = new Map();
  for (const each of list) {
    const { operator, source, cause } = each.error;
    const key = [operator, source, cause.split(":", 1)[0], more(each)].join("\n");
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups.values()];
}

function Quarantine({ view }) {
  const who = useStore(session);
  const { value, error, again } = useAnswer(`appmaster/${view.app_id}/quarantine`, EVERY_MS);
  const records = [...(value?.records ?? [])].reverse();
  const total = value?.total || records.length;
  const groups = byCause(records);
  const canReplay = may(who, "submit") && view.status === "active";
  const replay = (numbers) => ask({
    title: numbers.length === 1 ? `Replay record ${numbers[0]}?` : `Replay ${many(numbers.length || total, "record")}?`,
    text: [
      "Each is given back to the step that refused it, with its event time; what that step puts out goes on as ever.",
      "A record that fails once more comes back to quarantine. One behind the watermark counts as late there.",
    ],
    yes: "Replay",
    act: async () => {
      await call("POST", `appmaster/${view.app_id}/quarantine/replay`, { numbers });
      say(`${numbers.length || total} given back`);
      again();
      refresh();
    },
  });
  return html`<section class="card"><header><h2>Quarantine</h2>${total > 1 && canReplay && html`<button onClick=${() => replay([])}>Replay all ${total.toLocaleString("en")}…</button>`}</header>
    <${Trouble} error=${value ? null : error} />
    ${value && !groups.length && html`<p class="quiet">No record was put aside. That is what application.on-error = 'quarantine' does with one that an operator raises on.</p>`}
    ${total > records.length && html`<p class="quiet">${records.length} of ${total.toLocaleString("en")} are shown.</p>`}
    <div class="stack">${groups.map((group) => html`<${Group} key=${group.at(-1).number} view=${view} group=${group} replay=${canReplay && replay} isOnly=${groups.length === 1} />`)}</div>
  </section>`;
}

/** Records of one cause: how many, the newest cause as it is, and each record. */
function Group({ view, group, replay, isOnly }) {
  const [shown, setShown] = useState(null);
  const [first, setFirst] = useState(0);
  const { error, processor_id: id, at_ms: at } = group[0];
  const step = error.operator || (view.processors.find((each) => each.id === id)?.name ?? `step ${id}`);
  const from = first < group.length ? first : 0; // Some may have been replayed.
  const isOneCause = group.every((each) => each.error.cause === error.cause);
  const columns = [
    { name: "no.", by: (row) => row.number, cell: (row) => html`<button class="copy" title="show all of it" onClick=${() => setShown(shown === row.number ? null : row.number)} aria-expanded=${shown === row.number}>${row.number}</button>` },
    { name: "put aside", wide: true, by: (row) => row.at_ms, cell: (row) => html`<${Age} at=${row.at_ms} />` },
    { name: "event time", wide: true, by: (row) => row.event_time_ms, cell: (row) => html`<span class="nowrap">${eventTime(row.event_time_ms)}</span>` },
    ...(isOneCause ? [] : [{ name: "cause", words: true, cell: (row) => row.error.cause }]),
    { name: "record", words: true, cell: (row) => html`<code>${row.error.record}</code>` },
    ...(replay ? [{ name: "", cell: (row) => html`<button onClick=${() => replay([row.number])}>Replay…</button>` }] : []),
  ];
  return html`<section class="part" aria-label="one cause">
    <header class="row"><p class="cause">${group.length.toLocaleString("en")} × <code>${step}</code>: ${error.cause}</p>
      ${replay && !isOnly && group.length > 1 && html`<button onClick=${() => replay(group.map((each) => each.number))}>Replay ${group.length.toLocaleString("en")}…</button>`}</header>
    <p class="quiet">${error.source && html`at ${error.source}${error.source_line && html`: <code>${error.source_line}</code>`} · `}the last <${Age} at=${at} /></p>
    <${Table} label="records in quarantine" rows=${group.slice(from, from + PAGE)} keyOf=${(row) => row.number} picked=${shown} columns=${columns} />
    ${group.length > PAGE && html`<p class="row after"><button disabled=${from === 0} onClick=${() => setFirst(from - PAGE)}>Newer</button><button disabled=${from + PAGE >= group.length} onClick=${() => setFirst(from + PAGE)}>Older</button>
      <span class="quiet">${from + 1} to ${Math.min(from + PAGE, group.length)} of ${group.length.toLocaleString("en")}</span></p>`}
    ${shown !== null && html`<${Whole} key=${shown} app=${view.app_id} number=${shown} />`}
  </section>`;
}

function Whole({ app, number }) {
  const { value, error } = useAnswer(`appmaster/${app}/quarantine?number=${number}`);
  const record = value?.records?.find((each) => each.number === number);
  const box = useRef(null);
  useLayoutEffect(() => box.current.scrollIntoView({ block: "nearest" }), [Boolean(record)]);
  return html`<div ref=${box} class="after"><${Trouble} error=${error} />${record && html`<${ErrorCard} error=${record.error} app=${app} record=${number} title=${`Record ${number}`} />`}</div>`;
}
