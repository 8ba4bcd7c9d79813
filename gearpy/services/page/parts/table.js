// One table for all screens: sorts by a click, and draws only the rows in sight when there are many.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../app/html.js";

const MANY = 80;
const ROW_PX = 34;
const BESIDE = 12; // Rows drawn above and below those in sight.

/**
 * columns: `{name, cell(row), by?(row), number?, wide?, words?}`; `by` is what is sorted by;
 * `wide` columns are left out on small screens, `words` and `label` may take several lines.
 * rows: of any kind; keyOf(row): what stays of a row while its numbers change.
 */
export function Table({ columns, rows, keyOf, label, picked = null, empty = "none" }) {
  const [order, setOrder] = useState(null);
  const sorted = useMemo(() => inOrder(rows, columns, order), [rows, order]);
  const isLong = sorted.length > MANY;
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const inSight = isLong ? windowOf(sorted.length, top, box.current?.clientHeight ?? 620) : [0, sorted.length];
  useLayoutEffect(() => {
    // Fewer rows than before may have left the view behind the end.
    if (isLong && box.current) setTop(box.current.scrollTop);
  }, [sorted.length]);
  if (!rows.length) return html`<p class="quiet">${empty}</p>`;
  const press = (at) => setOrder((old) => (old?.at === at ? (old.down ? { at, down: false } : null) : { at, down: true }));
  const follow = (event) => {
    // A row's height stays the same, so a step of the wheel redraws only behind some rows.
    const next = event.currentTarget.scrollTop;
    if (Math.abs(next - top) > (ROW_PX * BESIDE) / 2) setTop(next);
  };
  return html`<div class="table ${isLong ? "long" : ""}" ref=${box} onScroll=${isLong ? follow : undefined}
      tabIndex=${isLong ? 0 : undefined} role=${isLong ? "region" : undefined} aria-label=${isLong ? label : undefined}>
    <table aria-label=${label} aria-rowcount=${sorted.length + 1}>
      <thead><tr>${columns.map((column, at) => html`<th key=${column.name} scope="col" class=${classOf(column)}
        aria-sort=${order?.at === at ? (order.down ? "descending" : "ascending") : undefined}>
        ${column.by ? html`<button onClick=${() => press(at)} title="sort">${column.name}${order?.at === at ? (order.down ? " ↓" : " ↑") : ""}</button>` : column.name}
      </th>`)}</tr></thead>
      <tbody>
        ${inSight[0] > 0 && html`<${Gap} rows=${inSight[0]} width=${columns.length} />`}
        ${sorted.slice(...inSight).map((row, at) => html`<tr key=${keyOf(row)} class=${picked === keyOf(row) ? "picked" : ""}
          aria-rowindex=${isLong ? inSight[0] + at + 2 : undefined}>
          ${columns.map((column) => html`<td key=${column.name} class=${classOf(column)}>${column.cell(row)}</td>`)}
        </tr>`)}
        ${inSight[1] < sorted.length && html`<${Gap} rows=${sorted.length - inSight[1]} width=${columns.length} />`}
      </tbody>
    </table>
  </div>`;
}

const Gap = ({ rows, width }) =>
  html`<tr aria-hidden="true"><td colspan=${width} style=${{ height: `${rows * ROW_PX}px`, padding: 0 }}></td></tr>`;

const classOf = ({ number, wide, words, label }) =>
  [number && "number", wide && "wide", words && "words", label && "label"].filter(Boolean).join(" ") || undefined;

function windowOf(length, top, height) {
  const first = Math.max(0, Math.floor(top / ROW_PX) - BESIDE);
  return [first, Math.min(length, Math.ceil((top + height) / ROW_PX) + BESIDE)];
}

function inOrder(rows, columns, order) {
  if (!order) return rows;
  const by = columns[order.at].by;
  const sign = order.down ? -1 : 1;
  // What is not known comes last, whichever way.
  return [...rows].sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    if (x === null || x === undefined) return y === null || y === undefined ? 0 : 1;
    if (y === null || y === undefined) return -1;
    return (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y) * sign;
  });
}
