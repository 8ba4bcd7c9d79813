// One executor: its process, its tasks, and the end of its log as it is written.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../app/html.js";
import { toApp } from "../app/route.js";
import { get, session } from "../data/api.js";
import { log } from "../data/live.js";
import { report } from "../data/report.js";
import { useStore } from "../data/store.js";
import { Copy, Num, sentence } from "../parts/words.js";
import { bytes, cores, many, share } from "../words/units.js";

const LINES = 300;
const NEAR_PX = 40;

export function Executor({ view, at }) {
  const one = view.executors.find((each) => each.id === at.item);
  const ofOneRun = useStore(session)?.of_one_run;
  return html`
    <p class="quiet"><a href=${toApp(view.app_id)}>Graph</a> / <b>${at.item < 0 ? "app master" : `executor ${at.item}`}</b></p>
    ${one ? html`<section class="card" aria-label="figures"><dl class="facts">
        <div><dt>memory</dt><dd>${Num(bytes(one.rss_bytes))}</dd></div>
        <div><dt>CPU</dt><dd>${Num(cores(one.cpu))}</dd></div>
        <div title="share of the time in which garbage was collected"><dt>gc pauses</dt><dd>${Num(share(one.gc_pause_share))}</dd></div>
        <div><dt>tasks</dt><dd>${one.tasks.length}</dd></div>
        <div><dt>status</dt><dd>${one.status}</dd></div>
        <div><dt>launch</dt><dd>${one.launch}</dd></div>
        ${!ofOneRun && html`<div><dt>worker</dt><dd>${one.worker_id}</dd></div>`}
        <div><dt>process</dt><dd>${one.pid ? html`<${Copy} text=${one.pid} />` : "—"}</dd></div>
        <div><dt>address</dt><dd>${one.address ? html`<${Copy} text=${one.address} />` : "—"}</dd></div>
      </dl></section>
      <section class="card"><details><summary>${many(one.tasks.length, "task")}</summary><p class="mono">${one.tasks.join("  ")}</p></details></section>`
    : html`<p class="quiet">${at.item < 0 ? "It is in charge of the executors and the clock; below is its log." : "It does not run at present; below is the log of its last launch."}</p>`}
    ${ofOneRun && html`<p class="quiet">What it prints is where the run was started; with --verbose its log, too.</p>`}
    ${!report && !ofOneRun && html`<${Log} app=${view.app_id} executor=${at.item} />`}`;
}

function Log({ app, executor }) {
  const live = useStore(log);
  const [before, setBefore] = useState({ text: "", source: "", error: null });
  const box = useRef(null);
  const follows = useRef(true);
  useEffect(() => {
    get(`appmaster/${app}/executor/${executor}/log?lines=${LINES}`).then(
      (said) => setBefore({ text: said.text, source: said.source, error: null }),
      (error) => setBefore({ text: "", source: "", error }),
    );
  }, [app, executor]);
  // The stream begins with the last lines, too: what both have is shown once.
  const isStreamed = live.executor === executor && live.text;
  const text = isStreamed ? joinedAt(before.text, live.text) : before.text;
  useLayoutEffect(() => {
    if (follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scroll = ({ currentTarget: it }) => (follows.current = it.scrollHeight - it.scrollTop - it.clientHeight < NEAR_PX);
  return html`<section class="card"><header><h2>Log</h2><span class="quiet mono">${before.source}</span></header>
    ${before.error && !text ? html`<p class="quiet">${sentence(before.error.message)}</p>` : html`<pre class="text log" ref=${box} onScroll=${scroll} tabIndex="0" role="log" aria-label="log of the executor">${text || "(nothing was logged)"}</pre>`}
  </section>`;
}

/** The older text, then the newer one from where they differ. */
function joinedAt(older, newer) {
  const first = newer.slice(0, newer.indexOf("\n") + 1);
  const at = first ? older.lastIndexOf(first) : -1;
  if (at >= 0 && older.slice(at).startsWith(newer)) return older;
  return at >= 0 && newer.startsWith(older.slice(at)) ? older.slice(0, at) + newer : older + newer;
}
