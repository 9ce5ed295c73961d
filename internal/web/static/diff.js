// Comparisons: files are loaded when they come into view, context is expanded,
// and lines have comments, by mouse and by keyboard. Pages work without it.
"use strict";

(() => {
  const root = document.querySelector(".diffs");
  if (!root) return;
  const $ = (q, from = root) => from.querySelector(q), $$ = (q, from = root) => [...from.querySelectorAll(q)];
  const two = root.dataset.view === "parallel", newSide = "newSide" in root.dataset, blank = $(".linetalk form");
  const live = document.querySelector("[data-live]"), say = (text) => { if (live) live.textContent = text; };
  const make = (tag, props, ...children) => { const e = Object.assign(document.createElement(tag), props); e.append(...children); return e; };
  const icon = (name) => { const s = document.querySelector("svg.icon use").closest("svg").cloneNode(true), u = s.querySelector("use"); u.setAttribute("href", u.getAttribute("href").replace(/#.*/, `#${name}`)); return s; };
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  root.classList.add("scripted");
  if (blank) root.classList.add("comments");

  // Files.
  const fileOf = (e) => e.closest(".diff-file"), pathOf = (file) => new URLSearchParams(file.dataset.load.slice(1)).get("file");
  const loading = new Map();
  const fragment = (html) => new DOMParser().parseFromString(html, "text/html").body;
  const address = (file) => { const u = new URL(file.dataset.load, location.href); u.searchParams.set("fragment", "1"); u.hash = ""; return u; };

  // take puts a file that the server has sent in the place of the one that is
  // there, and shows the state of the threads.
  const take = (file, html) => {
    const got = fragment(html), fresh = got.querySelector(".diff-file"), count = got.querySelector("[data-thread-count]"), flash = got.querySelector("[data-flash]");
    if (!fresh) throw new Error("no file");
    file.replaceWith(document.adoptNode(fresh));
    if (count) { $("[data-thread-count]").textContent = count.textContent; $("[data-threads]").hidden = count.textContent.startsWith("0 of 0"); }
    for (const t of $$(".thread", fresh)) $(`[data-threads] a[data-note="${t.querySelector(".said")?.id.slice(5)}"]`)?.toggleAttribute("data-open", !t.classList.contains("settled"));
    const bars = got.querySelector("[data-reviewbars]"), old = document.querySelector("[data-reviewbars]");
    if (bars && old && !old.querySelector("details[open]")) { old.replaceWith(document.adoptNode(bars)); document.dispatchEvent(new Event("svc:review")); }
    if (flash) note(fresh, flash.dataset.flash, flash.textContent);
    fresh.classList.remove("folded");
    ready(fresh);
    document.dispatchEvent(new CustomEvent("svc:loaded", { detail: fresh }));
    return fresh;
  };
  const note = (file, kind, text) => {
    const p = make("div", { className: `note ${kind}` }, make("p", { textContent: text }));
    p.setAttribute("role", "status");
    $(".df-body", file).prepend(p);
    say(text);
  };
  const load = (file) => {
    const id = file.id;
    if (loading.has(id)) return loading.get(id);
    file.classList.add("df-wait");
    const p = fetch(address(file), { headers: { Accept: "text/html" } }).then(async (res) => {
      if (!res.ok) throw new Error(res.statusText);
      return take(file, await res.text());
    }).catch(() => { file.classList.remove("df-wait"); delete file.dataset.later; return file; }).finally(() => loading.delete(id));
    loading.set(id, p);
    return p;
  };
  const shownOf = async (file) => {
    if (!$("table.diff", file) && $("[data-expand]", file)) return load(file);
    fold(file, false);
    return file;
  };
  const fold = (file, on) => {
    file.classList.toggle("folded", on);
    $(".df-fold", file)?.setAttribute("aria-expanded", !on);
  };
  let waiting = 0;
  const queue = [];
  const next = async () => {
    if (waiting >= 2 || !queue.length) return;
    waiting++;
    const file = queue.shift();
    if (file.isConnected) await load(file);
    waiting--;
    next();
  };
  const near = new IntersectionObserver((list) => {
    for (const e of list) if (e.isIntersecting) { near.unobserve(e.target); queue.push(e.target); next(); }
  }, { rootMargin: "800px 0px" });
  const inSight = new IntersectionObserver((list) => {
    for (const e of list) if (e.isIntersecting) here(e.target.id);
  }, { rootMargin: "-130px 0px -75% 0px" });

  const ready = (file) => {
    if ("later" in file.dataset) near.observe(file);
    inSight.observe(file);
    const head = $("header", file), b = make("button", { type: "button", className: "round df-fold" }, icon("down"));
    b.setAttribute("aria-label", `Toggle ${file.getAttribute("aria-label")}`);
    b.setAttribute("aria-expanded", "true");
    head.prepend(b);
    if (blank && !$("[data-expand]", file)) {
      const c = make("button", { type: "button", className: "button slim", title: "Comment on this file" }, "Comment");
      c.dataset.onFile = "";
      $(".acts", file).prepend(c);
    }
    if (file.classList.contains("seen") && $("[data-expand]", file)) fold(file, true);
    for (const t of $$(".thread", file)) t.tabIndex = -1;
    unfolds(file);
  };

  // The tree.
  const tree = $(".df-tree"), leaf = (id) => tree && $$("a", tree).find((a) => a.hash === `#${id}`)?.closest("li");
  const here = (id) => {
    if (!tree?.open) return;
    const li = leaf(id);
    for (const e of $$("li.here", tree)) e.classList.remove("here");
    li?.classList.add("here");
    if (li && (li.offsetTop < tree.scrollTop || li.offsetTop > tree.scrollTop + tree.clientHeight - 40)) tree.scrollTop = li.offsetTop - tree.clientHeight / 2;
  };
  if (tree) {
    if (matchMedia("(max-width: 900px)").matches) tree.open = false;
    const filter = $("[data-filter-files]");
    filter.hidden = false;
    filter.addEventListener("input", () => {
      const want = filter.value.trim().toLowerCase();
      const show = (li, path) => {
        const dir = li.querySelector(":scope > details");
        path += dir ? `${dir.querySelector("summary").textContent}/` : li.querySelector("a").lastChild.textContent.trim();
        const any = dir ? [...dir.querySelectorAll(":scope > ul > li")].map((l) => show(l, path)).some(Boolean) : path.toLowerCase().includes(want);
        li.hidden = !any;
        return any;
      };
      for (const li of $$("nav > ul > li", tree)) show(li, "");
    });
  }

  // Viewed files.
  const mark = async (button) => {
    const file = fileOf(button), form = document.getElementById("viewed"), on = button.getAttribute("aria-checked") !== "true", id = file.id;
    const set = (on) => {
      button.setAttribute("aria-checked", on);
      button.value = `${on ? 0 : 1} ${id}`;
      file.classList.toggle("seen", on);
      leaf(id)?.classList.toggle("seen", on);
      const n = $("[data-viewed-count]");
      if (n) n.textContent = +n.textContent + (on ? 1 : -1);
    };
    const data = new URLSearchParams(new FormData(form));
    data.set("viewed", `${on ? 1 : 0} ${id}`);
    set(on);
    fold(file, on);
    if (!on) shownOf(file);
    try {
      const res = await fetch(`${form.action}?fragment=1`, { method: "POST", body: data });
      if (!res.ok) throw new Error(res.statusText);
      say(on ? "Viewed" : "Not viewed");
    } catch { set(!on); note(file, "bad", "The mark could not be saved. Reload the page, then try again."); }
  };

  // Lines. A line is a row, and in the view side by side one of its sides.
  const isLine = (row) => row && /^(add|del|same|)$/.test(row.classList[0] || "") && row.querySelector("td[data-n]") && !row.classList.contains("talkrow");
  const cellsOf = (row, right) => two ? [row.cells[right ? 2 : 0], row.cells[right ? 3 : 1]] : [...row.cells];
  const numbers = (row, right) => {
    if (!two) return [+row.cells[0].dataset.n || 0, +row.cells[1].dataset.n || 0];
    const same = row.cells[1].classList.contains("same"), old = +row.cells[0].dataset.n || 0, now = +row.cells[2].dataset.n || 0;
    return same ? [old, now] : right ? [0, now] : [old, 0];
  };
  const codeOf = (line) => {
    const [old, now] = numbers(line.row, line.right);
    return newSide ? (now ? `0_${now}` : "") : old || now ? `${old}_${now}` : "";
  };
  const nameOf = (line) => { const [old, now] = numbers(line.row, line.right); return !old ? `+${now}` : !now ? `−${old}` : `${now}`; };
  const lineOf = (e) => {
    const row = e.closest?.(".diff > tbody > tr");
    if (!isLine(row)) return null;
    let right = true;
    if (two) {
      const at = [...row.cells].indexOf(e.closest("td"));
      right = at < 0 ? Boolean(row.cells[2].dataset.n) : at > 1;
      if (!row.cells[right ? 2 : 0].dataset.n) return null;
    }
    const line = { row, right };
    return codeOf(line) ? line : null;
  };
  const rowsBetween = (a, b) => {
    const list = [], down = a.row.compareDocumentPosition(b.row) & Node.DOCUMENT_POSITION_FOLLOWING;
    for (let r = down || a.row === b.row ? a.row : b.row, end = down || a.row === b.row ? b.row : a.row; r; r = r.nextElementSibling) {
      if (isLine(r)) list.push(r);
      if (r === end) break;
    }
    return list;
  };
  const clear = (name) => { for (const e of $$(`.${name}`)) e.classList.remove(name); };
  const paint = (name, a, b) => {
    clear(name);
    for (const r of rowsBetween(a, b)) if (two) cellsOf(r, a.right)[1].classList.add(name); else r.classList.add(name);
  };
  const ask = (a, b) => {
    if (!blank || a.row.parentElement !== b.row.parentElement) return;
    if (a.row.compareDocumentPosition(b.row) & Node.DOCUMENT_POSITION_PRECEDING) [a, b] = [b, a];
    const from = codeOf({ row: a.row, right: a.right }), to = codeOf(b), file = fileOf(b.row);
    let under = b.row;
    while (under.nextElementSibling?.classList.contains("talkrow")) under = under.nextElementSibling;
    if (under.dataset.asks === `${from} ${to}` && !$("textarea", under).value) { close(under); return; }
    const row = make("tr", { className: "talkrow" }), box = row.insertCell();
    row.dataset.asks = `${from} ${to}`;
    box.colSpan = two ? 4 : 3;
    box.append(form(file, from, to, from === to ? "" : `Comment on lines ${nameOf(a)} to ${nameOf(b)}`));
    under.after(row);
    paint("sel", a, b);
    $("textarea", row).focus();
  };
  const form = (file, from, to, text) => {
    const f = blank.cloneNode(true), where = $("[data-where]", f), said = $("[data-lines]", f);
    where.replaceWith(make("input", { type: "hidden", name: "path", value: pathOf(file) }));
    f.elements.from.value = from;
    f.elements.to.value = to;
    if (!to) f.append(make("input", { type: "hidden", name: "type", value: "file" }));
    said.textContent = text;
    said.hidden = !text;
    $("[data-cancel]", f).hidden = false;
    f.className = "linetalk-form";
    return f;
  };
  const close = (row) => { clear("sel"); row.remove(); };
  const askFile = (file) => {
    if ($(".df-above form.linetalk-form", file)) return;
    let above = $(".df-above", file);
    if (!above) $(".df-body", file).prepend(above = make("div", { className: "df-above" }));
    above.append(form(file, "", "", "Comment on this file"));
    $("textarea", above.lastChild).focus();
  };

  // The button beside a line, and lines that are dragged over.
  const add = make("button", { type: "button", className: "df-add", textContent: "+", hidden: true, tabIndex: -1, title: "Comment on this line. Drag to select several lines." });
  add.setAttribute("aria-label", "Comment on this line");
  let over = null, drag = null;
  const place = (line) => {
    over = line;
    const body = line.row.closest(".df-body"), cell = two ? line.row.cells[line.right ? 2 : 0] : line.row.cells[0];
    body.append(add);
    add.hidden = false;
    add.style.top = `${line.row.getBoundingClientRect().top - body.getBoundingClientRect().top}px`;
    add.style.left = `${Math.max(cell.getBoundingClientRect().left - body.getBoundingClientRect().left, 0)}px`;
  };
  if (blank) {
    root.addEventListener("mouseover", (e) => {
      if (drag || e.target === add) return;
      const line = lineOf(e.target);
      if (line) place(line); else if (!e.target.closest(".df-body")) add.hidden = true;
    });
    root.addEventListener("mouseleave", () => { if (!drag) add.hidden = true; });
    root.addEventListener("pointerdown", (e) => {
      if (e.button || !e.isPrimary) return;
      const line = e.target === add ? over : e.target.matches("td[data-n]") ? lineOf(e.target) : null;
      if (!line) return;
      if (e.pointerType === "mouse") e.preventDefault();
      if (e.shiftKey && cursor && fileOf(cursor.row) === fileOf(line.row)) { ask(cursor, line); return; }
      drag = { from: line, to: line };
      root.classList.add("dragging");
      paint("sel", line, line);
    });
    document.addEventListener("pointermove", (e) => {
      if (!drag) return;
      const under = document.elementFromPoint(e.clientX, e.clientY), row = under?.closest(".diff > tbody > tr");
      const line = row?.parentElement === drag.from.row.parentElement && isLine(row) ? { row, right: drag.from.right } : null;
      if (!line || !codeOf(line) || two && !row.cells[line.right ? 2 : 0].dataset.n) return;
      drag.to = line;
      paint("sel", drag.from, line);
    });
    const end = (e) => {
      if (!drag) return;
      const { from, to } = drag;
      drag = null;
      root.classList.remove("dragging");
      if (e.type === "pointercancel") { clear("sel"); return; }
      move(to, false);
      ask(from, to);
    };
    document.addEventListener("pointerup", end);
    document.addEventListener("pointercancel", end);
  }

  // Threads show which lines they are about.
  const linesOf = (thread) => {
    const tbody = $("table.diff tbody", fileOf(thread)), at = (code) => {
      for (const row of tbody?.rows || []) for (const right of two ? [false, true] : [true]) if (isLine(row) && codeOf({ row, right }) === code) return { row, right };
      return null;
    };
    const from = at(thread.dataset.from), to = at(thread.dataset.to);
    return from && to && from.row !== to.row ? [from, to] : null;
  };
  const point = (e) => { const t = e.target.closest?.(".thread[data-from]"), l = t && linesOf(t); if (l) paint("ring", ...l); };
  root.addEventListener("mouseover", point);
  root.addEventListener("focusin", point);
  for (const name of ["mouseout", "focusout"]) root.addEventListener(name, (e) => { if (e.target.closest(".thread[data-from]")) clear("ring"); });

  // The lines between the parts of a diff.
  const step = 20, most = 500;
  const heads = (row) => (row.textContent.match(/@@ -(\d+)(?:,\d+)? \+(\d+)/) || []).slice(1).map(Number);
  const lineBefore = (row) => { for (let r = row.previousElementSibling; r; r = r.previousElementSibling) if (isLine(r)) return r; return null; };
  const both = (row) => two ? [+row.cells[0].dataset.n || 0, +row.cells[2].dataset.n || 0] : numbers(row, true);
  const unfolds = (file) => {
    const link = $(".to-file", file), table = $("table.diff tbody", file);
    if (!$(".whole", file) || !link || !table) return;
    for (const row of $$("tr.hunk", table)) {
      const [old, now] = heads(row);
      if (!now) continue;
      row.dataset.next = now;
      row.dataset.offset = old - now;
      row.cells[0].dataset.text = row.textContent;
      buttons(row);
    }
    const last = table.rows[table.rows.length - 1];
    let same = 0;
    for (let r = last; r && !r.classList.contains("hunk") && same < 3; r = r.previousElementSibling) {
      if (!isLine(r)) continue;
      const [old, now] = both(r);
      if (!(r.classList.contains("same") || two && r.cells[1].classList.contains("same")) || !old || !now) break;
      same++;
    }
    if (same < 3) return;
    const end = make("tr", { className: "hunk" }), cell = end.insertCell();
    cell.colSpan = two ? 4 : 3;
    table.append(end);
    buttons(end);
  };
  const gap = (row) => {
    const before = lineBefore(row), from = before ? both(before)[1] + 1 : 1;
    return [from, row.dataset.next ? row.dataset.next - 1 : Infinity];
  };
  const buttons = (row) => {
    const [from, to] = gap(row), n = to - from + 1, cell = row.cells[0];
    if (n <= 0 && row.dataset.next) { if (lineBefore(row)) row.remove(); else cell.replaceChildren(cell.dataset.text || ""); return; }
    const box = make("span", { className: "unfold" }), button = (kind, text, label) => {
      const b = make("button", { type: "button", textContent: text, title: label });
      b.setAttribute("aria-label", label);
      b.dataset.unfold = kind;
      box.append(b);
    };
    if (n <= step) button("all", `↕ ${n}`, `Show ${n} hidden line${n > 1 ? "s" : ""}`);
    else {
      if (lineBefore(row)) button("down", "↓ 20", "Show 20 lines below");
      if (row.dataset.next) button("up", "↑ 20", "Show 20 lines above");
      if (n <= most) button("all", `↕ ${n}`, `Show all ${n} hidden lines`);
    }
    cell.replaceChildren(box, cell.dataset.text || "");
  };
  const unfold = async (button) => {
    const row = button.closest("tr"), file = fileOf(row), kind = button.dataset.unfold;
    let [from, to] = gap(row);
    const before = lineBefore(row);
    if (kind === "down") to = Math.min(to, from + step - 1);
    else if (kind === "up") from = Math.max(from, to - step + 1);
    const offset = row.dataset.next ? row.dataset.offset : both(before)[0] - both(before)[1];
    const url = `${$(".to-file", file).getAttribute("href").replace("/-/blob/", "/-/diff_lines/")}?since=${from}&to=${to}&offset=${offset}&view=${root.dataset.view}`;
    try {
      const res = await fetch(url);
      if (!res.ok) throw new Error(res.statusText);
      const total = +res.headers.get("X-Total-Lines"), t = make("template", {});
      t.innerHTML = `<table><tbody>${await res.text()}</tbody></table>`;
      const rows = [...t.content.querySelectorAll("tr")], first = rows[0];
      if (kind === "up") { row.after(...rows); row.dataset.next = from; } else row.before(...rows);
      if (!row.dataset.next && to >= total) row.remove();
      else if (row.dataset.next && gap(row)[1] < gap(row)[0]) row.remove();
      else buttons(row);
      if (first) { move({ row: first, right: true }, false); say(`${rows.length} lines shown`); }
    } catch { location.href = $(".whole", file).href; }
  };

  // Forms of threads are sent without leaving the page; their file is loaded
  // again.
  document.addEventListener("submit", async (e) => {
    const f = e.target, file = fileOf(f), mine = f.classList.contains("linetalk-form");
    if (e.defaultPrevented || !file || f.method !== "post") return;
    e.preventDefault();
    const first = f.closest(".thread")?.querySelector(".said")?.id, to = mine ? f.elements.to.value : "", resolves = /\/resolve$/.test(f.action);
    let url = f.action, fresh, res;
    if (mine && new URL(url).pathname.endsWith("/diff_notes")) { url = address(file); url.pathname = new URL(f.action).pathname; }
    try {
      res = await fetch(url, { method: "POST", body: new URLSearchParams(new FormData(f, e.submitter)), redirect: "manual", headers: { Accept: "text/html" } });
    } catch { f.submit(); return; }
    // The server has answered: sent again, a comment would be there twice.
    try {
      if (res.status === 422 && res.headers.get("Content-Type")?.startsWith("text/plain")) {
        note(file, "bad", await res.text());
        document.dispatchEvent(new Event("svc:unsent"));
        if (e.submitter) e.submitter.disabled = false;
        return;
      }
      if (mine && res.type === "opaqueredirect") { location.reload(); return; } // the page says why
      if (res.ok && mine) fresh = take(file, await res.text());
      else if (res.ok || res.type === "opaqueredirect") fresh = await load(file);
      else throw new Error(res.statusText);
      document.dispatchEvent(new Event("svc:sent"));
      const at = first ? document.getElementById(first) : $$(`.thread[data-to="${to || "0_0"}"]`, fresh).at(-1);
      focusThread(at?.closest(".thread"), false);
      if (mine) say("Comment added");
      if (resolves) say("Saved");
    } catch {
      document.dispatchEvent(new Event("svc:unsent"));
      location.reload();
    }
  });

  root.addEventListener("click", (e) => {
    const b = e.target.closest("button, a");
    if (!b) return;
    if (b.matches(".viewed")) { e.preventDefault(); mark(b); }
    else if (b.matches(".df-fold")) { const f = fileOf(b), on = !f.classList.contains("folded"); if (on) fold(f, true); else shownOf(f); }
    else if ("expand" in b.dataset) { e.preventDefault(); load(fileOf(b)); }
    else if ("unfold" in b.dataset) unfold(b);
    else if ("onFile" in b.dataset) askFile(fileOf(b));
    else if ("cancel" in b.dataset) { const row = b.closest("tr.talkrow"), f = b.closest("form"); if (row) close(row); else f.remove(); }
    else if (b.dataset.threadStep) walk(+b.dataset.threadStep);
    else if (b.matches("[data-threads] a[data-file]") && !e.ctrlKey && !e.metaKey && document.getElementById(b.dataset.file)) {
      e.preventDefault();
      b.closest("details")?.removeAttribute("open");
      jump({ id: b.dataset.note, file: document.getElementById(b.dataset.file), to: b.href });
    } else if ("firstThread" in b.dataset && !e.ctrlKey && !e.metaKey) {
      const list = openThreads();
      if (list.length && list[0].file) { e.preventDefault(); jump(list[0]); }
    } else if ("foldAll" in b.dataset) {
      const all = $$(".diff-file"), on = all.some((f) => !f.classList.contains("folded"));
      for (const f of all) if (on) fold(f, true); else if ($("table.diff", f)) fold(f, false);
      b.closest("details").open = false;
    } else if ("showDiffKeys" in b.dataset) document.querySelector("dialog[data-keys]")?.showModal();
  });

  // Threads: the open ones, in the order of the files.
  let current = 0; // first note of the thread that was jumped to
  const threadBar = () => { for (const b of $$("[data-thread-step]")) b.hidden = false; };
  const openThreads = () => {
    const links = $$("[data-threads] a[data-open]"), seen = new Set(), list = [];
    for (const file of $$(".diff-file")) {
      for (const t of $$(".thread", file)) {
        const id = t.querySelector(".said")?.id.slice(5);
        seen.add(id);
        if (id && !t.classList.contains("settled")) list.push({ id, file });
      }
      for (const a of links) if (a.dataset.file === file.id && !seen.has(a.dataset.note)) { seen.add(a.dataset.note); list.push({ id: a.dataset.note, file, to: a.href }); }
    }
    for (const a of links) if (!seen.has(a.dataset.note)) list.push({ id: a.dataset.note, to: a.href });
    return list;
  };
  const focusThread = (t, scroll = true) => {
    if (!t) return;
    current = t.querySelector(".said")?.id.slice(5);
    const d = t.querySelector("details");
    if (d) d.open = true;
    t.tabIndex = -1;
    t.focus({ preventScroll: true });
    t.scrollIntoView({ block: scroll ? "center" : "nearest", behavior: scroll ? calm : "auto" });
  };
  const jump = async (t) => {
    if (!t.file) { location.href = t.to; return; }
    let file = t.file;
    fold(file, false);
    if (!document.getElementById(`note_${t.id}`)) file = await load(file);
    const found = document.getElementById(`note_${t.id}`);
    if (found) focusThread(found.closest(".thread")); else if (t.to) location.href = t.to;
  };
  const walk = (by) => {
    const list = openThreads(), at = list.findIndex((t) => t.id === current);
    if (!list.length) { say("No open threads"); return; }
    jump(list[at < 0 ? (by > 0 ? 0 : list.length - 1) : (at + by + list.length) % list.length]);
  };

  // The keyboard: a line is current, and can be extended to a range.
  let cursor = null, anchor = null, going = 0;
  const move = (line, focus = true) => {
    $(".cur")?.classList.remove("cur");
    cursor = line;
    if (!line) return;
    if (!focus) return;
    line.row.classList.add("cur");
    line.row.tabIndex = -1;
    line.row.focus({ preventScroll: true });
    const box = line.row.getBoundingClientRect();
    if (box.top < 180 || box.bottom > innerHeight - 40) line.row.scrollIntoView({ block: "center" });
  };
  const lines = () => $$(".diff-file:not(.folded) .diff > tbody > tr").filter(isLine);
  const walkLines = (by, extend) => {
    const all = lines();
    let at = cursor ? all.indexOf(cursor.row) : -1;
    if (at < 0) at = all.findIndex((r) => r.getBoundingClientRect().top > 170) - (by > 0 ? 1 : 0);
    else if (extend && all[at + by]?.parentElement !== all[at].parentElement) return;
    const row = all[at + by];
    if (!row) return;
    let right = cursor?.right ?? true;
    if (two && !row.cells[right ? 2 : 0].dataset.n) right = !right;
    if (extend) anchor ||= cursor;
    else { anchor = null; clear("sel"); }
    move({ row, right });
    if (anchor) paint("sel", anchor, cursor);
  };
  const walkFiles = (by) => {
    const all = $$(".diff-file"), top = 150;
    let at = all.findIndex((f) => f.getBoundingClientRect().bottom > top);
    if (at < 0) at = all.length;
    if (by < 0 && all[at] && all[at].getBoundingClientRect().top < top - 40) at++; // the beginning of this file comes first
    const to = all[at + by];
    if (!to) { $(by > 0 ? ".pages [rel=next]" : ".pages [rel=prev]")?.click(); return; }
    to.scrollIntoView({ block: "start" });
    here(to.id);
    $(".df-fold", to)?.focus({ preventScroll: true });
    move(null);
    say(to.getAttribute("aria-label"));
  };
  const thread = () => document.activeElement?.closest?.(".thread") || document.getElementById(`note_${current}`)?.closest(".thread");
  const keys = {
    j: (e) => walkLines(1, e.shiftKey), k: (e) => walkLines(-1, e.shiftKey),
    c: () => { if (cursor?.row.isConnected) { ask(anchor || cursor, cursor); anchor = null; } },
    n: () => walk(1), p: () => walk(-1), "]": () => walkFiles(1), "[": () => walkFiles(-1),
    r: () => { const t = $(".reply textarea", thread() || root); if (thread() && t) { t.closest("details").open = true; t.focus(); } },
    x: () => thread()?.querySelector("form[action$='/resolve']")?.requestSubmit(),
    v: () => { const f = fileOf(document.activeElement) || (cursor && fileOf(cursor.row)) || $$(".diff-file").find((f) => f.getBoundingClientRect().bottom > 170); const b = f && $(".viewed", f); if (b) mark(b); },
  };
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") {
      const f = e.target.closest(".linetalk-form"), row = e.target.closest("tr.talkrow");
      if (f && (!$("textarea", f).value || e.target.tagName !== "TEXTAREA")) { const back = cursor; if (row) close(row); else f.remove(); if (back?.row.isConnected) move(back); } else if (!f) { clear("sel"); anchor = null; }
    }
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog[open], [contenteditable]")) return;
    if (Date.now() - going < 1500) { going = 0; return; } // "g p" and the like are for the whole site
    if (e.key === "g") { going = Date.now(); return; }
    let key = e.key.length === 1 ? e.key.toLowerCase() : e.key;
    if (document.activeElement?.matches?.("tr.cur")) {
      if (two && (key === "ArrowLeft" || key === "ArrowRight") && cursor.row.cells[key === "ArrowRight" ? 2 : 0].dataset.n) { move({ row: cursor.row, right: key === "ArrowRight" }); e.preventDefault(); return; }
      key = { ArrowDown: "j", ArrowUp: "k", Enter: "c" }[key] || key;
    }
    if (!keys[key]) return;
    e.preventDefault();
    keys[key](e);
  });
  const help = document.querySelector("dialog[data-keys] dl");
  for (const [list, text] of [["j k", "Next or previous line"], ["Shift+j Shift+k", "Select several lines"], ["c", "Comment on the selected lines"], ["n p", "Next or previous open thread"], ["r", "Reply to the thread"],
    ["x", "Resolve or reopen the thread"], ["] [", "Next or previous file"], ["v", "Mark the file as viewed"]]) {
    if (!blank && "cnprx".includes(list[0]) || list === "v" && !document.getElementById("viewed")) continue;
    help?.append(make("dt", {}, ...list.split(" ").flatMap((k, i) => [i ? " " : "", make("kbd", { textContent: k })])), make("dd", { textContent: text }));
  }
  for (const b of $$("[data-fold-all], [data-show-diff-keys]")) b.hidden = false;
  for (const s of document.querySelectorAll("select[data-submit]")) {
    s.addEventListener("change", () => s.form.requestSubmit());
    for (const b of s.form.querySelectorAll("button")) b.hidden = true;
  }

  // The address may name a note, or a line of a file that is not loaded yet.
  const open = async () => {
    const hash = location.hash.slice(1), m = hash.match(/^([0-9a-f]{40})_(\d+)_(\d+)$/), n = hash.match(/^note_(\d+)$/);
    if (n && !document.getElementById(hash)) {
      const a = $(`[data-threads] a[data-note="${n[1]}"]`), file = a?.dataset.file && document.getElementById(a.dataset.file);
      if (file) jump({ id: n[1], file });
    } else if (n) focusThread(document.getElementById(hash).closest(".thread"));
    else if (m) {
      let file = document.getElementById(m[1]);
      if (!file) return;
      file = await shownOf(file);
      const row = $$(".diff > tbody > tr", file).filter(isLine).find((r) => { const [o, w] = numbers(r, true); return w === +m[3] && (!o || o === +m[2]) || o === +m[2] && !w; });
      if (row) { move({ row, right: true }); row.scrollIntoView({ block: "center" }); } else file.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  for (const file of $$(".diff-file")) ready(file);
  threadBar();
  open();
})();
