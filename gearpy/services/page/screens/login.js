// Asks for a token where the server wants one; it is kept in a cookie that scripts cannot read.
import { html, useState } from "../app/html.js";
import { call, refreshSession } from "../data/api.js";
import { Trouble } from "../parts/words.js";

export function Login() {
  const [token, setToken] = useState("");
  const [error, setError] = useState(null);
  const enter = async (event) => {
    event.preventDefault();
    try {
      await call("POST", "login", { token });
      await refreshSession();
    } catch (refused) {
      setError(refused);
    }
  };
  return html`<form class="card form" onSubmit=${enter}>
    <h1>Log in</h1>
    <label><span>token</span><input type="password" autocomplete="current-password" autofocus required value=${token} onInput=${(event) => setToken(event.target.value)} /></label>
    <${Trouble} error=${error} />
    <div><button class="main">Log in</button></div>
    <p class="quiet">Who runs the cluster gives tokens, with a scope: to read, to submit, or to administer. If that is you, on this machine: <code>gear token show</code>.</p>
  </form>`;
}
