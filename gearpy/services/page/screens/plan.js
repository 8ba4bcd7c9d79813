// What runs, as it was planned, and what is promised on each path from a source to a sink.
import { html } from "../app/html.js";
import { useAnswer } from "../data/ask.js";
import { Copy, Trouble } from "../parts/words.js";

export function Plan({ view }) {
  const { value, error } = useAnswer(`appmaster/${view.app_id}/plan`);
  const text = typeof value === "string" ? value : value?.text ?? value?.plan ?? "";
  return html`
    <section class="card"><h2>What is promised</h2>
      ${view.guarantees.length ? html`<ul class="stack">${view.guarantees.map((each) => html`<li>${each}</li>`)}</ul>` : html`<p class="quiet">Nothing is known of it yet.</p>`}
    </section>
    <section class="card"><header><h2>Plan</h2>${text && html`<${Copy} text=${text} shown="copy" />`}</header>
      <${Trouble} error=${error} />
      ${text && html`<pre class="text" tabIndex="0">${text}</pre>`}
    </section>`;
}
