// Points in time as people read them. The clock is the server's, so that ages are right on any machine.
import { report } from "../data/report.js";
import { createStore } from "../data/store.js";
import { joined, span } from "./units.js";

const TOLERATED_MS = 2000; // Below it, the difference is the way that the message took.
let ahead = 0;

/** Learn from a message what time it is where it comes from. */
export function learnTime(atMs) {
  const difference = atMs - Date.now();
  ahead = Math.abs(difference) > TOLERATED_MS ? difference : 0;
}

/** Wall time of the server, ms; in a report, when it was made. */
export const serverNow = () => report?.at_ms ?? Date.now() + ahead;

/** Ticks once a second while somebody looks. */
export const ticking = createStore(0);
setInterval(() => document.hidden || ticking.set(serverNow()), 1000);

const HOUR_MS = 3_600_000;

/** `3 min ago`: below an hour one unit, as the rest is noise. */
export function ago(atMs) {
  const past = Math.max(0, serverNow() - atMs);
  if (past < 1000) return "now";
  if (past >= HOUR_MS) return `${joined(span(past))} ago`;
  const [size, unit] = past < 60_000 ? [1000, "s"] : [60_000, "min"];
  return `${joined([String(Math.floor(past / size)), unit])} ago`;
}

const FULL = new Intl.DateTimeFormat("en-GB", {
  dateStyle: "medium", timeStyle: "long",
});
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** Date, time and zone. */
export const absolute = (atMs) => FULL.format(atMs);
export const clock = (atMs) => CLOCK.format(atMs);

/** Event time: with its ms, in UTC, as programs know it. */
export const eventTime = (atMs) => new Date(atMs).toISOString().replace("T", " ").replace("Z", " UTC");
