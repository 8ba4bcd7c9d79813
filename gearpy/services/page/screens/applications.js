// All applications, with a filter.
import { html, useState } from "../app/html.js";
import { mayStart, session } from "../data/api.js";
import { overview } from "../data/live.js";
import { useStore } from "../data/store.js";
import { AppTable, NoApplications } from "./app_table.js";

const STATES = ["all", "running", "ended"];
const isLiving = (app) => app.status === "pending" || app.status === "active";

export function Applications() {
  const all = useStore(overview);
  const who = useStore(session);
  const [text, setText] = useState("");
  const [state, setState] = useState("all");
  if (!all) return html`<p class="quiet">Asking the cluster …</p>`;
  const apps = [...all.applications].reverse()
    .filter((app) => `${app.id} ${app.name} ${app.user}`.toLowerCase().includes(text.toLowerCase()))
    .filter((app) => state === "all" || isLiving(app) === (state === "running"));
  return html`<div class="stack">
    <div class="title"><h1>Applications</h1><div class="row">${mayStart(who) && html`<a class="button" href="#/submit">Submit…</a>`}</div></div>
    ${!all.applications.length ? html`<${NoApplications} />` : html`<section class="card">
      <header><div class="row">
        <label><span class="hidden">filter by name, id or user</span><input placeholder="name, id or user" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
        <label><span class="hidden">status</span><select value=${state} onChange=${(event) => setState(event.target.value)}>${STATES.map((each) => html`<option>${each}</option>`)}</select></label>
      </div><span class="quiet">${apps.length} of ${all.applications.length}</span></header>
      ${apps.length ? html`<${AppTable} apps=${apps} ended=${state === "ended"} />` : html`<p class="quiet">None is like this.</p>`}
    </section>`}
  </div>`;
}
