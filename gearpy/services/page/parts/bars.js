// Shares and short histories without axes.
import { html } from "../app/html.js";
import { joined, share } from "../words/units.js";
import { Num } from "./words.js";

const FULL = 0.9;

/** Time that is worked (solid) and waited for those behind (striped), of all time. */
export function Bar({ busy, waits = 0 }) {
  const level = busy >= FULL ? "full" : ""; // Amber is for waiting, here as in the graph.
  const width = (part) => ({ width: `${Math.min(1, Math.max(0, part ?? 0)) * 100}%` });
  const label = `busy ${joined(share(busy))}${waits > 0 ? `, waits ${joined(share(waits))}` : ""}`;
  return html`<span class="bar" role="img" aria-label=${label} title=${label}>
    <i class=${level} style=${width(busy)}></i>
    ${waits > 0.005 && html`<i class="waits" style=${width(Math.min(waits, 1 - (busy ?? 0)))}></i>`}
  </span>`;
}

/** A share as bar and number, for tables. */
export const ShareBar = ({ busy, waits }) =>
  html`<span class="share"><${Bar} busy=${busy} waits=${waits} /><span>${Num(share(busy))}</span></span>`;

/** The last points of a rate; its height is its own largest. */
export function Spark({ values, width = 84, height = 16 }) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return html`<svg class="spark" width=${width} height=${height} aria-hidden="true" />`;
  const top = Math.max(...known) || 1;
  const points = values
    .map((value, at) => `${((at / (values.length - 1)) * width).toFixed(1)},${(height - 1 - ((value ?? 0) / top) * (height - 2)).toFixed(1)}`)
    .join(" ");
  return html`<svg class="spark" width=${width} height=${height} aria-hidden="true"><polyline points=${points} /></svg>`;
}
