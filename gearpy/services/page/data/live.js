// The one stream of events from the server. A browser has six connections a host, so a page has one
// stream, and none while nobody looks at it.
import { get } from "./api.js";
import { report } from "./report.js";
import { emptySeries, extend, isDue, pointOf, received } from "./series.js";
import { createStore } from "./store.js";
import { learnTime } from "../words/time.js";

const AGAIN_MS = 2000; // After a refusal the browser does not try again by itself.
const SILENT_MS = 12_000; // A server that stands still closes nothing.
const LOG_CHARACTERS = 200_000;
const SERIES_MS = 4000; // An app master that has just been started does not answer yet.
const OVERVIEW_MS = 10_000; // Beside an application, for the head of the page.

/** How the connection is: `connecting`, `live`, or `lost` since when. */
export const link = createStore({ state: "connecting", since: Date.now(), why: "" });
export const overview = createStore(null);
/** View, points and log of the application that is watched. */
export const application = createStore({ id: null, view: null, series: emptySeries() });
export const log = createStore({ executor: null, text: "" });

let source = null;
let watched = "";
let heard = 0;
let retry = 0;
let asked = 0; // When the points of the server were asked for.
let hasPoints = false;

/** Watch the whole cluster, or one application, maybe with the log of one of its executors. */
export function watch({ app = null, executor = null } = {}) {
  if (report) return showReport();
  if (app !== application.get().id) application.set({ id: app, view: null, series: emptySeries() });
  if (executor !== log.get().executor) log.set({ executor, text: "" });
  const query = app === null ? "" : `?app=${app}${executor === null ? "" : `&executor=${executor}`}`;
  if (query === watched && source) return;
  watched = query;
  hasPoints = false;
  asked = 0;
  open();
}

function showReport() {
  const { app_id: id, answers } = report;
  const series = extend(emptySeries(), received(answers[`appmaster/${id}/series`]));
  application.set({ id, view: answers[`appmaster/${id}/view`], series });
  link.set({ state: "saved", since: report.at_ms, why: "" });
}

function open() {
  if (report) return;
  close();
  if (document.hidden) return;
  const stream = new EventSource(`api/v1.0/events${watched}`);
  source = stream;
  const on = (name, act) => stream.addEventListener(name, (event) => {
    if (stream !== source) return;
    if (name !== "trouble") hear();
    act(JSON.parse(event.data));
  });
  stream.onopen = () => {
    const { id, series } = application.get();
    if (link.get().state === "lost" && id !== null) askSeries(id, series.at_ms.at(-1) ?? 0);
    hear();
  };
  stream.onerror = () => {
    if (stream !== source) return;
    lose("the connection ended");
    if (stream.readyState === EventSource.CLOSED) askWhy();
  };
  on("overview", (said) => {
    learnTime(said.at_ms);
    overview.set(said);
  });
  on("view", takeView);
  on("series", (said) => takeSeries(application.get().id, said));
  on("log", takeLog);
  // The services are there, and the cluster behind them is not.
  on("trouble", (said) => lose(said.error));
}

function hear() {
  heard = Date.now();
  if (link.get().state !== "live") link.set({ state: "live", since: heard, why: "" });
}

/** A stream that was refused does not say why; a question does. */
function askWhy() {
  const { id } = application.get();
  again();
  if (id === null) return;
  get(`appmaster/${id}/view`).catch((error) => {
    if (error.status !== 404 || application.get().id !== id) return;
    close();
    hear();
    application.set({ id, view: null, series: emptySeries(), missing: error.message });
  });
}

function close() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

function again() {
  close();
  retry = setTimeout(open, AGAIN_MS);
}

function lose(why) {
  if (link.get().state !== "lost") link.set({ state: "lost", since: heard || Date.now(), why });
}

function takeView(view) {
  learnTime(view.at_ms);
  const now = application.get();
  if (now.id !== view.app_id) return;
  const goesOn = view.status === "active" || view.status === "pending"; // Else nothing is measured any more.
  const series = goesOn && isDue(now.series, view) ? extend(now.series, pointOf(view)) : now.series;
  application.set({ ...now, view, series });
  // At its end an app master leaves its last points a moment after the first view that tells of it.
  if (!goesOn) askSeries(now.id, series.at_ms.at(-1));
  else if (!hasPoints && view.status !== "pending" && Date.now() - asked > SERIES_MS) askSeries(now.id);
}

function takeSeries(id, said) {
  const now = application.get();
  if (now.id !== id) return;
  hasPoints = true;
  // What came by views in the meantime goes behind the older points of the server.
  const [more, first] = [received(said), now.series.at_ms[0] ?? Infinity];
  const isOlder = (more.at_ms?.[0] ?? Infinity) < first;
  const series = isOlder ? extend(extend(emptySeries(), more), now.series) : extend(now.series, more);
  application.set({ ...now, series });
}

function takeLog({ text, executor }) {
  const now = log.get();
  if (now.executor === null || (executor !== undefined && executor !== now.executor)) return;
  log.set({ ...now, text: (now.text + text).slice(-LOG_CHARACTERS) });
}

function askSeries(id, since = 0) {
  asked = Date.now();
  get(`appmaster/${id}/series?since_ms=${since}`).then((said) => takeSeries(id, said), () => {});
}

function askOverview() {
  return get("overview").then((said) => {
    learnTime(said.at_ms);
    overview.set(said);
  }, () => {});
}

/** Ask once more for all that is shown, such as behind an action. */
export function refresh() {
  askOverview();
  const { id } = application.get();
  if (id !== null) get(`appmaster/${id}/view`).then(takeView, () => {});
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
setInterval(() => !document.hidden && watched && askOverview(), OVERVIEW_MS);
setInterval(() => {
  if (document.hidden || !source || Date.now() - heard < SILENT_MS || link.get().state !== "live") return;
  // Nothing changes, or nobody is there: a question tells.
  get("session").then(() => (heard = Date.now()), () => {
    lose("no answer");
    again();
  });
}, 3000);
export { askOverview };
