// The live graph: steps with rate and busy share, lines as thick as their throughput.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../app/html.js";
import { go, toApp } from "../app/route.js";
import { few, joined, many, rate, share } from "../words/units.js";
import { Bar, Spark } from "../parts/bars.js";
import { Mark, Num } from "../parts/words.js";
import { STEP, placed, shapeOf } from "./layout.js";

const LEAST_SCALE = 0.8; // Smaller text is not read: the graph scrolls within its card instead.
const PADDING = 48;

/** view: an `AppView`; picked: id of the step whose tasks are shown; onPeek(id or null): hover and focus. */
export function Dag({ view, picked, onPeek }) {
  const top = Math.max(1e-9, ...view.edges.map((each) => each.rate ?? 0));
  const culprit = ["warn", "bad"].includes(view.headline.level) ? view.processors.find((each) => each.id === view.headline.processor) : undefined;
  const hasClock = !view.finished_ms && culprit?.holds_clock; // Else its path leads to a step that is as it should be.
  return html`<section class="card graph" aria-label="data flow">
    <${Drawing} shape=${view} focus=${view.headline.processor} edge=${(edge, line) => html`<${Line} edge=${edge} top=${top} line=${line} hasClock=${hasClock} />`}
      box=${(step, style) => html`<${Step} step=${step} style=${style} app=${view.app_id} isEnded=${Boolean(view.finished_ms)}
        key=${step.id} picked=${picked === step.id} culprit=${step === culprit ? view.headline.level : ""} onPeek=${onPeek} />`} />
    ${!view.finished_ms && html`<${Legend} />`}
  </section>`;
}

/** shape: `processors` with an id, `edges` with source and target; edge(edge, line), box(processor, style): how they are drawn. */
export function Drawing({ shape, focus, edge: drawn, box: boxed }) {
  const text = shapeOf(shape);
  const box = useRef(null);
  const room = useWidth(box);
  const plan = useMemo(() => placed(shape, room - PADDING), [text, room]);
  const scale = room ? Math.min(1, Math.max(LEAST_SCALE, (room - PADDING) / plan.width)) : 1;
  const fits = plan.width * scale <= room - PADDING + 1;
  const size = fits ? scale : room > 640 ? LEAST_SCALE : 0.9;
  useLayoutEffect(() => {
    // A step in trouble at the far right is scrolled to once, when the graph is first drawn.
    const at = plan.at.get(focus);
    if (at && box.current && !fits) box.current.scrollLeft = Math.max(0, at.x * size - room / 2);
  }, [text, room > 0]);
  const plane = { width: `${plan.width * size}px`, height: `${plan.height * size}px` };
  const zoom = { width: `${plan.width}px`, height: `${plan.height}px`, transform: size === 1 ? "" : `scale(${size})`, transformOrigin: "0 0" };
  const styleOf = ({ x, y }) => ({ left: `${x - STEP.width / 2}px`, top: `${y - STEP.height / 2}px`, width: `${STEP.width}px`, height: `${STEP.height}px` });
  const nameOf = (edge) => `${edge.source}-${edge.target}`;
  return html`<div class="scroll" ref=${box} tabIndex=${fits ? undefined : 0} role=${fits ? undefined : "region"} aria-label=${fits ? undefined : "data flow, scrolls sideways"}>
    <div class="plane" style=${plane}><div style=${zoom}>
      <svg class="lines" width=${plan.width} height=${plan.height} aria-hidden="true">
        ${shape.edges.map((edge) => html`<g key=${nameOf(edge)}>${drawn(edge, plan.lines.get(nameOf(edge)))}</g>`)}
      </svg>
      ${shape.processors.map((each) => boxed(each, styleOf(plan.at.get(each.id))))}
    </div></div>
  </div>`;
}

function Line({ edge, top, line, hasClock }) {
  const kind = edge.backpressured ? "waits" : edge.holds_clock && hasClock ? "clock" : "";
  const width = 1.5 + 5.5 * Math.sqrt((edge.rate ?? 0) / top);
  return html`<path class=${kind} d=${line.path} style=${{ strokeWidth: `${(kind ? 3 : width).toFixed(1)}px` }} />
    <polygon class="tip ${kind}" points=${line.tip} />`;
}

function Step({ step, style, app, isEnded, picked, culprit, onPeek }) {
  const flow = step.records_in_rate;
  const total = step.records_in;
  const moves = !isEnded && flow !== null && flow !== undefined;
  const words = `${step.name}, ${many(step.parallelism, "task")}, ${joined(moves ? rate(flow) : few(total))} records, busy ${joined(share(step.busy))}`
    + `${step.backpressured > 0.1 ? `, waits ${joined(share(step.backpressured))}` : ""}${step.holds_clock ? ", holds the clock" : ""}${culprit ? ", what the sentence above is about" : ""}`;
  return html`<a class="step ${picked ? "picked" : ""} ${culprit && "culprit"}" style=${style} href=${`#/app/${app}?step=${step.id}`}
      aria-label=${words} aria-current=${picked ? "true" : undefined}
      onMouseEnter=${() => onPeek(step.id)} onMouseLeave=${() => onPeek(null)} onFocus=${() => onPeek(step.id)} onBlur=${() => onPeek(null)}
      onDblClick=${() => go(toApp(app, `step/${step.id}`))}>
    <span class="who"><b title=${step.name}>${culprit && html`<${Mark} level=${culprit} />`}${step.steps[0] ?? step.name}</b><small title=${many(step.parallelism, "task")}>× ${step.parallelism}</small></span>
    <small class="then" title=${step.steps.join(" → ")}>${step.steps.length > 1 ? step.steps.slice(1).map((each) => `→\u00a0${each}`).join(" ") : step.role}</small>
    <span class="now">${moves && html`<${Spark} values=${step.rates} />`}<span>${moves ? Num(rate(flow)) : html`${Num(few(total))}<span class="unit"> rec.</span>`}</span></span>
    ${step.busy !== null && html`<${Bar} busy=${step.busy} waits=${step.backpressured ?? 0} />`}
  </a>`;
}

const Legend = () => html`<div class="legend" aria-hidden="true">
  <span>× 4: four tasks</span>
  <span>line in a step: records per second, 10 min</span>
  <span><i class="frame"></i>what the sentence above is about</span>
  <span><i class="bar"><i style=${{ width: "50%" }}></i></i>share of time busy; red from 90 % on</span>
  <span><i class="bar"><i class="waits" style=${{ width: "100%" }}></i></i><svg width="30" height="8"><path class="waits" d="M1 4H29" stroke-width="3" /></svg>waits for what is behind it</span>
  <span><svg width="30" height="8"><path class="clock" d="M4 4H29" stroke-width="3" /></svg>path to the task that holds the clock</span>
</div>`;

function useWidth(ref) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    setWidth(ref.current.clientWidth); // Before the first paint.
    const watcher = new ResizeObserver(() => setWidth(ref.current.clientWidth));
    watcher.observe(ref.current);
    return () => watcher.disconnect();
  }, []);
  return width;
}
