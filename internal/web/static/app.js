// What a page can do beyond links and forms. Every page works without it.
"use strict";

(() => {
  const $$ = (q, from = document) => from.querySelectorAll(q);
  const root = document.documentElement;

  // The theme: the system's, until somebody chooses. The cookie tells the
  // server, so that the next page comes in the right colours.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  for (const b of $$("[data-theme-switch]")) {
    b.hidden = false;
    b.addEventListener("click", () => {
      const now = root.dataset.theme || (dark.matches ? "dark" : "light");
      const next = now === "dark" ? "light" : "dark";
      root.dataset.theme = next;
      const secure = location.protocol === "https:" ? "; Secure" : "";
      document.cookie = `theme=${next}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
    });
  }

  // The sidebar: groups stay open or closed on later pages.
  for (const s of $$(".nav summary")) {
    s.addEventListener("click", () => {
      const d = s.parentNode, old = (document.cookie.match(/(?:^|; )nav=([\w.-]*)/)?.[1] || "").split(".");
      const next = [...old.filter((k) => k && k.slice(0, -1) !== d.dataset.nav), d.dataset.nav + (d.open ? 0 : 1)];
      document.cookie = `nav=${next.join(".")}; Path=/; Max-Age=31536000; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;
    });
  }
  const current = document.querySelector(".nav [aria-current]");
  for (const e of [current?.closest("details"), current]) e?.scrollIntoView({ block: "nearest" });

  // Drafts of forms that were sent (see editor.js) are dropped once the server has
  // taken them: its next page does not refuse them and is for the same user.
  const settle = (taken) => {
    try {
      const keys = JSON.parse(sessionStorage.getItem("svc.sent") || "[]");
      sessionStorage.removeItem("svc.sent");
      const own = `svc.draft:${document.body.dataset.user || ""} `;
      if (taken) for (const key of keys) if (key.startsWith(own)) localStorage.removeItem(key);
    } catch { /* no storage */ }
  };
  const came = performance.getEntriesByType("navigation")[0]?.type;
  settle(came !== "back_forward" && !document.querySelector("[data-unsent]"));
  document.addEventListener("svc:sent", () => settle(true));
  document.addEventListener("svc:unsent", () => settle(false));

  // Formulas and diagrams need a script that other pages do not load.
  const rich = () => {
    if (!document.querySelector("code.math, pre.math, pre.mermaid")) return;
    watch.disconnect();
    document.head.append(Object.assign(document.createElement("script"), { src: document.body.dataset.rich }));
  };
  const watch = new MutationObserver(rich);
  watch.observe(document.body, { childList: true, subtree: true });
  rich();

  // Copy buttons take the text of the element that they name.
  const live = document.querySelector("[data-live]");
  const say = (text) => { if (live) live.textContent = text; };
  for (const b of $$("[data-copy]")) {
    if (!navigator.clipboard) continue;
    b.hidden = false;
    b.addEventListener("click", async () => {
      const from = document.getElementById(b.dataset.copy);
      if (!from) return;
      await navigator.clipboard.writeText(from.dataset.text || from.value || ("whole" in from.dataset ? from.textContent : from.textContent.trim()));
      b.classList.add("copied");
      b.title = "Copied";
      say("Copied");
      setTimeout(() => { b.classList.remove("copied"); b.title = "Copy"; }, 1500);
    });
  }

  // Times: how long ago, kept up to date; the exact one on hover.
  const units = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "always" });
  // UTC is what a user has who has chosen none: then the time zone of the system holds.
  const chosen = document.documentElement.dataset.zone, zone = chosen && chosen !== "UTC" ? { timeZone: chosen } : {};
  const tick = () => {
    for (const t of $$("time[data-ago]")) {
      const at = new Date(t.dateTime), past = (Date.now() - at) / 1000;
      t.title = at.toLocaleString(undefined, zone);
      const unit = units.find(([, s]) => past >= s);
      t.textContent = unit ? words.format(-Math.floor(past / unit[1]), unit[0]) : "just now";
    }
  };
  tick();
  setInterval(tick, 60000);

  // What goes on counts its seconds, from where it was when the page came.
  const count = () => {
    for (const e of $$("[data-elapsed]")) {
      e.since ??= Date.now() - e.dataset.elapsed;
      const s = Math.floor((Date.now() - e.since) / 1000), m = Math.floor(s / 60);
      e.textContent = s < 60 ? `${s} s` : m < 60 ? `${m} min ${s % 60} s` : `${Math.floor(m / 60)} h ${m % 60} min`;
    }
  };
  count();
  setInterval(count, 1000);

  // On a phone tabs and the list of settings are strips: the present one is in
  // sight.
  for (const a of $$(".side [aria-current], .links [aria-current], .tabs [aria-current]")) a.scrollIntoView({ block: "nearest", inline: "center" });

  // One menu at a time. A click elsewhere, Escape and leaving it with Tab close it;
  // Escape gives the focus back to its button. The arrow keys go through its items.
  const closeMenus = (but) => { for (const m of $$("details.menu[open]")) if (m !== but) m.open = false; };
  document.addEventListener("click", (e) => closeMenus(e.target.closest("details.menu")));
  document.addEventListener("focusout", (e) => {
    const menu = e.target.closest("details.menu[open]"), to = e.relatedTarget;
    if (menu && to && !menu.contains(to) && !to.closest("dialog, :popover-open")) menu.open = false;
  });
  document.addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open], :popover-open")) return;
    const menu = e.target.closest("details.menu"), open = document.querySelector("details.menu[open]");
    if (e.key === "Escape" && open) {
      const back = document.activeElement === document.body || open.contains(document.activeElement);
      closeMenus();
      if (back) open.querySelector("summary").focus();
      return;
    }
    if (!menu || !["ArrowDown", "ArrowUp", "Home", "End"].includes(e.key) || e.target.closest("input, textarea, select")) return;
    e.preventDefault();
    menu.open = true;
    const items = [...$$("a[href], button, input, textarea, select", menu)].filter((i) => !i.disabled && i.checkVisibility());
    const at = items.indexOf(document.activeElement), last = items.length - 1;
    items[{ ArrowDown: at < last ? at + 1 : 0, ArrowUp: at > 0 ? at - 1 : last, Home: 0, End: last }[e.key]]?.focus();
  });

  // What can not be undone is asked about first.
  const ask = document.querySelector("dialog[data-ask]");
  document.addEventListener("submit", (e) => {
    const text = e.target.dataset.confirm;
    if (!text || !ask || e.target.dataset.sure) return;
    e.preventDefault();
    ask.querySelector("p").textContent = text;
    ask.onclose = () => {
      if (ask.returnValue !== "yes") return;
      e.target.dataset.sure = "1";
      e.target.requestSubmit(e.submitter);
    };
    ask.returnValue = "";
    ask.showModal();
  });

  // A form is sent once.
  document.addEventListener("submit", (e) => {
    if (e.defaultPrevented || e.target.method !== "post") return;
    const b = e.submitter;
    if (b) setTimeout(() => { b.disabled = true; }, 0);
  });
  addEventListener("pageshow", () => { for (const b of $$("button:disabled")) b.disabled = false; });

  // The path of a new project or group follows its name until it is edited.
  const path = document.querySelector("[data-path-from]");
  if (path) {
    const name = document.getElementById(path.dataset.pathFrom);
    const latin = { ß: "ss", æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ð: "d", þ: "th", ħ: "h", ı: "i", ŧ: "t", ŋ: "ng" };
    let own = path.value !== "";
    path.addEventListener("input", () => { own = path.value !== ""; });
    name?.addEventListener("input", () => {
      if (own) return;
      path.value = name.value.toLowerCase().normalize("NFKD").replace(/\p{Mn}/gu, "").replace(/[ßæœøłđðþħıŧŋ]/g, (c) => latin[c])
        .replace(/[^a-z0-9_.]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
    });
  }

  // A password can be looked at.
  for (const b of $$("[data-reveal]")) {
    b.hidden = false;
    b.addEventListener("click", () => {
      const field = document.getElementById(b.dataset.reveal);
      field.type = field.type === "password" ? "text" : "password";
      b.setAttribute("aria-pressed", field.type === "text");
    });
  }

  // Choosing another branch goes there.
  for (const s of $$("select[data-go]")) {
    s.addEventListener("change", () => {
      const { go, then } = s.dataset; // with the first, values are names and not addresses
      location.href = go && s.value ? `${go}/${s.value.split("/").map(encodeURIComponent).join("/")}${then}` : s.value;
    });
  }

  // Another row of fields.
  document.addEventListener("click", (e) => {
    const b = e.target.closest("[data-add-row]");
    if (!b) return;
    const rows = b.closest("form").querySelector("[data-rows]"), row = rows.lastElementChild.cloneNode(true);
    for (const f of $$("input, textarea", row)) f.value = "";
    rows.append(row);
    row.querySelector("input").focus();
  });
  for (const b of $$("[data-add-row]")) b.hidden = false;

  // Parts of a page that change while one looks: the server says when, and the
  // page is got again. Nothing is taken from under somebody's hands.
  let getting = false, again = false;
  const served = new WeakMap(); // what the server sent for a part
  const untoken = (part) => part.innerHTML.replace(/(name="authenticity_token" value=")[^"]*/g, "$1"); // each answer has another mask
  for (const part of $$("[data-poll]")) served.set(part, untoken(part));
  const refresh = async (parts = "[data-part]") => {
    if (getting) { again = true; return; }
    getting = true;
    try {
      const res = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (res.ok && !res.redirected) {
        const fresh = new DOMParser().parseFromString(await res.text(), "text/html");
        const picked = getSelection();
        for (const part of $$(parts)) {
          const now = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
          if (!now || !picked.isCollapsed && part.contains(picked.anchorNode) || part.querySelector("details[open]:not([data-group]), input:not([type=checkbox]):focus, textarea:focus, button:disabled")) continue;
          if ("poll" in part.dataset && !("poll" in now.dataset)) { delete part.dataset.poll; again = true; } // all parts change with the state
          const html = untoken(now);
          if (served.get(part) === html) continue;
          served.set(part, html);
          for (const box of $$("input[type=checkbox][name]", part)) { // as the user left it
            const same = box.checked !== box.defaultChecked && now.querySelector(`input[type=checkbox][name="${CSS.escape(box.name)}"][value="${CSS.escape(box.value)}"]`);
            if (same) same.checked = box.checked;
          }
          const all = () => [...$$("a, button, summary, input", part)], at = all().indexOf(document.activeElement);
          const groups = [...$$("details[data-group][open]", part)].map((d) => d.dataset.group);
          part.replaceChildren(...now.childNodes);
          for (const d of $$("details[data-group]", part)) d.open = groups.includes(d.dataset.group);
          if (at >= 0) all()[at]?.focus({ preventScroll: true });
        }
        tick();
        count();
      }
    } catch { /* the next word of the server tries again */ }
    getting = false;
    if (again) { again = false; setTimeout(() => refresh(), 1000); }
  };

  // listen follows the events of an address while the page is in sight: a
  // browser has only a few connections for all its pages.
  const listen = (address, on, back = refresh) => {
    let from = null, over = false, wait = 1000, timer = 0;
    const close = () => { clearTimeout(timer); from?.close(); from = null; };
    const open = () => {
      if (from || over || document.hidden) return;
      from = new EventSource(address());
      from.onopen = () => { wait = 1000; };
      // The browser comes again by itself, unless the server refused.
      from.onerror = () => { if (from?.readyState === EventSource.CLOSED) { close(); timer = setTimeout(open, wait); wait = Math.min(wait * 2, 60000); } };
      for (const [name, f] of Object.entries(on)) from.addEventListener(name, (e) => f(JSON.parse(e.data)));
    };
    document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else { open(); if (!over) back(); } });
    addEventListener("pagehide", close);
    open();
    return () => { over = true; close(); };
  };
  // What the server is about to find out is asked for until it is there. The merge
  // box also depends on objects that have no events: dependencies, approvals, threads.
  const unknown = () => document.querySelector("[data-again]"), polled = () => document.querySelector("[data-poll]");
  if (unknown() || polled()) setInterval(() => { if (!document.hidden && unknown()) refresh(); }, 3000);
  if (polled()) {
    const poll = () => { if (!document.hidden && polled()) refresh("[data-poll]"); };
    setInterval(poll, 10000);
    document.addEventListener("visibilitychange", poll);
  }
  for (const e of $$("[data-events]")) listen(() => e.dataset.events, { changed: () => refresh() });
  // The counters of the header, and lists of what they count.
  const inbox = document.querySelector("[data-inbox]");
  if (inbox) listen(() => inbox.dataset.inbox, { counts: (c) => {
    let news = false;
    for (const e of $$("[data-count]")) {
      const n = c[e.dataset.count], text = n > 99 ? "99+" : String(n);
      news ||= e.textContent !== text;
      e.textContent = text;
      e.hidden = !n;
    }
    if (news && document.querySelector("[data-inbox-part]")) refresh();
  } }, () => {});

  // Lines of a file: #L10-20 marks them, a click with shift makes such a range,
  // and the permanent link takes it along.
  const code = document.querySelector("[data-lines]");
  if (code) {
    const range = () => (location.hash.match(/^#L(\d+)(?:-L?(\d+))?$/) || []).slice(1).map(Number);
    const mark = (scroll) => {
      for (const l of $$(".marked", code)) l.classList.remove("marked");
      let [from, to] = range();
      if (!from) return;
      to = to || from;
      if (to < from) [from, to] = [to, from];
      const pages = document.querySelector("[data-most]");
      if (pages && from <= pages.dataset.total && !document.getElementById(`L${from}`)) {
        const q = new URLSearchParams(location.search);
        q.set("page", Math.ceil(from / pages.dataset.most));
        location.replace(`?${q}${location.hash}`);
        return;
      }
      for (let n = from; n <= Math.min(to, from + 5000); n++) document.getElementById(`L${n}`)?.classList.add("marked");
      if (scroll && to !== from) document.getElementById(`L${from}`)?.scrollIntoView({ block: "center" });
      for (const a of $$("[data-permalink]")) a.hash = location.hash;
    };
    code.addEventListener("click", (e) => {
      const a = e.target.closest('a[href^="#L"]');
      const [from] = range();
      if (!a || !e.shiftKey || !from) return;
      e.preventDefault();
      const to = Number(a.hash.slice(2));
      history.replaceState(null, "", `#L${Math.min(from, to)}-${Math.max(from, to)}`);
      mark(false);
    });
    addEventListener("hashchange", () => mark(true));
    mark(true);
  }

  // Who has written something is asked before he leaves it.
  const text = document.querySelector("textarea[name=content]:not([data-code])");
  if (text) {
    let sent = false;
    text.form.addEventListener("submit", () => { sent = true; });
    addEventListener("beforeunload", (e) => { if (!sent && text.value !== text.defaultValue) e.preventDefault(); });
    text.addEventListener("keydown", (e) => {
      if (e.key !== "Tab" || e.shiftKey || e.altKey || e.ctrlKey || text.dataset.leave) return;
      e.preventDefault();
      text.setRangeText("\t", text.selectionStart, text.selectionEnd, "end");
    });
    // Escape lets Tab leave the field, for those who have no mouse.
    text.addEventListener("keyup", (e) => { if (e.key === "Escape") text.dataset.leave = "1"; });
    text.addEventListener("blur", () => { delete text.dataset.leave; });
  }

  // Forms that change a part of the page are sent without leaving it. What the
  // server refuses it says on the page that comes then.
  const send = async (form, button) => {
    const data = new FormData(form, button);
    return fetch(form.action, { method: "POST", body: new URLSearchParams(data), headers: { Accept: "text/html" } });
  };
  document.addEventListener("submit", async (e) => {
    const form = e.target, quiet = "quiet" in form.dataset, sheet = "sheetForm" in form.dataset && form.closest("[data-part]");
    if (e.defaultPrevented || !quiet && !sheet) return;
    e.preventDefault();
    let res;
    try { res = await send(form, e.submitter); } catch { form.submit(); return; }
    // The server has answered: what it stored must not be sent again.
    try {
      if (!res.ok && res.status !== 422) throw new Error(res.statusText);
      const page = await res.text(), refused = partOf(page, "main > .note.bad");
      if (partOf(page, "[data-unsent]")) throw new Error("the session has ended");
      document.dispatchEvent(new Event("svc:sent"));
      if (res.status === 422) {
        form.outerHTML = partOf(page, "[data-sheet-form]")?.outerHTML || form.outerHTML;
        if (sheet) enter(sheet.querySelector("[data-sheet-form]"));
        return;
      }
      if (refused) document.getElementById("main").prepend(document.adoptNode(refused));
      if (sheet) closeSheet(form);
      if (e.submitter) e.submitter.disabled = false; // else its part is left as it is
      await refresh();
      if (quiet && e.submitter?.isConnected) location.reload();
      say(refused ? refused.textContent : "Saved");
    } catch {
      document.dispatchEvent(new Event("svc:unsent"));
      location.reload();
    }
  });
  const partOf = (html, q) => new DOMParser().parseFromString(html, "text/html").querySelector(q);

  // A link to the form of a part of the page shows it in its place. The form gets
  // the focus, and gives it back when it is closed.
  const enter = (form) => form?.querySelector("input:not([type=hidden]):not([hidden]), select, textarea, button")?.focus();
  const closeSheet = (form) => {
    const link = (form.closest("[data-card]") || form.closest("[data-part]")).querySelector("a[data-sheet]");
    form.remove();
    link?.focus();
  };
  document.addEventListener("click", async (e) => {
    const a = e.target.closest("a[data-sheet]"), close = e.target.closest("[data-part] [data-sheet-close]");
    if (close) { e.preventDefault(); closeSheet(close.closest("form")); return; }
    if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    const part = a.closest("[data-part]"), open = part.querySelector("[data-sheet-form]");
    if (open) { open.remove(); return; }
    try {
      const form = partOf(await (await fetch(a.href)).text(), "[data-sheet-form]");
      (a.closest("[data-card]") || part).append(document.adoptNode(form));
      ready(form);
      enter(form);
    } catch { location.href = a.href; }
  });
  document.addEventListener("keydown", (e) => {
    const form = e.key === "Escape" && e.target.closest("[data-part] [data-sheet-form]");
    if (form) closeSheet(form);
  });

  // Long lists of boxes can be narrowed.
  const ready = (from) => { for (const f of $$("[data-narrow]", from)) f.hidden = false; };
  ready(document);
  document.addEventListener("input", (e) => {
    if (!("narrow" in e.target.dataset)) return;
    const want = e.target.value.trim().toLowerCase();
    for (const l of $$("label", e.target.closest("[data-many]"))) l.hidden = !l.textContent.toLowerCase().includes(want) && !l.querySelector(":checked");
  });
  document.addEventListener("keydown", (e) => { if (e.key === "Enter" && "narrow" in (e.target.dataset || {})) e.preventDefault(); });

  // Drafts of texts stay in the browser (editor.js), but not after the user has left.
  document.addEventListener("submit", (e) => {
    if (e.target.getAttribute("action") !== "/users/sign_out") return;
    try { for (const key of Object.keys(localStorage)) if (key.startsWith("svc.draft:")) localStorage.removeItem(key); } catch { /* there is no storage */ }
  });

  // Boards: cards are dragged, and more of a column is got when it is wanted.
  document.addEventListener("click", async (e) => {
    const a = e.target.closest("a[data-more]");
    if (!a) return;
    e.preventDefault();
    const list = a.closest(".column").querySelector("[data-cards]");
    try {
      const text = await (await fetch(a.href)).text(), fresh = partOf(text, ".column"), next = partOf(text, "a[rel=next]");
      for (const card of [...$$("[data-card]", fresh)]) if (!list.querySelector(`[data-card="${card.dataset.card}"]`)) list.append(document.adoptNode(card));
      if (next) a.href = new URL(next.getAttribute("href"), a.href); else a.parentNode.remove();
    } catch { location.href = a.href; }
  });
  const board = document.querySelector("[data-board]");
  if (board) {
    let held = null, from = null, mark = null;
    const back = () => { if (held) { from.list.insertBefore(held, from.next); held.classList.remove("held"); } };
    board.addEventListener("dragstart", (e) => {
      const card = e.target.closest("[data-card]");
      if (!card) return;
      held = card;
      from = { list: card.parentNode, next: card.nextElementSibling };
      e.dataTransfer.effectAllowed = "move";
      e.dataTransfer.setData("text/plain", card.querySelector("a").href);
      setTimeout(() => card.classList.add("held"), 0);
    });
    board.addEventListener("dragover", (e) => {
      const list = e.target.closest(".column")?.querySelector("[data-cards]");
      if (!held || !list) return;
      e.preventDefault();
      const before = [...$$("[data-card]:not(.held)", list)].find((c) => { const r = c.getBoundingClientRect(); return e.clientY < r.top + r.height / 2; }) || null;
      if (held.parentNode !== list || held.nextElementSibling !== before) list.insertBefore(held, before);
      mark = list;
    });
    board.addEventListener("dragenter", (e) => { if (held) e.preventDefault(); });
    board.addEventListener("drop", (e) => { if (held) { e.preventDefault(); put(held, from, mark); held.classList.remove("held"); held = null; } });
    board.addEventListener("dragend", () => { back(); held = null; });
    const put = async (card, was, list) => {
      const key = (l) => l.dataset.cards, near = (c) => c?.dataset.card || "";
      if (!list || list === was.list && card.nextElementSibling === was.next) return;
      const count = (l, by) => { const n = l.closest(".column").querySelector("[data-total]"); if (+n.textContent >= 0) n.textContent = +n.textContent + by; };
      const form = { from: key(was.list), to: key(list), after: near(card.previousElementSibling), before: near(card.nextElementSibling) };
      const token = document.querySelector("[name=authenticity_token]").value;
      let res = null;
      try {
        res = await fetch(`${board.dataset.board}/cards/${card.dataset.card}`, { method: "POST", headers: { "X-Csrf-Token": token, Accept: "application/json" }, body: new URLSearchParams(form) });
      } catch { /* as if it was refused */ }
      if (!res?.ok) {
        was.list.insertBefore(card, was.next?.parentNode === was.list ? was.next : null);
        say("The card could not be moved.");
        if (res) location.reload();
        return;
      }
      if (was.list !== list) { count(was.list, -1); count(list, 1); refresh(); }
      say("Moved");
    };
  }

  // The search box gets its suggestions when it is used.
  const find = document.querySelector("[data-suggest]");
  find?.addEventListener("focus", () => {
    const add = (tag, more) => document.head.append(Object.assign(document.createElement(tag), more));
    add("link", { rel: "stylesheet", href: find.dataset.style });
    add("script", { src: find.dataset.find });
  }, { once: true });

  // A link to a comment that is on another page of the comments.
  const note = /^#note_(\d+)$/.exec(location.hash);
  if (note && !document.getElementById(`note_${note[1]}`) && document.querySelector("[data-comments]") && !/[?&]comments_page=/.test(location.search)) {
    location.replace(`?comment=${note[1]}${location.hash}`);
  }

  // Shortcuts: "/" finds, "g p" goes to projects, "?" lists them.
  const go = { p: "/dashboard/projects", g: "/dashboard/groups", e: "/explore", s: "/-/user_settings/profile", n: "/projects/new", i: "/dashboard/issues", m: "/dashboard/merge_requests", t: "/dashboard/todos" };
  let after = 0;
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog[open], [contenteditable]")) return;
    if (e.key === "/") {
      const f = document.querySelector("[data-find]");
      if (f) { e.preventDefault(); f.focus(); f.select(); }
    } else if (e.key === "?") {
      document.querySelector("dialog[data-keys]")?.showModal();
    } else if (e.key === "d") {
      document.querySelector("[data-theme-switch]")?.click();
    } else if (e.key === "g" && Date.now() - after > 1500) {
      after = Date.now();
    } else if (Date.now() - after <= 1500) {
      after = 0;
      if (go[e.key]) location.href = go[e.key];
    } else if (/^[a-z.]$/.test(e.key)) { // a control of the page has the key
      const b = document.querySelector(`[data-key="${e.key}"]`);
      if (b) { e.preventDefault(); b.click(); }
    }
  });
  for (const b of $$("[data-close]")) b.addEventListener("click", () => b.closest("dialog").close(b.value || ""));
  for (const b of $$("[data-show-keys]")) {
    b.hidden = false;
    b.addEventListener("click", () => {
      // The dialog gives the focus back to what had it, which must be in sight.
      b.closest("details.menu")?.querySelector("summary").focus();
      closeMenus();
      document.querySelector("dialog[data-keys]").showModal();
    });
  }

  // The log of a job. It may have millions of lines, so only those in sight
  // are in the page: the others are got from the server when they are wanted.
  const box = document.querySelector("[data-log]"), term = box?.querySelector("[data-lines]");
  if (term) showLog(box, term);

  function showLog(box, term) {
    const url = box.dataset.log, height = 20, chunk = 200, most = 8e6; // most: browsers know no taller element
    const known = new Map(), asked = new Set(); // chunks of lines
    let total = +box.dataset.total, rev = -1, sections = [], folded = new Set(), hidden = [], heads = new Map();
    let here = 0, hits = [], hit = -1, follow = !("done" in box.dataset), top = -1, due = 0;
    const spacer = document.createElement("div"), pane = document.createElement("div");
    pane.className = "pane";
    term.classList.add("whole");
    term.replaceChildren(spacer, pane);
    for (const e of $$("[data-more], [data-found]", box)) e.remove();

    const line = (n) => known.get(Math.floor((n - 1) / chunk))?.[(n - 1) % chunk];
    const keep = (from, lines) => lines.forEach((html, i) => {
      const n = from + i - 1, c = Math.floor(n / chunk), list = known.get(c) || [];
      list[n % chunk] = html;
      known.delete(c); // the one that was used last stands last
      known.set(c, list);
      if (known.size > 60) known.delete(known.keys().next().value);
    });
    const take = (j) => {
      if (j.sections) {
        const old = new Set(sections.map((s) => s.start));
        sections = j.sections;
        for (const s of sections) if (s.collapsed && !old.has(s.start)) folded.add(s.start);
        fold();
      }
      rev = j.rev;
      if (j.total < total) known.clear(); // it is another log
      total = j.total;
      keep(j.from, j.lines);
    };

    // Rows are the lines that no folded section hides.
    const fold = () => {
      heads = new Map(sections.map((s) => [s.start, s]));
      hidden = [];
      for (const s of sections) {
        const from = s.start + 1, to = s.end || total;
        if (!folded.has(s.start) || to < from) continue;
        const last = hidden.at(-1);
        if (last && from <= last[1]) last[1] = Math.max(last[1], to);
        else hidden.push([from, to]);
      }
    };
    const rows = () => total - hidden.reduce((n, [from, to]) => n + to - from + 1, 0);
    const lineOf = (row) => { let n = row + 1; for (const [from, to] of hidden) { if (n < from) break; n += to - from + 1; } return n; };
    const rowOf = (n) => { let row = n - 1; for (const [from, to] of hidden) { if (n < from) break; row -= Math.min(n, to) - from + 1; } return row; };

    const sight = () => Math.max(Math.floor(term.clientHeight / height), 1);
    const tall = () => Math.min(rows() * height, most);
    const scaled = () => rows() * height > most;
    const firstRow = () => {
      const room = tall() - term.clientHeight;
      if (!scaled()) return Math.floor(term.scrollTop / height);
      return Math.round(Math.min(term.scrollTop / room, 1) * (rows() - sight()));
    };
    const goRow = (row) => {
      const to = Math.min(Math.max(row, 0), Math.max(rows() - sight(), 0));
      term.scrollTop = scaled() ? to / (rows() - sight()) * (tall() - term.clientHeight) : to * height;
      draw();
    };
    const goLine = (n) => {
      here = Math.min(Math.max(n, 1), Math.max(total, 1));
      for (const s of sections) if (folded.has(s.start) && here > s.start && here <= (s.end || total)) folded.delete(s.start);
      fold();
      follow = false;
      size();
      goRow(rowOf(here) - Math.floor(sight() / 3));
    };

    const size = () => {
      spacer.style.height = `${tall()}px`;
      term.style.height = `min(70vh, ${Math.max(rows(), 3) * height}px)`;
    };
    const draw = () => {
      const count = rows(), spare = scaled() ? 0 : 15, first = Math.max(firstRow() - spare, 0), end = Math.min(firstRow() + sight() + 2 + spare, count);
      let html = "", missing = new Set();
      for (let row = first; row < end; row++) {
        const n = lineOf(row), text = line(n), s = heads.get(n);
        if (text === undefined) missing.add(Math.floor((n - 1) / chunk));
        const open = s && (s.end || total) > n;
        html += `<div class="l${s ? " sec" : ""}${n === here ? " here" : ""}${n === hits[hit] ? " hit" : ""}" id="L${n}">`
          + (open ? `<button class="toggle" type="button" data-fold="${n}" aria-expanded="${!folded.has(n)}" aria-label="Collapse section"></button>` : "")
          + `<a href="#L${n}">${n}</a><span>${text === undefined ? "…" : text}</span>${s?.took ? `<span class="time">${s.took}</span>` : ""}</div>`;
      }
      pane.innerHTML = count ? html : `<div class="l none"><span>${"done" in box.dataset ? "This job has no log." : "No output yet."}</span></div>`;
      for (const e of $$("[data-fg]", pane)) e.style.color = e.dataset.fg;
      for (const e of $$("[data-bg]", pane)) e.style.backgroundColor = e.dataset.bg;
      pane.style.transform = `translateY(${scaled() ? Math.min(term.scrollTop, tall() - (end - first) * height) : first * height}px)`;
      button.setAttribute("aria-pressed", follow);
      clearTimeout(due);
      if (missing.size) due = setTimeout(() => { for (const c of missing) get(c); }, known.size ? 60 : 0);
    };
    const get = async (c) => {
      if (asked.has(c)) return;
      asked.add(c);
      try {
        const res = await fetch(`${url}?from=${c * chunk + 1}&count=${chunk}&rev=${rev}`);
        if (res.ok) { take(await res.json()); change(); }
      } finally { asked.delete(c); }
    };
    // change draws what is new, and stays at the end if one follows it. The log
    // grows below the end of the window, unless the page is scrolled with it.
    const bottom = () => term.getBoundingClientRect().bottom;
    const change = () => {
      const seen = bottom() <= innerHeight;
      size();
      if (follow) toEnd(seen); else draw();
    };
    const toEnd = (scroll) => {
      goRow(rows());
      if (scroll && bottom() > innerHeight) term.scrollIntoView({ block: "nearest" });
    };

    const button = box.querySelector("[data-follow]"), upward = box.querySelector("[data-top]");
    for (const b of [button, upward]) b.hidden = false;
    button.addEventListener("click", () => { follow = !follow; if (follow) toEnd(true); draw(); });
    upward.addEventListener("click", () => { follow = false; goRow(0); });
    let frame = 0;
    term.addEventListener("scroll", () => {
      if (term.scrollTop < top - 2) follow = false;
      else if (term.scrollTop + term.clientHeight >= tall() - 2 && !("done" in box.dataset)) follow = true;
      top = term.scrollTop;
      frame ||= requestAnimationFrame(() => { frame = 0; draw(); });
    });
    // Where a pixel is more than a line, the wheel and the keys count lines.
    const step = (e, lines) => { if (scaled()) { e.preventDefault(); follow &&= lines > 0; goRow(firstRow() + lines); } };
    term.addEventListener("wheel", (e) => { if (e.deltaY && !e.ctrlKey) step(e, Math.sign(e.deltaY) * Math.max(Math.round(Math.abs(e.deltaY) / height), 1)); }, { passive: false });
    term.addEventListener("keydown", (e) => {
      const by = { ArrowDown: 1, ArrowUp: -1, PageDown: sight() - 1, PageUp: 1 - sight() }[e.key];
      if (by) step(e, by);
    });
    term.addEventListener("click", (e) => {
      const n = +e.target.dataset?.fold, a = e.target.closest("a[href^='#L']");
      if (n) {
        if (!folded.delete(n)) folded.add(n);
        fold();
        size();
        draw();
      } else if (a) {
        e.preventDefault();
        here = +a.hash.slice(2);
        history.replaceState(null, "", a.hash);
        draw();
      }
    });
    addEventListener("hashchange", () => { if (/^#L\d+$/.test(location.hash)) goLine(+location.hash.slice(2)); });
    addEventListener("resize", () => draw());

    // Search: the server finds the lines, one walks among them.
    const form = box.querySelector("form[role=search]"), said = box.querySelector("[data-hits]"), next = box.querySelector("[data-next]"), prev = box.querySelector("[data-prev]");
    let sought = "";
    const walk = (by) => {
      if (!hits.length) return;
      hit = (hit + by + hits.length) % hits.length;
      said.textContent = `${hit + 1} of ${hits.length}${form.dataset.more ? "+" : ""}`;
      goLine(hits[hit]);
    };
    const seek = async (q) => {
      const res = await fetch(`${url}/search?q=${encodeURIComponent(q)}`);
      if (!res.ok) return;
      const j = await res.json();
      sought = q;
      [hits, hit] = [j.lines, -1];
      form.dataset.more = j.more ? "1" : "";
      next.hidden = prev.hidden = !hits.length;
      if (hits.length) walk(1); else { said.textContent = q ? "No matches" : ""; draw(); }
    };
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      const q = form.q.value.trim();
      if (q === sought && hits.length) walk(1); else seek(q);
    });
    next.addEventListener("click", () => walk(1));
    prev.addEventListener("click", () => walk(-1));

    const begin = async () => {
      const m = location.hash.match(/^#L(\d+)$/), at = m ? +m[1] : +new URLSearchParams(location.search).get("from");
      const res = await fetch(`${url}?from=${at ? Math.max(at - 100, 1) : -1}&count=${chunk}&rev=-1`);
      if (!res.ok) return;
      take(await res.json());
      fold();
      size();
      if (at) goLine(at); else toEnd(follow);
      if (form.q.value.trim()) seek(form.q.value.trim());
      if ("done" in box.dataset) return;
      const stop = listen(() => `${url}/events?total=${total}&rev=${rev}`, {
        log: (j) => { take(j); fold(); change(); },
        changed: () => refresh(),
        end: () => { box.dataset.done = ""; stop(); draw(); refresh(); },
      });
    };
    begin();
  }
})();
