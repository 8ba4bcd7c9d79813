// The frame around all screens: where one is, how the connection is, and what is wrong with it.
import { html, useEffect } from "./html.js";
import { find, help } from "./keys.js";
import { route } from "./route.js";
import { switchTheme, theme } from "./theme.js";
import { call, refreshSession, session } from "../data/api.js";
import { application, link, overview } from "../data/live.js";
import { report } from "../data/report.js";
import { useStore } from "../data/store.js";
import { Dialogs } from "../parts/dialog.js";
import { Said } from "../parts/said.js";
import { Age, Notice, sentence } from "../parts/words.js";
import { Alerts } from "../screens/alerts.js";
import { Application } from "../screens/application.js";
import { Applications } from "../screens/applications.js";
import { Login } from "../screens/login.js";
import { Overview } from "../screens/overview.js";
import { Submit } from "../screens/submit.js";
import { Workers } from "../screens/workers.js";
import { absolute } from "../words/time.js";
import { many } from "../words/units.js";

const SCREENS = { overview: Overview, apps: Applications, submit: Submit, workers: Workers, alerts: Alerts };

export function Shell() {
  const at = useStore(route);
  const who = useStore(session);
  const { state } = useStore(link);
  const mustLogin = who?.login_required && !who.user;
  const Screen = at.app !== null ? Application : SCREENS[at.screen] ?? Lost;
  useTitle(at);
  return html`<div class=${state === "lost" ? "stale" : ""}>
    ${report ? html`<${Saved} />` : html`<${Head} at=${at} who=${who} mustLogin=${mustLogin} />`}
    <${Broken} />
    <main id="main" data-at=${at.address}>${mustLogin ? html`<${Login} />` : html`<${Screen} at=${at} key=${at.app ?? at.screen} />`}</main>
    <${Dialogs} /><${Said} />
  </div>`;
}

function Head({ at, who, mustLogin }) {
  const all = useStore(overview);
  const alerts = all?.alerts?.length ?? 0;
  const isAt = (screens) => (screens.includes(at.app !== null ? "apps" : at.screen) ? "page" : undefined);
  return html`<header class="head">
    <a class="name" href="#/">gearpy</a>
    ${!mustLogin && html`<nav aria-label="screens">
      <a href="#/" aria-current=${isAt(["overview"])}>Overview</a>
      <a href="#/apps" aria-current=${isAt(["apps", "submit"])}>${who?.of_one_run ? "Run" : "Applications"}</a>
      ${!who?.of_one_run && html`<a href="#/workers" aria-current=${isAt(["workers"])}>Workers</a>`}
      <a href="#/alerts" aria-current=${isAt(["alerts"])}>Alerts${alerts > 0 && ` · ${alerts}`}</a>
    </nav>`}
    <div class="state">
      ${all && !who?.of_one_run && html`<span><span class="wide">cluster <code title=${all.cluster_id}>${all.cluster_id.slice(0, 8)}</code> · </span>${all.masters.length > 0 && `${many(all.masters.length, "master")} · `}${many(all.workers.length, "worker")}</span>`}
      <${Connection} />
      <button class="plain" onClick=${find} title="find (/)" aria-label="find">/</button>
      <button class="plain" onClick=${switchTheme} title="switch between dark and light">${useStore(theme) === "dark" ? "light" : "dark"}</button>
      <button class="plain" onClick=${help} title="keys (?)" aria-label="keys">?</button>
      ${who?.login_required && who.user && html`<button class="plain" onClick=${logout} title=${`logged in as ${who.user}`}>log out</button>`}
    </div>
  </header>`;
}

/** Head of a report: of when it is, and what it lacks. */
function Saved() {
  const { at_ms: at, version, cluster_id: cluster, missing } = report;
  return html`<header class="head">
      <b class="name">gearpy</b>
      <span class="quiet">report of ${absolute(at)} · cluster <code title=${cluster}>${cluster.slice(0, 8)}</code> · version ${version}</span>
      <div class="state"><button class="plain" onClick=${switchTheme} title="switch between dark and light">${useStore(theme) === "dark" ? "light" : "dark"}</button></div>
    </header>
    ${missing.length > 0 && html`<aside class="missing"><${Notice} level="warn" text="Not all is known">${missing.map((each) => html`<p>${sentence(each)}</p>`)}<//></aside>`}`;
}

function Connection() {
  const { state } = useStore(link);
  const word = { live: "live", lost: "disconnected", connecting: "connecting" }[state];
  return html`<span>${word}<i class="dot ${state}"></i></span>`;
}

/** Says since when the numbers are old; they are greyed by the class around. */
function Broken() {
  const { state, since, why } = useStore(link);
  if (state !== "lost") return null;
  return html`<div class="broken" role="alert"><b>Disconnected</b>; the last numbers came <${Age} at=${since} />${why && ` (${why})`}.
    The page tries again by itself. Applications go on without it.</div>`;
}

const Lost = () => html`<h1>There is no such screen</h1><p><a href="#/">Overview</a></p>`;

async function logout() {
  await call("POST", "logout", {});
  await refreshSession();
}

function useTitle(at) {
  const name = useStore(application, (now) => now.view?.name);
  useEffect(() => {
    document.title = at.app !== null ? `${name ?? `application ${at.app}`} · gearpy` : `${at.screen} · gearpy`;
  }, [at, name]);
}
