// One chart: lines over minutes or hours, events as dashed lines, the current value as a number above.
// All charts of a page share the place of the pointer.
import { html, useEffect, useRef, useState } from "../app/html.js";
import { colour, theme } from "../app/theme.js";
import { useStore } from "../data/store.js";
import uPlot from "../vendor/uplot.js";
import { LOUD } from "../words/events.js";
import { ago, clock, serverNow } from "../words/time.js";
import { joined } from "../words/units.js";

const SPANS_S = [60, 120, 300, 600, 3600, 6 * 3600, 24 * 3600]; // Of the axis: an application that is young fills its charts, too.
const ROOM = 1.35; // Above the highest point, for the names of events and the value of the upper line.
const pointer = uPlot.sync("time");

/**
 * lines: `{values, colour, dash?, fill?, format}`; format gives text and unit.
 * own: each line has a scale of its own, as seconds and bytes have.
 */
export function Chart({ title, times, lines, events = [], own = false }) {
  const place = useRef(null);
  const chart = useRef(null);
  const shown = useRef({});
  const [at, setAt] = useState(null);
  const shade = useStore(theme);
  const first = times.find((_, i) => lines.some((line) => line.values[i] !== null)) ?? Infinity;
  const shownS = SPANS_S.find((span) => (times.at(-1) - first) / 1000 <= span) ?? (first === Infinity ? SPANS_S[0] : SPANS_S.at(-1));
  shown.current = { events, lines };

  useEffect(() => {
    const made = new uPlot(options(place.current, shown, own, setAt), [[], ...lines.map(() => [])], place.current);
    chart.current = made;
    const watcher = new ResizeObserver(([entry]) => {
      const { width, height } = entry.contentRect;
      if (width > 0) made.setSize({ width, height });
    });
    watcher.observe(place.current);
    return () => {
      watcher.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [shade, own, lines.length]);

  useEffect(() => {
    const made = chart.current;
    if (!made) return;
    // The data and the axis change together, so it is drawn once.
    made.batch(() => {
      made.setData([times.map((each) => each / 1000), ...lines.map((line) => line.values)], false);
      const now = (times.at(-1) ?? serverNow()) / 1000;
      made.setScale("x", { min: now - shownS, max: now });
    });
  }, [times, events.length, shade, own]);

  const index = at ?? times.length - 1;
  const values = lines.map((line) => line.format(line.values[index]));
  // One unit at the end, where all have the same.
  const isOneUnit = values.every(([, unit]) => unit === values[0][1]);
  const told = html`${values.map(([text, unit], i) => html`${i > 0 && " · "}${text}${(!isOneUnit || i === values.length - 1) && unit && html`<span class="unit">\u202f${unit}</span>`}`)}`;
  const label = `${title}: ${values.map(joined).join(", ")}`;
  return html`<figure class="card chart" role="img" aria-label=${label} style=${{ margin: 0 }}>
    <header><h3 title=${title}>${title}</h3><span>${told}</span></header>
    <div class="place" ref=${place}></div>
    <footer><span>−${shownS < 3600 ? `${shownS / 60} min` : `${shownS / 3600} h`}</span><span>${at === null || !times[at] ? "now" : `${clock(times[at])}, ${ago(times[at])}`}</span></footer>
  </figure>`;
}

function options(place, shown, own, setAt) {
  const colours = Object.fromEntries(["quiet", "line", "card", "red"].map((name) => [name, colour(name)]));
  const lines = shown.current.lines;
  const scale = (i) => (own ? `y${i}` : "y");
  // A second scale is lower, so that the two lines are apart.
  const roof = (i) => (_, low, high) => [0, high > 0 ? high * (own && i > 0 ? 2 * ROOM : ROOM) : 1];
  const axes = [
    { show: false },
    { scale: scale(0), size: 0, ticks: { show: false }, values: () => [], grid: { stroke: colours.line, width: 1 }, splits: (_u, _i, low, high) => [0, high / ROOM / 2, high / ROOM] },
  ];
  return {
    width: place.clientWidth || 260,
    height: place.clientHeight || 96,
    padding: [4, 0, 2, 0],
    legend: { show: false },
    cursor: { sync: { key: pointer.key, setSeries: false }, y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { x: { time: true, auto: false }, ...Object.fromEntries(lines.map((_, i) => [scale(i), { range: roof(i) }])) },
    axes,
    series: [{}, ...lines.map((line, i) => ({
      scale: scale(i),
      stroke: colour(line.colour),
      width: 1.5,
      dash: line.dash,
      fill: line.fill ? faint(colour(line.colour)) : undefined,
      points: { show: false },
      spanGaps: false,
    }))],
    hooks: {
      setCursor: [(u) => setAt(u.cursor.idx ?? null)],
      draw: [(u) => drawTop(u, shown.current.lines[0], scale(0), colours), (u) => drawEvents(u, shown.current.events, colours)],
    },
  };
}

/** The same colour, nearly transparent. */
const faint = (rgb) => rgb.replace(/^rgba?\(([^)]+?)\)$/, (_, parts) => `rgba(${parts.split(",").slice(0, 3).join()}, .13)`);

/** What the upper line of the grid stands for. */
function drawTop(u, line, scale, colours) {
  const { max } = u.scales[scale];
  if (!(max > 0) || !line.values.some((each) => each > 0)) return;
  const value = max / ROOM;
  text(u, colours, joined(line.format(value)), u.bbox.left + 3 * devicePixelRatio, u.valToPos(value, scale, true) - 3 * devicePixelRatio, "left");
}

function drawEvents(u, events, colours) {
  const { left, top, width, height } = u.bbox;
  let free = -Infinity; // Where the last label ended; labels that would overlap are left out.
  for (const event of events) {
    const x = u.valToPos(event.at_ms / 1000, "x", true);
    if (x < left || x > left + width) continue;
    const isBad = LOUD.has(event.kind);
    u.ctx.save();
    u.ctx.strokeStyle = isBad ? colours.red : colours.quiet;
    u.ctx.lineWidth = devicePixelRatio;
    u.ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    u.ctx.beginPath();
    u.ctx.moveTo(x, top);
    u.ctx.lineTo(x, top + height);
    u.ctx.stroke();
    u.ctx.restore();
    if (event.kind === "executor-started") continue; // The line is enough: what it follows has a label.
    const isLeft = x > left + width * 0.6;
    const said = `${isBad ? "✗ " : ""}${event.text.slice(0, 40)}`; // Red alone is not for everybody.
    const length = said.length * 5.2 * devicePixelRatio;
    const from = isLeft ? x - length : x;
    if (from < free) continue;
    free = from + length;
    text(u, colours, said, x + (isLeft ? -4 : 4) * devicePixelRatio, top + 9 * devicePixelRatio, isLeft ? "right" : "left");
  }
}

function text(u, colours, words, x, y, align) {
  u.ctx.save();
  u.ctx.fillStyle = colours.quiet;
  u.ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
  u.ctx.textAlign = align;
  // Read across lines: each letter has a rim of the colour behind.
  u.ctx.strokeStyle = colours.card;
  u.ctx.lineWidth = 3 * devicePixelRatio;
  u.ctx.lineJoin = "round";
  u.ctx.strokeText(words, x, y);
  u.ctx.fillText(words, x, y);
  u.ctx.restore();
}
