// The four charts of an application: throughput, latency, lag, epochs; one time axis, the same events.
import { html, useMemo } from "../app/html.js";
import { bytes, rate, span } from "../words/units.js";
import { Chart } from "./chart.js";
import { RangePicker, useRange } from "./range.js";

export function Four({ app, series: lately, events }) {
  const series = useRange(app, lately);
  // Numbers of tables come more often than points of charts: what has not changed is not drawn.
  return html`<div><${RangePicker} />${useMemo(() => drawn(series, events), [series, events])}</div>`;
}

function drawn(series, events) {
  const all = { times: series.at_ms, events };
  return html`<section class="charts" aria-label="charts">
    <${Chart} ...${all} title="Throughput, in" lines=${[{ values: series.records_in_rate, colour: "blue", fill: true, format: rate }]} />
    <${Chart} ...${all} title="Latency, p50 · p99" lines=${[
      { values: series.latency_p50_ms, colour: "blue", format: span },
      { values: series.latency_p99_ms, colour: "amber", dash: [5, 3], format: span },
    ]} />
    <${Chart} ...${all} title="Watermark lag" lines=${[{ values: series.watermark_lag_ms, colour: "amber", fill: true, format: span }]} />
    <${Chart} ...${all} own title="Epochs, time · size" lines=${[
      { values: series.epoch_ms, colour: "blue", format: span },
      { values: series.epoch_bytes, colour: "violet", dash: [5, 3], format: bytes },
    ]} />
  </section>`;
}
