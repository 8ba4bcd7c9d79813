// A question to an application of actors, and the answers so far.
import { html, useState } from "../app/html.js";
import { call } from "../data/api.js";
import { Age, Trouble } from "../parts/words.js";

const SHOWN = 20;

export function Ask({ view }) {
  const [text, setText] = useState("");
  const [{ busy, error, said }, setState] = useState({ busy: false, error: null, said: [] });
  const ask = async (event) => {
    event.preventDefault();
    setState((old) => ({ ...old, busy: true, error: null }));
    try {
      const { answer } = await call("POST", `appmaster/${view.app_id}/ask`, { question: meant(text) });
      setState((old) => ({ busy: false, error: null, said: [{ text, answer, at: Date.now() }, ...old.said].slice(0, SHOWN) }));
    } catch (refused) {
      setState((old) => ({ ...old, busy: false, error: refused }));
    }
  };
  return html`<section class="card" aria-label="questions"><header><h2>Ask its app master</h2><span class="quiet">as gear app ask does</span></header>
    <form class="row" onSubmit=${ask}>
      <input aria-label="question" placeholder="JSON, or else a text" class="mono" autocomplete="off" required value=${text} onInput=${(event) => setText(event.target.value)} />
      <button class="main" disabled=${busy}>${busy ? "Asking …" : "Ask"}</button>
    </form>
    <${Trouble} error=${error} />
    ${said.map((each) => html`<div class="part after" key=${each.at}>
      <p class="quiet"><code>${each.text}</code> <${Age} at=${each.at} /></p>
      <pre class="text wrap">${typeof each.answer === "string" ? each.answer : JSON.stringify(each.answer, null, 2)}</pre></div>`)}
  </section>`;
}

/** What is no JSON is a text, as on the command line. */
function meant(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
