// The points of ten minutes, in columns: what the server had, and what came since.

const KEPT_MS = 600_000;
const APART_MS = 1800; // Points that are closer together than those of the server are not seen.
const COLUMNS = [
  "records_in_rate", "records_out_rate", "latency_p50_ms", "latency_p99_ms", "watermark_lag_ms",
  "epoch_ms", "epoch_bytes", "state_bytes",
];
const OF_PROCESSORS = ["rate", "busy", "backpressured"];

export const emptySeries = () => ({
  at_ms: [],
  ...Object.fromEntries(COLUMNS.map((name) => [name, []])),
  processors: {},
});

const lastOf = (list) => list[list.length - 1] ?? 0;

/** A series as the server sends it, with its processors by number. */
export const received = (said) => ({
  ...said,
  processors: Object.fromEntries((said.processors ?? []).map((each) => [each.processor_id, each])),
});

/** Add the points that are newer than those that are there. */
export function extend(series, more) {
  const from = more.at_ms.findIndex((at) => at > lastOf(series.at_ms));
  if (from < 0) return series;
  const before = series.at_ms.length;
  const added = more.at_ms.length - from;
  const longer = (old, part) => {
    const head = old.length === before ? old : Array(before).fill(null);
    return head.concat(part ? part.slice(from) : Array(added).fill(null));
  };
  const next = { at_ms: longer(series.at_ms, more.at_ms), processors: {} };
  for (const name of COLUMNS) next[name] = longer(series[name], more[name]);
  const ids = new Set([...Object.keys(series.processors), ...Object.keys(more.processors ?? {})]);
  for (const id of ids) {
    const [old, part] = [series.processors[id] ?? {}, more.processors?.[id] ?? {}];
    next.processors[id] = Object.fromEntries(
      OF_PROCESSORS.map((name) => [name, longer(old[name] ?? [], part[name])]),
    );
  }
  return trimmed(next);
}

/** Whether a view is far enough behind the last point to be one of its own. */
export const isDue = (series, view) => view.at_ms - lastOf(series.at_ms) >= APART_MS;

/** A view as a series of one point. */
export function pointOf(view) {
  const totals = view.totals ?? {};
  return {
    at_ms: [view.at_ms],
    ...Object.fromEntries(COLUMNS.map((name) => [name, [totals[name] ?? null]])),
    processors: Object.fromEntries(
      (view.processors ?? []).map((each) => [
        each.id,
        {
          rate: [each.records_in_rate ?? null],
          busy: [each.busy ?? null],
          backpressured: [each.backpressured ?? null],
        },
      ]),
    ),
  };
}

function trimmed(series) {
  const first = series.at_ms.findIndex((at) => at >= lastOf(series.at_ms) - KEPT_MS);
  if (first <= 0) return series;
  const cut = (columns) =>
    Object.fromEntries(Object.entries(columns).map(([name, list]) => [name, list.slice(first)]));
  const { processors, ...columns } = series;
  return {
    ...cut(columns),
    processors: Object.fromEntries(Object.entries(processors).map(([id, part]) => [id, cut(part)])),
  };
}
