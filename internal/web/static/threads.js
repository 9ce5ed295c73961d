// The open threads of a discussion: one goes from one to the next, by buttons or
// by keys.
"use strict";

(() => {
  const bar = document.querySelector("[data-thread-bar]");
  if (!bar) return;
  let current = null, going = 0;
  const walk = (by) => {
    const list = [...document.querySelectorAll(".talk .thread:not(.settled)")].filter((t) => t.querySelector(":scope > details"));
    if (!list.length) { location.href = bar.querySelector("a")?.href || location.href; return; }
    const at = list.indexOf(current);
    current = list[at < 0 ? (by > 0 ? 0 : list.length - 1) : (at + by + list.length) % list.length];
    current.querySelector("details").open = true;
    current.tabIndex = -1;
    current.focus({ preventScroll: true });
    current.scrollIntoView({ block: "center" });
  };
  for (const b of bar.querySelectorAll("[data-thread-step]")) {
    b.hidden = false;
    b.addEventListener("click", () => walk(+b.dataset.threadStep));
  }
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog[open], [contenteditable]")) return;
    if (Date.now() - going < 1500) { going = 0; return; } // "g p" and the like are for the whole site
    if (e.key === "g") going = Date.now();
    else if (e.key === "n" || e.key === "p") walk(e.key === "n" ? 1 : -1);
    else if (e.key === "x") document.activeElement?.closest(".thread")?.querySelector("form[action$='/resolve']")?.requestSubmit();
  });
  const help = document.querySelector("dialog[data-keys] dl");
  for (const [keys, text] of [["n p", "Next or previous open thread"], ["x", "Resolve or reopen the thread"]]) {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    keys.split(" ").forEach((k, i) => { if (i) dt.append(" "); const kbd = document.createElement("kbd"); kbd.textContent = k; dt.append(kbd); });
    dd.textContent = text;
    help?.append(dt, dd);
  }
})();
