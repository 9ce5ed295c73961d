// The threads of a discussion: one goes from one open thread to the next, by buttons
// or by keys, and threads on lines show the lines.
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

  // The lines that a thread is about are loaded from the changes when it comes into
  // view, one thread after the other.
  const lines = async (p) => {
    const u = new URL(p.querySelector("a").href), note = u.hash.slice(1);
    u.hash = "";
    u.searchParams.set("file", p.dataset.threadLines);
    u.searchParams.set("fragment", "1");
    const res = await fetch(u, { headers: { Accept: "text/html" } });
    if (!res.ok) return;
    const got = new DOMParser().parseFromString(await res.text(), "text/html");
    const row = got.getElementById(note)?.closest("tr.talkrow"), table = row?.closest("table.diff");
    if (!table) return;
    const { from, to } = row.querySelector(".thread")?.dataset || {}, most = from === to ? 4 : 12, body = document.createElement("tbody");
    for (let r = row.previousElementSibling; r && body.rows.length < most; r = row.previousElementSibling) {
      if (r.classList.contains("talkrow")) { r.remove(); continue; }
      if (!r.querySelector("td[data-n]")) break; // another part of the file
      body.prepend(document.adoptNode(r));
    }
    if (!body.rows.length) return;
    const copy = document.createElement("table"), box = document.createElement("div"), cols = table.querySelector("colgroup");
    copy.className = table.className;
    copy.append(...(cols ? [document.adoptNode(cols)] : []), body);
    box.className = "scroll thread-lines";
    box.tabIndex = 0;
    box.append(copy);
    p.after(box);
  };
  let last = Promise.resolve();
  const near = new IntersectionObserver((list) => {
    for (const e of list) if (e.isIntersecting) { near.unobserve(e.target); last = last.then(() => lines(e.target)).catch(() => {}); }
  }, { rootMargin: "300px 0px" });
  for (const p of document.querySelectorAll("[data-thread-lines]")) near.observe(p);

  const help = document.querySelector("dialog[data-keys] dl");
  for (const [keys, text] of [["n p", "Next or previous open thread"], ["x", "Resolve or reopen the thread"]]) {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    keys.split(" ").forEach((k, i) => { if (i) dt.append(" "); const kbd = document.createElement("kbd"); kbd.textContent = k; dt.append(kbd); });
    dd.textContent = text;
    help?.append(dt, dd);
  }
})();
