// The editor of texts in Markdown: toolbar, preview, completion, drafts that
// survive a reload, and files that are dropped or pasted. Replies and comments on
// lines are set up when they get the focus, so that pages with many of them stay
// small and forms which scripts add later work as well.
(() => {
  "use strict";
  const root = document.documentElement;
  if ("editor" in root.dataset) return; // a page can have several editors
  root.dataset.editor = "";

  const $$ = (q, in_ = document) => in_.querySelectorAll(q);
  const isText = (e) => e instanceof HTMLTextAreaElement && (e.closest("[data-editor]:not(html)") || e.name === "note" || e.name === "summary");
  const boxOf = (area) => area.closest("[data-editor]:not(html)");
  const baseOf = (area) => boxOf(area)?.dataset.editor || `${location.pathname.split("/-/")[0]}/-/`;
  const tokenOf = (area) => (area.form || document).querySelector("[name=authenticity_token]")?.value || document.querySelector("[name=authenticity_token]")?.value || "";
  const say = (text) => { const live = document.querySelector("[data-live]"); if (live) live.textContent = text; };
  const el = (name, props = {}, ...kids) => {
    const e = Object.assign(document.createElement(name), props);
    e.append(...kids);
    return e;
  };
  const changed = (area) => area.dispatchEvent(new Event("input", { bubbles: true }));

  // target returns the issue or merge request that the quick actions of a text
  // change, as query parameters. Those of an edited comment do not run.
  const target = (area) => {
    const m = location.pathname.match(/\/-\/(issues|merge_requests)(?:\/(\d+))?/);
    if (!m || /\/notes\/\d/.test(area.form?.action)) return "";
    return `&on=${m[1] === "issues" ? "issues" : "merges"}${m[2] ? `&iid=${m[2]}` : ""}`;
  };

  // insert replaces a range. The browser can undo what execCommand does.
  const insert = (area, text, from = area.selectionStart, to = area.selectionEnd) => {
    area.focus();
    area.setSelectionRange(from, to);
    if (text ? !document.execCommand("insertText", false, text) : from < to && !document.execCommand("delete")) {
      area.setRangeText(text, from, to, "end");
      changed(area);
    }
  };

  // Toolbar.

  const wrap = (mark, end = mark) => (area) => {
    const { selectionStart: a, selectionEnd: b, value: v } = area, text = v.slice(a, b);
    if (v.slice(a - mark.length, a) === mark && v.slice(b, b + end.length) === end) {
      insert(area, text, a - mark.length, b + end.length);
      area.setSelectionRange(a - mark.length, b - mark.length);
      return;
    }
    insert(area, mark + text + end);
    area.setSelectionRange(a + mark.length, b + mark.length);
  };
  const linesOf = (area) => {
    const v = area.value, a = v.lastIndexOf("\n", area.selectionStart - 1) + 1;
    let b = v.indexOf("\n", area.selectionEnd);
    if (b < 0) b = v.length;
    return [a, b];
  };
  const prefix = (mark) => (area) => {
    const [a, b] = linesOf(area), lines = area.value.slice(a, b).split("\n");
    const sign = (i) => (mark === "1. " ? `${i + 1}. ` : mark);
    const all = lines.every((l, i) => l.startsWith(sign(i)));
    const text = lines.map((l, i) => (all ? l.slice(sign(i).length) : sign(i) + l.replace(/^(?:[-*+] (?:\[[ x]\] )?|\d+\. )/, ""))).join("\n");
    insert(area, text, a, b);
    if (lines.length > 1) area.setSelectionRange(a, a + text.length);
  };
  const block = (text, from, to) => (area) => {
    const a = area.selectionStart, before = a && area.value[a - 1] !== "\n" ? "\n" : "";
    const chosen = area.value.slice(a, area.selectionEnd);
    const body = chosen && from === to ? text.slice(0, from) + chosen + text.slice(to) : text;
    insert(area, before + body);
    if (!chosen) area.setSelectionRange(a + before.length + from, a + before.length + to);
  };
  const code = (area) => {
    const text = area.value.slice(area.selectionStart, area.selectionEnd);
    if (text.includes("\n")) block("```\n\n```\n", 4, 4)(area); else wrap("`")(area);
  };
  const link = (area) => {
    const a = area.selectionStart, text = area.value.slice(a, area.selectionEnd);
    insert(area, `[${text}](url)`);
    if (text) area.setSelectionRange(a + text.length + 3, a + text.length + 6); else area.setSelectionRange(a + 1, a + 1);
  };
  const indent = (by) => (area) => {
    const [a, b] = linesOf(area), text = area.value.slice(a, b).split("\n").map((l) => (by > 0 ? `  ${l}` : l.replace(/^ {1,2}/, ""))).join("\n");
    insert(area, text, a, b);
  };
  const tools = [
    ["Bold", "b", "M7 5h6a3.500 3.500 0 0 1 0 7H7zM7 12h7a3.500 3.500 0 0 1 0 7H7z", wrap("**")],
    ["Italic", "i", "M10 5h8M6 19h8M14 5l-4 14", wrap("_")],
    ["Strikethrough", "", "M4 12h16M8 8c0-4 8-4 8-1M8 16c0 4 8 4 8 0", wrap("~~")],
    ["Quote", "", "M5 7h4v5c0 3-1 4-3 5M14 7h4v5c0 3-1 4-3 5", prefix("> ")],
    ["Code", "", "m8 7-5 5 5 5M16 7l5 5-5 5", code],
    ["Link", "k", "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1", link],
    ["Bullet list", "", "M9 6h11M9 12h11M9 18h11M4 6h.01M4 12h.01M4 18h.01", prefix("- ")],
    ["Numbered list", "", "M10 6h10M10 12h10M10 18h10M4 4.500 5 4v5M4 15h2l-2 4h2", prefix("1. ")],
    ["Task list", "", "M4 4h6v6H4zM4 14h6v6H4zM14 7h6M14 17h6M5.500 7l1.500 1.500L9.500 5", prefix("- [ ] ")],
    ["Table", "", "M3 5h18v14H3zM3 10h18M3 15h18M9 5v14M15 5v14", block("| header | header |\n| ------ | ------ |\n|        |        |\n", 2, 8)],
    ["Collapsible section", "", "M4 6h16M9 12h11M9 18h11M4 11l2 1.500-2 1.500", block("<details>\n<summary>Click to expand</summary>\n\n\n\n</details>\n", 48, 48)],
  ];
  const keys = { b: tools[0][3], i: tools[1][3], k: tools[5][3], "]": indent(1), "[": indent(-1) };
  const mac = /Mac|iP(hone|ad)/.test(navigator.platform);
  const icon = (path) => {
    const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), p = document.createElementNS(ns, "path");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    p.setAttribute("d", path);
    svg.append(p);
    return svg;
  };
  const toolbar = (area) => {
    const bar = el("div", { className: "toolbar" });
    bar.setAttribute("role", "toolbar");
    bar.setAttribute("aria-label", "Formatting");
    bar.setAttribute("aria-controls", area.id);
    for (const [name, key, path, act] of tools) {
      const b = el("button", { type: "button", className: "round", title: key ? `${name} (${mac ? "⌘" : "Ctrl+"}${key.toUpperCase()})` : name, tabIndex: bar.children.length ? -1 : 0 }, icon(path));
      b.setAttribute("aria-label", name);
      b.addEventListener("click", () => { act(area); area.focus(); });
      bar.append(b);
    }
    bar.addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key], list = [...bar.children], at = list.indexOf(e.target);
      if (!step || at < 0) return;
      e.preventDefault();
      const next = list[(at + step + list.length) % list.length];
      e.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
    return bar;
  };

  // Tabs.

  const tabs = (box, area, bar) => {
    const shown = box.querySelector("[data-preview]");
    const tab = (name, data) => {
      const b = el("button", { type: "button", className: "tab", textContent: name, id: `${area.id}-${name.toLowerCase()}` });
      b.setAttribute("role", "tab");
      b.dataset[data] = "";
      return b;
    };
    const write = tab("Write", "write"), look = tab("Preview", "look"), list = el("div", { className: "edittabs" }, write, look);
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Editor");
    shown.setAttribute("role", "tabpanel");
    shown.setAttribute("aria-labelledby", look.id);
    shown.tabIndex = 0;
    const turn = (looks) => {
      for (const [b, on] of [[write, !looks], [look, looks]]) {
        b.setAttribute("aria-selected", on);
        b.tabIndex = on ? 0 : -1;
      }
      shown.hidden = !looks;
      area.hidden = bar.hidden = looks;
    };
    turn(false);
    write.addEventListener("click", () => { turn(false); area.focus(); });
    look.addEventListener("click", async () => {
      shown.style.minHeight = `${area.offsetHeight}px`;
      turn(true);
      shown.textContent = "Loading…";
      try {
        const res = await fetch(`${baseOf(area)}preview_markdown?${target(area)}`, { method: "POST", headers: { "X-Csrf-Token": tokenOf(area) }, body: new URLSearchParams({ text: area.value }) });
        if (!res.ok) throw res;
        shown.innerHTML = await res.text() || "<p class=\"muted\">Nothing to preview.</p>";
      } catch { shown.textContent = "The preview could not be loaded."; }
    });
    list.addEventListener("keydown", (e) => {
      if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
      e.preventDefault();
      const other = e.target === write ? look : write;
      other.click();
      other.focus();
    });
    return list;
  };

  // Files.

  const send = (area, file, progress) => new Promise((done, fail) => {
    const x = new XMLHttpRequest();
    x.open("POST", `${baseOf(area)}uploads?name=${encodeURIComponent(file.name || "image.png")}`);
    x.setRequestHeader("X-Csrf-Token", tokenOf(area));
    x.setRequestHeader("Content-Type", "application/octet-stream");
    x.upload.onprogress = (e) => { if (e.lengthComputable) progress(e.loaded / e.total); };
    x.onerror = () => fail("the connection was lost");
    x.onload = () => {
      if (x.status >= 200 && x.status < 300) {
        try { done(JSON.parse(x.responseText).markdown); } catch { fail("the answer of the server is invalid"); }
      } else fail({ 403: "you don't have permission", 404: "you don't have permission", 413: "it is too large", 422: "its name or content is invalid" }[x.status] || `the server answered ${x.status}`);
    };
    x.send(file);
  });
  const statusOf = (area) => {
    let s = area.parentNode.querySelector(":scope > .sendstate");
    if (!s) {
      s = el("div", { className: "sendstate small" });
      s.setAttribute("role", "status");
      area.after(s);
    }
    return s;
  };
  let count = 0;
  const take = async (area, files) => {
    const state = statusOf(area);
    for (const f of files) {
      const wait = `[Uploading ${f.name || "image.png"} (${++count})…]`, bar = el("progress", { max: 1, value: 0 }), line = el("p", {}, `Uploading ${f.name || "image.png"} `, bar);
      insert(area, wait);
      state.append(line);
      let text = "";
      try {
        text = await send(area, f, (share) => { bar.value = share; });
        line.remove();
        say(`${f.name} is attached.`);
      } catch (why) {
        line.className = "error";
        line.textContent = `${f.name} could not be attached: ${why}.`;
      }
      const at = area.value.indexOf(wait), caret = area.selectionStart;
      if (at < 0) continue;
      area.setRangeText(text, at, at + wait.length, "preserve");
      if (caret >= at + wait.length) area.setSelectionRange(caret + text.length - wait.length, caret + text.length - wait.length);
      changed(area);
    }
  };
  const uploads = (area) => !boxOf(area) || "uploads" in boxOf(area).dataset;
  document.addEventListener("paste", (e) => {
    const area = e.target;
    if (!isText(area)) return;
    if (e.clipboardData.files.length && uploads(area)) {
      e.preventDefault();
      take(area, [...e.clipboardData.files]);
      return;
    }
    const url = e.clipboardData.getData("text/plain").trim(), text = area.value.slice(area.selectionStart, area.selectionEnd);
    if (text && !text.includes("\n") && /^https?:\/\/\S+$/.test(url) && !/^https?:/.test(text)) {
      e.preventDefault();
      insert(area, `[${text}](${url})`);
    }
  });
  document.addEventListener("dragover", (e) => {
    if (!isText(e.target) || !uploads(e.target) || ![...e.dataTransfer.types].includes("Files")) return;
    e.preventDefault();
    e.target.classList.add("drop");
  });
  for (const end of ["dragleave", "drop"]) document.addEventListener(end, (e) => e.target.classList?.remove("drop"));
  document.addEventListener("drop", (e) => {
    if (!isText(e.target) || !uploads(e.target) || !e.dataTransfer.files.length) return;
    e.preventDefault();
    take(e.target, [...e.dataTransfer.files]);
  });

  // Drafts: the text of a field is kept until the server has taken its form. app.js
  // sees on the next page whether it has.

  const kept = "svc.draft:", month = 30 * 24 * 3600e3, most = 2e5;
  // The hidden fields say what the text is about: a line of a diff, or a branch.
  const about = (form) => [...$$("input[type=hidden]", form)].filter((i) => i.name !== "authenticity_token" && i.name !== "was").map((i) => `${i.name}=${i.value}`).join("&");
  const keyOf = (area) => `${kept}${document.body.dataset.user || ""} ${location.pathname} ${area.form?.getAttribute("action") || ""} ${area.form ? about(area.form) : ""} ${area.name}`;
  const store = (f) => { try { return f(localStorage); } catch { return null; } };
  const sentKeys = () => { try { return JSON.parse(sessionStorage.getItem("svc.sent") || "[]"); } catch { return []; } };
  const setSent = (keys) => { try { sessionStorage.setItem("svc.sent", JSON.stringify(keys)); } catch { /* no storage */ } };
  const keepable = (e) => isText(e) || e.name === "title" && e.form?.querySelector("[data-editor]");
  store((s) => {
    for (const key of Object.keys(s)) if (key.startsWith(kept) && !(JSON.parse(s.getItem(key) || "{}").at > Date.now() - month)) s.removeItem(key);
  });
  const save = (area) => store((s) => {
    setSent(sentKeys().filter((key) => key !== keyOf(area)));
    if (!area.value || area.value === area.defaultValue || area.value.length > most) s.removeItem(keyOf(area));
    else s.setItem(keyOf(area), JSON.stringify({ text: area.value, was: area.defaultValue, at: Date.now() }));
  });
  const restore = (area) => {
    if ("kept" in area.dataset) return;
    area.dataset.kept = "";
    if (sentKeys().includes(keyOf(area))) return;
    const old = store((s) => JSON.parse(s.getItem(keyOf(area)) || "null"));
    if (!old || area.value !== area.defaultValue || old.was !== area.defaultValue) return;
    area.value = old.text;
    if (area.name === "title") return;
    const drop = el("button", { type: "button", className: "plain", textContent: "Discard" }), note = el("p", { className: "muted small restored" }, "Your draft was restored. ", drop);
    note.setAttribute("role", "status");
    drop.addEventListener("click", () => { area.value = area.defaultValue; changed(area); note.remove(); area.focus(); });
    area.after(note);
    area.closest("details")?.setAttribute("open", "");
  };
  let due = 0;
  document.addEventListener("input", (e) => {
    if (!keepable(e.target)) return;
    delete e.target.dataset.sent;
    clearTimeout(due);
    due = setTimeout(() => save(e.target), 250);
  });
  addEventListener("pagehide", () => { for (const a of $$("textarea[data-kept], input[data-kept]")) if (!("sent" in a.dataset)) save(a); });
  document.addEventListener("submit", (e) => {
    if (e.defaultPrevented && "confirm" in e.target.dataset) return; // it asks first
    clearTimeout(due);
    for (const a of e.target.elements) if (keepable(a)) { save(a); a.dataset.sent = ""; setSent([...sentKeys(), keyOf(a)]); }
  });

  // Completion.

  const kinds = { "@": "members", "#": "issues", "!": "merge_requests", "~": "labels", "%": "milestones", "$": "snippets", ":": "emojis", "/": "commands" };
  const list = el("ul", { className: "complete", id: "complete", hidden: true });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  (document.querySelector("main") || document.body).append(list); // a landmark
  const known = new Map();
  let at = null, shown = [], active = -1, asked = null, timer = 0;

  // typed returns what is completed: the sign, the text after it, and where it starts.
  const typed = (area) => {
    if (area.selectionStart !== area.selectionEnd) return null;
    const end = area.selectionEnd, line = area.value.slice(area.value.lastIndexOf("\n", end - 1) + 1, end);
    let m = line.match(/^(\/)([a-z_]*)$/) || line.match(/(?:^|[\s(])(:)([a-z0-9_+-]{2,})$/i) || line.match(/(?:^|[\s(,[])([@#!$])([\p{L}\p{N}_.\/-]*)$/u) || line.match(/(?:^|[\s(,[])([~%])("[^"]*|[\p{L}\p{N}_.:-]*)$/u);
    if (!m) return null;
    return { area, sign: m[1], text: m[2].replace(/^"/, ""), from: end - m[2].length - 1, to: end };
  };
  const hide = () => {
    asked?.abort();
    clearTimeout(timer);
    if (at) { at.area.removeAttribute("aria-activedescendant"); at.area.removeAttribute("aria-controls"); }
    [at, shown, active, list.hidden] = [null, [], -1, true];
  };
  const mark = (n) => {
    active = n;
    [...list.children].forEach((li, i) => li.setAttribute("aria-selected", i === n));
    if (n < 0) return;
    list.children[n].scrollIntoView({ block: "nearest" });
    at.area.setAttribute("aria-activedescendant", `complete-${n}`);
  };
  const show = (items) => {
    shown = items;
    list.replaceChildren(...items.map((s, i) => {
      const li = el("li", { id: `complete-${i}` });
      li.setAttribute("role", "option");
      if (s.color) { const dot = el("span", { className: "dot" }); dot.style.backgroundColor = s.color; li.append(dot); }
      if (s.sign) li.append(el("span", { className: "sign", textContent: s.sign }));
      if (/^[#!$]/.test(s.value)) li.append(el("span", { className: "muted", textContent: s.value }));
      li.append(el("b", { textContent: s.label }));
      if (s.note) li.append(el("span", { className: "muted small", textContent: s.note }));
      li.addEventListener("mousedown", (e) => { e.preventDefault(); choose(i); });
      return li;
    }));
    list.hidden = !items.length;
    if (!items.length) { at.area.removeAttribute("aria-activedescendant"); return; }
    at.area.setAttribute("aria-autocomplete", "list");
    at.area.setAttribute("aria-controls", "complete");
    place();
    mark(0);
    say(`${items.length} suggestion${items.length === 1 ? "" : "s"}. Use the arrow keys, Enter to insert, Escape to close.`);
  };
  // place puts the list below the caret, whose position a copy of the text tells.
  const place = () => {
    const { area, from } = at, style = getComputedStyle(area), copy = el("div", { className: "caret-copy" });
    for (const name of ["fontFamily", "fontSize", "fontWeight", "lineHeight", "letterSpacing", "paddingTop", "paddingLeft", "paddingRight", "borderTopWidth", "borderLeftWidth", "borderRightWidth", "boxSizing", "tabSize"]) copy.style[name] = style[name];
    copy.style.width = `${area.offsetWidth}px`;
    const spot = el("span", { textContent: area.value[from] || "." });
    copy.append(area.value.slice(0, from), spot);
    document.body.append(copy);
    const box = area.getBoundingClientRect(), line = parseFloat(style.lineHeight) || 20;
    const left = box.left + scrollX + spot.offsetLeft, top = box.top + scrollY + Math.min(spot.offsetTop - area.scrollTop, area.offsetHeight) + line + 4;
    copy.remove();
    list.style.left = `${Math.max(8, Math.min(left, scrollX + root.clientWidth - list.offsetWidth - 8))}px`;
    list.style.top = `${top}px`;
    const over = list.getBoundingClientRect();
    if (over.bottom > innerHeight && over.top > over.height + line) list.style.top = `${top - over.height - line - 8}px`;
  };
  const fetchItems = async (base, kind, text, more) => {
    const key = `${base}${kind}?search=${kind === "commands" ? "" : encodeURIComponent(text)}${more}`;
    if (!known.has(key)) {
      asked?.abort();
      asked = new AbortController();
      const res = await fetch(`${base}autocomplete_sources/${key.slice(base.length)}`, { signal: asked.signal, headers: { Accept: "application/json" } });
      if (!res.ok) return [];
      if (known.size > 200) known.clear();
      known.set(key, await res.json());
    }
    const items = known.get(key);
    return kind === "commands" ? items.filter((s) => s.value.startsWith(`/${text}`)) : items;
  };
  const complete = (area) => {
    const now = typed(area);
    clearTimeout(timer);
    if (!now || now.sign === "/" && !target(area)) { hide(); return; }
    at = now;
    // Until the answer is there, only suggestions that match are kept: Enter must not
    // insert one for an earlier text.
    const part = now.text.toLowerCase(), left = shown.filter((s) => `${s.value} ${s.label}`.toLowerCase().includes(part));
    if (left.length < shown.length) show(left);
    const kind = kinds[now.sign];
    timer = setTimeout(async () => {
      try {
        const items = await fetchItems(baseOf(area), kind, now.text, kind === "commands" ? target(area) : "");
        if (at === now && document.activeElement === area) show(items);
      } catch (e) { if (e.name !== "AbortError") hide(); }
    }, 100);
  };
  const choose = (n) => {
    const { area, from, to } = at, one = shown[n];
    hide();
    let text = `${one.value} `;
    if (one.value[0] === "/") { // the command goes on with a reference
      const sign = one.label.slice(one.value.length).trim()[0];
      if ("@#!~%".includes(sign || " ")) text += sign;
    }
    insert(area, text, from, Math.max(to, area.selectionEnd));
    complete(area);
  };
  document.addEventListener("input", (e) => { if (isText(e.target)) complete(e.target); });
  document.addEventListener("focusout", (e) => { if (at && e.target === at.area) hide(); });
  addEventListener("scroll", () => { if (at && shown.length) place(); }, { passive: true });

  // Keys.

  // Browsers leave out the character of a key that was handled; programs that send
  // keys may not.
  let handled = false;
  document.addEventListener("keypress", (e) => { if (handled && e.key === "Enter" && isText(e.target)) e.preventDefault(); });
  document.addEventListener("keydown", (e) => {
    onKey(e);
    handled = e.defaultPrevented;
  });
  const onKey = (e) => {
    const area = e.target;
    if (!isText(area) || e.isComposing) return;
    if (at && shown.length) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (step) { e.preventDefault(); mark((active + step + shown.length) % shown.length); return; }
      if (e.key === "Enter" && !e.ctrlKey && !e.metaKey || e.key === "Tab" && !e.shiftKey) { e.preventDefault(); choose(Math.max(active, 0)); return; }
      if (e.key === "Escape") { e.preventDefault(); e.stopPropagation(); hide(); return; }
    }
    const held = mac ? e.metaKey : e.ctrlKey;
    if ((e.ctrlKey || e.metaKey) && e.key === "Enter") {
      const form = area.form, main = form?.querySelector("button.main:not([hidden])") || form?.querySelector("button:not([type=button]):not([data-look])");
      if (!form || e.defaultPrevented) return;
      e.preventDefault();
      form.requestSubmit(main || undefined);
      return;
    }
    if (held && !e.altKey && !e.shiftKey && keys[e.key.toLowerCase()]) {
      e.preventDefault();
      keys[e.key.toLowerCase()](area);
      return;
    }
    if (e.key !== "Enter" || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey || area.selectionStart !== area.selectionEnd) return;
    // A list goes on with the next line; an empty item ends it.
    const v = area.value, end = area.selectionEnd, start = v.lastIndexOf("\n", end - 1) + 1, line = v.slice(start, end);
    const m = line.match(/^(\s*)(?:([-*+])|(\d{1,9})([.)]))( +)(\[[ xX]\] +)?/);
    if (!m) return;
    e.preventDefault();
    if (line === m[0]) { insert(area, "", start, end); return; }
    insert(area, `\n${m[1]}${m[2] || +m[3] + 1 + m[4]}${m[5]}${m[6] ? "[ ] " : ""}`);
  };

  // Setting up.

  const setUp = (box) => {
    const area = box.querySelector("textarea"), look = box.querySelector(".editbar [data-look]");
    if (!area || "ready" in box.dataset) return;
    box.dataset.ready = "";
    area.id ||= `text-${++count}`;
    const bar = toolbar(area);
    if (box.querySelector("[data-preview]")) area.before(el("div", { className: "edithead" }, tabs(box, area, bar), bar));
    else area.before(bar);
    look?.remove();
    if (uploads(area)) {
      for (const e of $$("[data-attach]", box)) e.hidden = false;
      box.querySelector("input[type=file]")?.addEventListener("change", (e) => { take(area, [...e.target.files]); e.target.value = ""; });
    }
  };
  for (const box of $$("[data-editor]:not(html, [data-later])")) setUp(box);
  for (const a of $$("textarea, input[name=title]")) if (keepable(a)) restore(a);
  document.addEventListener("focusin", (e) => {
    if (!isText(e.target)) return;
    const box = boxOf(e.target);
    if (box) setUp(box);
    restore(e.target);
  });

  // "Assign to me" ticks the user in the list of members.
  for (const b of $$("[data-assign-me]")) {
    const own = document.querySelector(`input[name=assignee_ids][value="${b.dataset.assignMe}"]`);
    if (!own) continue;
    b.hidden = own.checked;
    b.addEventListener("click", () => { own.checked = true; own.dispatchEvent(new Event("change", { bubbles: true })); b.hidden = true; own.focus(); });
  }

  // A template replaces the description.
  for (const a of $$("a[data-template]")) a.addEventListener("click", async (e) => {
    const menu = a.closest("details"), area = document.querySelector("[data-editor]:not(html) textarea");
    e.preventDefault();
    menu.open = false;
    if (area.value && area.value !== (menu.dataset.text ?? area.defaultValue) && !confirm("Replace the description with the template? Your text will be lost.")) return;
    const res = await fetch(a.dataset.template);
    if (!res.ok) { say("The template could not be loaded."); return; }
    area.value = menu.dataset.text = await res.text();
    changed(area);
    area.focus();
    area.setSelectionRange(0, 0);
  });
})();
