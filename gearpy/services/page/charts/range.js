// How far charts look back: ten minutes as they come, or an hour or a day, in points further apart.
import { html, useMemo } from "../app/html.js";
import { useAnswer } from "../data/ask.js";
import { report } from "../data/report.js";
import { emptySeries, received } from "../data/series.js";
import { createStore, useStore } from "../data/store.js";

const RANGES = { "10m": ["10 min", 0], "1h": ["1 h", 20_000], "24h": ["24 h", 300_000] }; // And ms between points.
const chosen = createStore("10m");

/** The points of the range that is chosen; series: those of the last ten minutes. */
export function useRange(app, series) {
  const within = useStore(chosen);
  const [, every] = RANGES[within];
  const { value } = useAnswer(every ? `appmaster/${app}/series?within=${within}` : null, every);
  const longer = useMemo(() => (value ? received(value) : emptySeries()), [value]);
  return every ? longer : series;
}

/** A report has the last ten minutes only. */
export function RangePicker() {
  const now = useStore(chosen);
  if (report) return null;
  return html`<div class="range" role="group" aria-label="how far charts look back">${Object.entries(RANGES).map(([within, [words]]) =>
    html`<button class="plain" aria-pressed=${now === within ? "true" : "false"} onClick=${() => chosen.set(within)}>${words}</button>`)}</div>`;
}
