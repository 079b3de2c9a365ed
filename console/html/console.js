// A page that lives is read again every few seconds, unless a person is at work in it or has paused that. It says of when it is.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  let paused = false, last = "", read = new Date(), wrong = "";
  const dress = () => {
    const tools = main.querySelector(".live-tools");
    if (!tools) return;
    tools.hidden = false;
    const b = document.getElementById("pause"), asof = document.getElementById("asof");
    b.setAttribute("aria-pressed", String(paused));
    b.textContent = paused ? "Resume updates" : "Pause updates";
    b.onclick = () => { paused = !paused; dress(); };
    asof.textContent = wrong ? `${wrong}; as of ${read.toLocaleTimeString()}` : `as of ${read.toLocaleTimeString()}`;
    asof.className = wrong ? "stale" : "";
  };
  const changed = (field) => field.tagName === "SELECT"
    ? field.selectedIndex !== Math.max(0, [...field.options].findIndex((o) => o.defaultSelected))
    : field.value !== field.defaultValue;
  const busy = () => main.querySelector("details[open]") || document.activeElement?.closest("main form, main a, main summary") ||
    [...main.querySelectorAll("input:not([type=hidden]), select")].some(changed) || String(getSelection());
  dress();
  setInterval(async () => {
    if (paused || document.hidden || busy()) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const text = await answer.text();
      wrong = answer.ok ? "" : `the console answers ${answer.status}: open the page again`;
      if (paused || busy()) return;
      const next = answer.ok && text !== last && new DOMParser().parseFromString(text, "text/html").querySelector("main[data-live]");
      if (answer.ok) { last = text; read = new Date(); }
      if (next) {
        const said = main.querySelector(".said[role=status]");
        main.replaceChildren(...next.childNodes);
        if (said) main.querySelector(".top").after(said);
      }
    } catch { wrong = "the console does not answer"; }
    dress();
  }, 5000);
})();
