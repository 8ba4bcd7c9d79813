// Rules that hold for longer than they should, over all applications.
import { html, useState } from "../app/html.js";
import { toApp } from "../app/route.js";
import { call, may, session } from "../data/api.js";
import { useAnswer } from "../data/ask.js";
import { overview, refresh } from "../data/live.js";
import { report } from "../data/report.js";
import { useStore } from "../data/store.js";
import { show } from "../parts/dialog.js";
import { say } from "../parts/said.js";
import { Age, Mark, Trouble } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { absolute, serverNow } from "../words/time.js";
import { joined, share, span } from "../words/units.js";

const EVERY_MS = 5000;
const FOR = [["1 hour", 60], ["4 hours", 240], ["1 day", 1440], ["1 week", 10_080]];

export function Alerts() {
  const all = useStore(overview);
  const { value, again } = useAnswer("alerts", EVERY_MS);
  if (!all) return html`<p class="quiet">Asking the cluster …</p>`;
  return html`<div class="stack"><h1>Alerts</h1><section class="card"><${AlertTable} alerts=${all.alerts} named onChange=${again} /></section>
    ${value?.silences.length > 0 && html`<section class="card"><h2>Silenced</h2><${SilenceTable} silences=${value.silences} onChange=${again} /></section>`}
    ${value && html`<section class="card"><h2>History</h2><${HistoryTable} changes=${[...value.history].reverse()} /></section>
    <section class="card"><h2>Rules</h2><${RuleTable} rules=${value.rules} firing=${all.alerts} silences=${value.silences} />
      <p class="quiet after">Limits, and alerts.off, which leaves rules out, are keys of the configuration.</p></section>`}</div>`;
}

export function AlertTable({ alerts, named = false, onChange = () => {} }) {
  const maySilence = may(useStore(session), "submit") && !report;
  return html`<${Table} label="alerts" rows=${alerts} keyOf=${(row) => `${row.app_id} ${row.rule}`} empty="No rule is broken." columns=${[
    { name: "rule", cell: (row) => html`<${Mark} level=${row.level} />${row.rule}` },
    { name: "since", wide: true, by: (row) => row.since_ms, cell: (row) => html`<${Age} at=${row.since_ms} />` },
    { name: "what", words: true, cell: (row) => html`${named && html`<a href=${toApp(row.app_id)}>${row.name}</a>: `}${row.text}` },
    ...(maySilence ? [{ name: "", cell: (row) => html`<button onClick=${() => show(({ close }) => html`<${Silencing} alert=${row} close=${close} onChange=${onChange} />`, `silence ${row.rule}`)}>Silence…</button>` }] : []),
  ]} />`;
}

/** Asks for how long nobody is to be told of an alert. */
function Silencing({ alert, close, onChange }) {
  const [minutes, setMinutes] = useState(FOR[0][1]);
  const [error, setError] = useState(null);
  const agree = (event) => {
    event.preventDefault();
    silence(alert, minutes).then(() => (onChange(), close()), setError);
  };
  return html`<form onSubmit=${agree}><h2>Silence “${alert.rule}” of ${alert.name}?</h2>
    <p>It is then no alert here or in the terminal, and no webhook is told. If it still fires when the time is over, all are told.</p>
    <label>How long <select value=${minutes} onChange=${(event) => setMinutes(Number(event.target.value))}>${FOR.map(([text, value]) => html`<option key=${value} value=${value}>${text}</option>`)}</select></label>
    <${Trouble} error=${error} />
    <footer><button type="button" onClick=${close}>Cancel</button><button class="main">Silence</button></footer>
  </form>`;
}

async function silence({ app_id: app, rule, name }, minutes) {
  await call("POST", `appmaster/${app}/alerts/${encodeURIComponent(rule)}/silence?minutes=${minutes}`);
  say(minutes ? `${rule} of ${name} is silenced` : `${rule} of ${name} is told of again`);
  refresh();
}

function SilenceTable({ silences, onChange }) {
  const mayEnd = may(useStore(session), "submit");
  return html`<${Table} label="silenced" rows=${silences} keyOf=${(row) => `${row.app_id} ${row.rule}`} columns=${[
    { name: "rule", cell: (row) => html`${row.alert && html`<${Mark} level=${row.alert.level} />`}${row.rule}` },
    { name: "application", label: true, cell: (row) => html`<a href=${toApp(row.app_id)}>${row.name}</a>` },
    { name: "for", cell: (row) => html`<span title=${`until ${absolute(row.until_ms)}`}>${joined(span(Math.max(0, row.until_ms - serverNow())))}</span>` },
    { name: "by", wide: true, cell: (row) => row.user || "—" },
    { name: "now", wide: true, words: true, cell: (row) => row.alert?.text ?? "quiet" },
    ...(mayEnd ? [{ name: "", cell: (row) => html`<button onClick=${() => silence(row, 0).then(onChange, (error) => say(error.message))}>End</button>` }] : []),
  ]} />`;
}

const HistoryTable = ({ changes }) => html`<${Table} label="what has fired lately" rows=${changes} keyOf=${(row) => `${row.at_ms} ${row.app_id} ${row.alert.rule} ${row.state}`} empty="Nothing has fired yet." columns=${[
  { name: "when", cell: (row) => html`<${Age} at=${row.at_ms} />` },
  { name: "rule", cell: (row) => html`<${Mark} level=${row.state === "firing" ? row.alert.level : "ok"} />${row.alert.rule} ${row.state === "firing" ? "" : "resolved"}` },
  { name: "application", label: true, cell: (row) => html`<a href=${toApp(row.app_id)}>${row.name}</a>` },
  { name: "what", wide: true, words: true, cell: (row) => row.alert.text },
]} />`;

const LIMITS = { seconds: (value) => joined(span(value * 1000)), share: (value) => joined(share(value)), count: String };

const RuleTable = ({ rules, firing, silences }) => html`<${Table} label="rules" rows=${rules} keyOf=${(row) => row.rule} columns=${[
  { name: "rule", cell: (row) => row.rule },
  { name: "level", wide: true, cell: (row) => row.level },
  { name: "fires at", number: true, cell: (row) => LIMITS[row.unit](row.above) },
  { name: "for", number: true, cell: (row) => (row.for_s ? joined(span(row.for_s * 1000)) : "at once") },
  { name: "now", cell: (row) => (row.is_off ? "off" : firing.some((each) => each.rule === row.rule) ? "fires" : silences.some((each) => each.rule === row.rule && each.alert) ? "silenced" : "quiet") },
]} />`;
