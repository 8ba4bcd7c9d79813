// Addresses of screens, behind the #: `#/app/7/step/3`. They can be sent to a colleague.
import { report } from "../data/report.js";
import { createStore } from "../data/store.js";

/** `{screen, app, item, asked, address}` of an address. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [first = "", id, part = "live", item] = path.split("/");
  const asked = Object.fromEntries(new URLSearchParams(query));
  if (first === "app" && /^\d+$/.test(id ?? "")) {
    return { screen: part, app: Number(id), item: item === undefined ? null : Number(item), asked, address: hash };
  }
  return { screen: first || "overview", app: null, item: null, asked, address: hash };
}

const now = () => parse(location.hash || (report ? toApp(report.app_id) : ""));
export const toApp = (id, part = "") => `#/app/${id}${part && `/${part}`}`;
export const route = createStore(now());
addEventListener("hashchange", () => route.set(now()));

export const go = (address) => (location.hash = address);
