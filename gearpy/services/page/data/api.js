// Questions to the server: JSON in, JSON out; a refusal becomes an error that says the fix.
import { report } from "./report.js";
import { createStore } from "./store.js";

const BASE = "api/v1.0/";
const TIMEOUT_MS = 15_000;

/** Who looks, and what they may do; null until the server has said it. */
export const session = createStore(null);

export class Refused extends Error {
  constructor(text, { fix = null, status = 0 } = {}) {
    super(text);
    this.fix = fix;
    this.status = status;
  }
}

/** Send one request and return what was answered. Throws `Refused`. */
export async function call(method, path, body) {
  if (report) return saved(method, path);
  const isForm = body instanceof FormData;
  let answer;
  let text;
  try {
    answer = await fetch(BASE + path, {
      method,
      body: body === undefined || isForm ? body : JSON.stringify(body),
      headers: body === undefined || isForm ? {} : { "content-type": "application/json" },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    text = await answer.text(); // It may be cut off, such as by the way to another page.
  } catch (error) {
    const late = error.name === "TimeoutError";
    throw new Refused(late ? "no answer within 15 s" : "the server cannot be reached", {
      fix: "see that it still runs: gear info",
    });
  }
  const said = parsed(text);
  if (answer.ok) return said;
  if (answer.status === 401 && path !== "login") refreshSession();
  const detail = said?.error ?? said?.detail ?? `the server answered ${answer.status}`;
  throw new Refused(typeof detail === "string" ? detail : JSON.stringify(detail), {
    fix: said?.fix ?? null,
    status: answer.status,
  });
}

function saved(method, path) {
  if (method === "GET" && path in report.answers) return report.answers[path];
  throw new Refused(report.refused[path] ?? "this is not in the report");
}

/** What an answer says; null if it is empty, or no JSON as from a proxy. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export const get = (path) => call("GET", path);

/** Ask again who looks, such as after a login. */
export async function refreshSession() {
  session.set(await get("session"));
}

/** Whether this person may start applications here; services of one run end with it. */
export const mayStart = (who) => may(who, "submit") && !who?.of_one_run;

/** Whether this person may do what needs a scope: read, submit or admin. */
export const may = (who, scope) => !who?.scopes || who.scopes.includes(scope) || who.scopes.includes("admin");
