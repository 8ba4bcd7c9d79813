// Starts the page: asks who looks, then follows the address.
import { html, render } from "./html.js";
import { listenToKeys } from "./keys.js";
import { route } from "./route.js";
import { Shell } from "./shell.js";
import { refreshSession, session } from "../data/api.js";
import { report } from "../data/report.js";
import { askOverview, link, watch } from "../data/live.js";

const AGAIN_MS = 2000;
const asked = { app: undefined, executor: undefined };

/** Watch what the address is about, once the server has said that it may be seen. */
function follow() {
  const who = session.get();
  if (!who || (who.login_required && !who.user)) return;
  const { app, screen, item } = route.get();
  const executor = screen === "executor" ? item : null;
  if (asked.app === app && asked.executor === executor) return;
  Object.assign(asked, { app, executor });
  watch({ app, executor });
  askOverview();
  scrollTo(0, 0);
}

async function begin() {
  try {
    await refreshSession();
  } catch (error) {
    link.set({ state: "lost", since: link.get().since, why: error.message });
    setTimeout(begin, AGAIN_MS);
  }
}

route.listen(follow);
session.listen((who) => {
  if (who?.login_required && !who.user) asked.app = undefined;
  follow();
});
if (!report) listenToKeys();
const place = document.getElementById("page");
place.replaceChildren();
render(html`<${Shell} />`, place);
begin();
