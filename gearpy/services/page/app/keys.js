// What the keyboard does: `/` finds, `g` and a letter goes, `?` helps.
import { html } from "./html.js";
import { isOpen, show } from "../parts/dialog.js";
import { Finder } from "../parts/finder.js";
import { go } from "./route.js";

const PLACES = { o: ["#/", "overview"], a: ["#/apps", "applications"], w: ["#/workers", "workers"], l: ["#/alerts", "alerts"], n: ["#/submit", "submit a new application"] };
let isLed = false; // However long ago: who thinks between two keys means both.

export function listenToKeys() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isOpen()) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    const isSecond = isLed;
    isLed = false;
    if (isSecond && PLACES[event.key]) go(PLACES[event.key][0]);
    else if (event.key === "g") isLed = true;
    else if (event.key === "/") find();
    else if (event.key === "?") help();
    else return;
    event.preventDefault();
  });
}

export const find = () => show(Finder, "find an application or a step");
export const help = () => show(Help, "keys");

const Help = ({ close }) => html`<h2>Keys</h2>
  <dl class="pairs">
    <dt><kbd>/</kbd></dt><dd>find an application or a step</dd>
    ${Object.entries(PLACES).map(([key, [, words]]) => html`<dt><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>go to ${words}</dd>`)}
    <dt><kbd>Tab</kbd></dt><dd>step by step through the graph; a step in focus shows its tasks</dd>
    <dt><kbd>Enter</kbd></dt><dd>keep the step; a double click opens it</dd>
    <dt><kbd>?</kbd></dt><dd>this help</dd>
  </dl>
  <footer><button onClick=${close}>Close</button></footer>`;
