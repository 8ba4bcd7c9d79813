// Submits a program: a file, its arguments, a name, executors, settings of its own.
import { html, useRef, useState } from "../app/html.js";
import { go, toApp } from "../app/route.js";
import { call, mayStart, session } from "../data/api.js";
import { refresh } from "../data/live.js";
import { useStore } from "../data/store.js";
import { Trouble } from "../parts/words.js";
import { bytes, joined } from "../words/units.js";

const KINDS = [".py", ".zip", ".whl"];

export function Submit() {
  const who = useStore(session);
  const [file, setFile] = useState(null);
  const [state, setState] = useState({ busy: false, error: null });
  const form = useRef(null);
  const send = async (event) => {
    event.preventDefault();
    setState({ busy: true, error: null });
    try {
      if (!file) throw new Error("choose a program first");
      const fields = new FormData(form.current);
      fields.set("file", file, file.name);
      const answer = await call("POST", "master/submitprogram", fields);
      refresh();
      go(toApp(answer.app_id ?? answer.appId));
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  if (!mayStart(who)) {
    const why = who?.of_one_run ? "This page is that of one run, and ends with it." : "Your token is not for that: it needs the scope submit.";
    return html`<div class="stack"><h1>Submit an application</h1><p class="quiet">${why}</p></div>`;
  }
  return html`<div class="stack"><h1>Submit an application</h1>
    <form class="card form" ref=${form} onSubmit=${send}>
      <${Drop} file=${file} onFile=${setFile} />
      <label><span>arguments, as in a shell</span><input name="args" autocomplete="off" class="mono" placeholder="/data/books/*.txt" /></label>
      <div class="two">
        <label><span>name (that of the file if empty)</span><input name="name" autocomplete="off" /></label>
        <label><span>executors (0: as few as there is room for)</span><input name="executors" type="number" min="0" value="0" /></label>
      </div>
      <label><span>settings of its own, one a line</span><textarea name="config" rows="3" placeholder="checkpoint.interval-ms = 5000"></textarea></label>
      <${Trouble} error=${state.error} />
      <div class="row"><button class="main" disabled=${state.busy}>${state.busy ? "Sending …" : "Submit"}</button><a class="button" href="#/apps">Cancel</a></div>
    </form></div>`;
}

function Drop({ file, onFile }) {
  const [isOver, setOver] = useState(false);
  const [error, setError] = useState(null);
  const take = (files) => {
    const one = files[0];
    if (!one) return;
    const isKnown = KINDS.some((kind) => one.name.endsWith(kind));
    setError(isKnown ? null : new Error(`${one.name} is no program: choose one of ${KINDS.join(", ")}`));
    onFile(isKnown ? one : null);
  };
  const over = (is) => (event) => {
    event.preventDefault();
    setOver(is);
  };
  const drop = (event) => {
    over(false)(event);
    take(event.dataTransfer.files);
  };
  return html`<label class="drop ${isOver ? "over" : ""}" onDragOver=${over(true)} onDragLeave=${over(false)} onDrop=${drop}>
    <input class="hidden" type="file" accept=${KINDS.join()} onChange=${(event) => take(event.target.files)} />
    ${file ? html`<b>${file.name}</b> <span class="quiet">${joined(bytes(file.size))}</span>` : html`<b>Choose a program</b> or drop it here <span class="quiet">(${KINDS.join(", ")})</span>`}
  </label><${Trouble} error=${error} />`;
}
