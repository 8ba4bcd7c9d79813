// Finds an application by name or id, and a step of the application that is shown.
import { html, useState } from "../app/html.js";
import { go, toApp } from "../app/route.js";
import { application, overview } from "../data/live.js";
import { useStore } from "../data/store.js";
import { Status } from "./words.js";

const SHOWN = 12;

export function Finder({ close }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const all = useStore(overview); // It may come only after the window is open.
  const here = useStore(application, ({ view }) => view);
  const find = (typed) => {
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    return allPlaces(all, here).filter((place) => words.every((word) => place.text.toLowerCase().includes(word))).slice(0, SHOWN);
  };
  const found = find(text);
  const follow = (place) => {
    if (!place) return;
    close();
    go(place.to);
  };
  const press = (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) setAt((old) => Math.max(0, Math.min(found.length - 1, old + move)));
    else if (event.key === "Enter") follow(find(event.target.value)[at]); // What was typed may not be drawn yet.
    else return;
    event.preventDefault();
  };
  return html`<h2>Find</h2>
    <input placeholder="name or id" aria-label="name or id" value=${text} role="combobox" aria-expanded="true" aria-controls="found"
      onInput=${(event) => { setText(event.target.value); setAt(0); }} onKeyDown=${press} />
    <ul class="found" id="found" role="listbox">${found.map((place, i) => html`<li key=${place.to} class=${i === at ? "at" : ""} role="option" aria-selected=${i === at}>
      <a href=${place.to} onClick=${close}><span>${place.name}</span><span class="quiet">${place.kind}</span>${place.status && html`<${Status} status=${place.status} />`}</a></li>`)}
      ${!found.length && html`<li class="quiet">${all ? "nothing has this name" : "reading the applications"}</li>`}
    </ul>`;
}

function allPlaces(all, view) {
  const steps = (view?.processors ?? []).map((step) => ({
    name: step.name, kind: `step of ${view.name}`, text: `${step.name} ${step.steps.join(" ")}`, to: toApp(view.app_id, `step/${step.id}`),
  }));
  const apps = (all?.applications ?? []).map((app) => ({
    name: app.name, kind: `application ${app.id}`, text: `${app.name} ${app.id}`, to: toApp(app.id), status: app.status,
  }));
  return [...steps, ...apps.reverse()];
}
