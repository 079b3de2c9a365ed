// A page that lives is read again every few seconds, unless a person is at work in it or has paused that.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  let paused = false, tag = "";
  const button = () => document.getElementById("pause");
  const dress = () => {
    const b = button();
    if (!b) return;
    b.hidden = false;
    b.setAttribute("aria-pressed", String(paused));
    b.textContent = paused ? "Resume updates" : "Pause updates";
    b.onclick = () => { paused = !paused; dress(); };
  };
  const busy = () => paused || document.hidden || main.querySelector("details[open]") || main.contains(document.activeElement) ||
    [...main.querySelectorAll("input:not([type=hidden])")].some((i) => i.value !== i.defaultValue) || String(getSelection());
  dress();
  setInterval(async () => {
    if (busy()) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const text = await answer.text();
      if (!answer.ok || text === tag || busy()) return;
      tag = text;
      const next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
      if (!next) return;
      const said = main.querySelector(".said[role=status]");
      main.replaceChildren(...next.childNodes);
      if (said) main.querySelector(".top").after(said);
      dress();
    } catch { /* the network: the next time */ }
  }, 5000);
})();
