// A page that lives is read again every few seconds, unless a person is at work in it or has paused that. It says of when it is.
// What a form decides about was read by a person: a page with such a form stays as it is. When what it shows has changed, its
// button is off, and the page says so.
"use strict";
(() => {
  // On a phone a row of a table is a card, in which each cell that is not empty says what it is.
  const label = () => {
    for (const table of document.querySelectorAll(".wide table")) {
      const heads = table.querySelectorAll("thead th");
      for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, i) => {
        if (cell.textContent.trim()) cell.dataset.label = heads[i].textContent;
        if (cell.className === "num") heads[i].className = "num"; // numbers stand below their name
      });
      table.classList.add("labelled");
    }
  };
  label();
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  let paused = false, last = "", read = new Date(), wrong = "";
  const forms = (page) => [...page.querySelectorAll("form.do")];
  const decides = forms(main).length > 0;
  // What a form is about: the route, the instance, the record or the digest that was seen, and what its card shows.
  const about = (form) => JSON.stringify([form.closest("[data-shows]")?.dataset.shows,
    [...form.querySelectorAll("input[type=hidden]:not([name=key])")].map((i) => [i.name, i.value])]);
  const dress = () => {
    const tools = main.querySelector(".live-tools");
    if (!tools) return;
    tools.hidden = false;
    const b = document.getElementById("pause"), asof = document.getElementById("asof");
    b.hidden = decides;
    b.setAttribute("aria-pressed", String(paused));
    b.textContent = paused ? "Resume updates" : "Pause updates";
    b.onclick = () => { paused = !paused; dress(); };
    asof.textContent = wrong ? `${wrong}; as of ${read.toLocaleTimeString()}` : `as of ${read.toLocaleTimeString()}`;
    asof.className = wrong ? "stale" : "";
  };
  const switchOff = (page) => {
    const now = new Set(forms(page).map(about)), shown = new Set(forms(main).map(about));
    const gone = forms(main).filter((form) => !now.has(about(form)));
    for (const form of gone) form.querySelector("button").disabled = true;
    if (document.getElementById("changed") || !gone.length && now.size === shown.size) return;
    const note = document.createElement("p"), load = document.createElement("button");
    Object.assign(load, { textContent: "Load it again", onclick: () => location.reload() });
    Object.assign(note, { id: "changed", className: "said warn", role: "alert", textContent:
      "This has changed since you opened the page. What you read may not be what there is: the buttons of what has changed are off. " });
    note.append(load);
    main.querySelector(".top").after(note);
  };
  const changed = (field) => field.tagName === "SELECT"
    ? field.selectedIndex !== Math.max(0, [...field.options].findIndex((o) => o.defaultSelected))
    : field.value !== field.defaultValue;
  const busy = () => !decides && (document.activeElement?.closest("main form, main a, main summary") ||
    [...main.querySelectorAll("input:not([type=hidden]), select")].some(changed) || String(getSelection()));
  dress();
  setInterval(async () => {
    if (paused || document.hidden || busy()) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const text = await answer.text();
      wrong = answer.ok ? "" : `the console answers ${answer.status}: open the page again`;
      if (paused || busy()) return;
      const next = answer.ok && text !== last && new DOMParser().parseFromString(text, "text/html").querySelector("main[data-live]");
      if (answer.ok) last = text;
      if (answer.ok && !decides) read = new Date();
      if (next && decides) switchOff(next);
      else if (next && forms(next).length) return location.reload(); // from now on it stays as it is
      else if (next) {
        const said = main.querySelector(".said[role=status]");
        main.replaceChildren(...next.childNodes);
        label();
        if (said) main.querySelector(".top").after(said);
      }
    } catch { wrong = "the console does not answer"; }
    dress();
  }, 5000);
})();
