// Windows that change a program while it runs. Each shows the plan first: what becomes of what steps keep.
import { html, useEffect, useState } from "../app/html.js";
import { call } from "../data/api.js";
import { useAnswer } from "../data/ask.js";
import { refresh } from "../data/live.js";
import { ask, show } from "../parts/dialog.js";
import { say } from "../parts/said.js";
import { Mark, Notice, Trouble, capital } from "../parts/words.js";
import { brief } from "../words/units.js";

const TASKS_MAX = 999_999;

/** Ask for other numbers of tasks: of all steps, or of those of one processor. */
export const askScale = (view, only = null) =>
  show(({ close }) => html`<${Scale} view=${view} only=${only} close=${close} />`, "other numbers of tasks");

/** Ask for the program of a version of before. */
export const askRollback = (view, version) =>
  show(({ close }) => html`<${Rollback} view=${view} version=${version} close=${close} />`, "an earlier version");

/** Ask whether to give up the change that waits, or is being prepared. */
export const askCallOff = (view) =>
  ask({
    title: `Call off version ${view.change.version}?`,
    text: [`${capital(view.change.change)} is not done. What runs goes on as it is.`],
    yes: "Call off",
    act: async () => {
      await call("POST", `appmaster/${view.app_id}/call-off`);
      say(`version ${view.change.version} is called off`);
      refresh();
    },
  });

function Scale({ view, only, close }) {
  const { value, error } = useAnswer(`appmaster/${view.app_id}/plan`);
  const [wanted, setWanted] = useState({});
  const parts = view.processors.filter((each) => only === null || each.id === only);
  const stepOf = (id) => value?.processors?.find((each) => each.number === id)?.steps[0]?.id;
  const changed = parts.filter((each) => Number(wanted[each.id] ?? each.parallelism) !== each.parallelism);
  const steps = Object.fromEntries(changed.map((each) => [stepOf(each.id), Number(wanted[each.id])]));
  return html`<h2>Scale ${only === null ? view.name : brief(parts[0])}</h2>
    <p>Keys move to other tasks with their state, and partitions of a source to other readers. The application pauses for a moment.</p>
    ${view.scaled.length > 0 && html`<p class="quiet">A number that you give stays: autoscale chooses no longer for that step.</p>`}
    <${Trouble} error=${error} />
    <${Planned} route=${`appmaster/${view.app_id}/scale`} body=${{ steps }} isReady=${value !== null && changed.length > 0} yes="Scale" close=${close}>
      <div class="amounts">${parts.map((each) => html`<label key=${each.id}><span>${brief(each)}</span>
        <input type="number" min="1" max=${TASKS_MAX} required disabled=${value === null} value=${wanted[each.id] ?? each.parallelism} onInput=${(event) => setWanted({ ...wanted, [each.id]: event.target.value })} /></label>`)}</div>
    <//>`;
}

function Rollback({ view, version, close }) {
  const [drops, setDrops] = useState(false);
  return html`<h2>Go back to version ${version.number}?</h2>
    <p>Its program, <code>${[version.filename, ...version.args].join(" ")}</code>, takes the place of the one that runs, with what steps keep now. If it fails in its trial, this one comes back.</p>
    <${Planned} route=${`appmaster/${view.app_id}/rollback`} body=${{ version: version.number, allow_drop: drops }} isAsked yes="Roll back" close=${close}
      refused=${html`<label class="row"><input type="checkbox" checked=${drops} onChange=${(event) => setDrops(event.target.checked)} /> leave that behind</label>`} />`;
}

/** The name of a step and its fate; the text of the plan begins with both, and has the id between. */
function told({ name, fate, step, text }) {
  const begin = `${fate} ${name} [${step}]`;
  if (!name || !text.startsWith(begin)) return capital(text);
  return html`<b>${name}</b> ${fate}${text.slice(begin.length)}`;
}

/** The plan of a change, then the change itself: what is done is what was shown. */
function Planned({ route, body, yes, close, children = null, refused = null, isReady = true, isAsked = false }) {
  const [{ plan, of, busy, error }, setState] = useState({ plan: null, of: "", busy: false, error: null });
  const asked = JSON.stringify(body);
  const known = of === asked ? plan : null;
  const ask = async (given) => {
    setState((old) => ({ ...old, busy: true, error: null }));
    try {
      const answer = await call("POST", route, given);
      if (answer.has_begun) {
        say(`version ${answer.version} is being prepared`);
        refresh();
        close();
        return;
      }
      setState({ plan: answer, of: asked, busy: false, error: null });
    } catch (refused) {
      setState({ plan: null, of: asked, busy: false, error: refused });
    }
  };
  useEffect(() => {
    if (isAsked) ask({ ...body, dry_run: true });
  }, [asked, isAsked]);
  const submit = (event) => {
    event.preventDefault();
    ask(known ? body : { ...body, dry_run: true });
  };
  return html`<form onSubmit=${submit}>
    ${children}
    ${known && html`<ul class="plan" aria-label="the plan">${known.moves.map((each) => html`<li key=${each.step}><${Mark} level=${each.is_lost ? "bad" : "ok"} /><span>${told(each)}</span></li>`)}
      ${known.differences.map((each) => html`<li key=${each}><${Mark} level="ok" /><span>Replaced ${each}</span></li>`)}</ul>`}
    ${known?.is_same && html`<p class="quiet">Graph and state are the same: only code and arguments differ.</p>`}
    ${known?.refusal && html`<${Notice} level="warn" text=${known.refusal} />`}
    ${(known?.refusal || body.allow_drop) && refused}
    <${Trouble} error=${of === asked ? error : null} />
    <footer>
      <button type="button" onClick=${close}>Cancel</button>
      <button class="main" disabled=${busy || !isReady || Boolean(known?.refusal)}>${known || isAsked ? yes : "Show the plan"}</button>
    </footer>
  </form>`;
}
