// What runs, as it was planned: the steps of each task, what they keep, and what each path promises.
import { html } from "../app/html.js";
import { useAnswer } from "../data/ask.js";
import { Drawing } from "../graph/dag.js";
import { Copy, Trouble } from "../parts/words.js";
import { Table } from "../parts/table.js";
import { many } from "../words/units.js";

export function Plan({ view }) {
  const { value: plan, error } = useAnswer(`appmaster/${view.app_id}/plan`);
  return html`
    ${plan?.processors?.[0]?.steps && html`<${Picture} plan=${plan} />`}
    <section class="card"><h2>What is promised</h2>${plan?.paths?.length ? html`<${Paths} paths=${plan.paths} />` : html`<${Told} lines=${view.guarantees} />`}</section>
    <${Trouble} error=${error} />
    ${plan && (plan.processors?.[0]?.steps ? plan.processors.map((each) => html`<${Part} key=${each.number} part=${each} plan=${plan} />`)
    : html`<section class="card"><h2>Plan</h2><pre class="text">${JSON.stringify(plan, null, 2)}</pre></section>`)}`;
}

/** The plan as a graph; a click on a task leads to its steps below. */
function Picture({ plan }) {
  const shape = { processors: plan.processors.map((each) => ({ ...each, id: each.number })), edges: plan.edges };
  const line = (_, { path, tip }) => html`<path d=${path} style=${{ strokeWidth: "2px" }} /><polygon class="tip" points=${tip} />`;
  return html`<section class="card graph" aria-label="plan"><${Drawing} shape=${shape} edge=${line} box=${(part, style) => html`
    <button key=${part.id} class="step" style=${style} onClick=${() => document.getElementById(`part-${part.id}`).scrollIntoView()}>
      <span class="who"><b title=${part.steps[0].name}>${part.id}: ${part.steps[0].name}</b><small title=${many(part.parallelism, "task")}>× ${part.parallelism}</small></span>
      <small class="then">${part.steps.slice(1).map((each) => `→\u00a0${each.name}`).join(" ")}</small>
      <span></span><small class="then">${keptIn(part)}</small>
    </button>`} /></section>`;
}

const keptIn = ({ steps }) => (steps.some((each) => each.keeps) ? `keeps ${steps.map((each) => each.keeps).filter(Boolean).join(", ")}` : "keeps nothing");

const Told = ({ lines }) => (lines.length ? html`<ul>${lines.map((each) => html`<li>${each}</li>`)}</ul>` : html`<p class="quiet">Nothing is known of it yet.</p>`);

const Paths = ({ paths }) => html`<${Table} label="paths" rows=${paths} keyOf=${(row) => `${row.source} ${row.sink}`} columns=${[
  { name: "from, to", label: true, cell: (row) => `${row.source} → ${row.sink}` },
  { name: "each record, and its weakest link", words: true, cell: (row) => html`<b>${row.guarantee}</b>${row.weakest_link && html`<br />${row.weakest_link}`}` },
]} />`;

/** The steps that run in one task, one after the other on each batch. */
function Part({ part, plan }) {
  const out = plan.edges.filter((each) => each.source === part.number);
  const nameOf = (number) => `${number}: ${plan.processors.find((each) => each.number === number).steps[0].name}`;
  return html`<section class="card" id=${`part-${part.number}`}><header><h2>${part.number}: ${part.steps.map((each) => each.name).join(" → ")}</h2><span class="quiet">${many(part.parallelism, "task")}</span></header>
    <${Table} label=${`steps of ${part.number}`} rows=${part.steps} keyOf=${(row) => row.id + row.name} columns=${[
      { name: "step", label: true, cell: (row) => row.name },
      { name: "gives", cell: (row) => row.gives },
      { name: "keyed by", wide: true, label: true, cell: (row) => row.key || "—" },
      { name: "keeps", words: true, cell: (row) => row.keeps || "—" },
      { name: "state is found by", wide: true, cell: (row) => (row.id && row.keeps ? html`<${Copy} text=${row.id} shown=${html`<code>${row.id}</code>`} />` : "—") },
    ]} />
    ${out.map((each) => html`<p class="quiet after">→ ${nameOf(each.target)}; ${each.spread}, as ${each.form}</p>`)}
  </section>`;
}
