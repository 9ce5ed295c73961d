// Pages with code: switch the branch, find files, select lines.
"use strict";

(() => {
  const $$ = (q, from = document) => from.querySelectorAll(q);
  const el = (tag, props = {}, ...inner) => { const e = Object.assign(document.createElement(tag), props); e.append(...inner); return e; };
  const later = (ms, f) => { let t = 0; return (...a) => { clearTimeout(t); t = setTimeout(() => f(...a), ms); }; };
  let ids = 0;

  // marked writes a name with the part that matches the search in bold.
  const marked = (name, text) => {
    const i = text ? name.toLowerCase().indexOf(text.toLowerCase()) : -1;
    return i < 0 ? [name] : [name.slice(0, i), el("mark", {}, name.slice(i, i + text.length)), name.slice(i + text.length)];
  };

  // listbox shows branches and tags below a field, loads more of them at its
  // end, and is operated by the arrow keys, Enter and Escape of the field. With
  // sends the browser sends the form on Enter, as it does without a script: were
  // the script to send it as well, the form could go out twice.
  const listbox = (input, list, url, { current = "", pick, hide, sends = false }) => {
    let page = 0, more = false, busy = false, round = 0, at = -1, shown = null; // shown is the text that is listed
    const options = () => [...$$("[role=option]", list)];
    list.id ||= `list-${++ids}`;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Branches and tags");
    list.tabIndex = -1; // a list that scrolls would take the focus from the field
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-controls", list.id);
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-expanded", "false");
    const choose = (n) => {
      const all = options();
      at = Math.max(-1, Math.min(n, all.length - 1));
      all.forEach((o, i) => o.setAttribute("aria-selected", i === at));
      if (at >= 0) { all[at].scrollIntoView({ block: "nearest" }); input.setAttribute("aria-activedescendant", all[at].id); } else input.removeAttribute("aria-activedescendant");
    };
    const add = (title, names, text) => {
      let group = list.querySelector(`[data-group="${title}"]`);
      if (!names.length) return;
      if (!group) {
        group = el("div");
        group.dataset.group = title;
        group.setAttribute("role", "group");
        group.setAttribute("aria-label", title);
        group.append(el("h3", { textContent: title, ariaHidden: "true" }));
        list.append(group);
      }
      for (const name of names) {
        const o = el("div", { id: `option-${++ids}` }, el("span", {}, ...marked(name, text)));
        o.setAttribute("role", "option");
        o.setAttribute("aria-selected", "false");
        o.dataset.value = name;
        if (name === current) o.dataset.here = "";
        group.append(o);
      }
    };
    const load = async (fresh) => {
      if (busy && !fresh) return;
      busy = true;
      const mine = fresh ? ++round : round, text = input.value.trim();
      if (fresh) page = 0;
      try {
        const res = await fetch(`${url}?search=${encodeURIComponent(text)}&page=${page + 1}`);
        if (!res.ok || mine !== round) return;
        const j = await res.json();
        if (mine !== round) return;
        if (fresh) list.replaceChildren();
        shown = text;
        page++;
        more = j.MoreBranches || j.MoreTags;
        add("Branches", j.Branches, text);
        add("Tags", j.Tags, text);
        if (!list.children.length) list.append(el("p", { className: "none", textContent: "No matching branches or tags." }));
        list.hidden = false;
        input.setAttribute("aria-expanded", "true");
        if (fresh) choose(text ? 0 : -1);
      } catch { /* the form works without the list */ } finally { if (mine === round) busy = false; }
    };
    const close = () => { list.hidden = true; round++; busy = false; input.setAttribute("aria-expanded", "false"); hide?.(); };
    input.addEventListener("input", later(120, () => load(true)));
    list.addEventListener("scroll", () => { if (more && list.scrollTop + list.clientHeight > list.scrollHeight - 80) load(false); });
    list.addEventListener("mousedown", (e) => e.preventDefault()); // the field keeps the focus
    list.addEventListener("click", (e) => { const o = e.target.closest("[role=option]"); if (o) pick(o.dataset.value); });
    input.addEventListener("keydown", (e) => {
      if (e.key === "ArrowDown") { e.preventDefault(); if (list.hidden) load(true); else { choose(at + 1); if (more && at > options().length - 5) load(false); } }
      else if (e.key === "ArrowUp") { e.preventDefault(); choose(at - 1); }
      else if (e.key === "Enter" && !list.hidden && shown !== input.value.trim()) { // not a name for an earlier text
        e.preventDefault();
        load(true).then(() => { if (at >= 0 && shown === input.value.trim()) pick(options()[at].dataset.value); });
      } else if (e.key === "Enter" && !list.hidden && at >= 0) {
        const name = options()[at].dataset.value;
        if (sends) input.value = name; else { e.preventDefault(); pick(name); }
      } else if (e.key === "Escape" && !list.hidden && hide) { e.stopPropagation(); close(); }
    });
    return { open: () => load(true), close };
  };

  for (const menu of $$("details.refs")) {
    const form = menu.querySelector("form"), input = form.elements.ref;
    const box = listbox(input, form.querySelector("[data-list]"), menu.dataset.refs, {
      current: form.dataset.current,
      pick: (name) => { input.value = name; form.requestSubmit(); },
      sends: true,
    });
    menu.addEventListener("toggle", () => { if (menu.open) { input.value = ""; input.focus(); box.open(); } });
    menu.addEventListener("keydown", (e) => { if (e.key === "Escape") { menu.open = false; menu.querySelector("summary").focus(); } });
  }

  // Fields for the name of a branch or tag.
  for (const input of $$("input[data-refnames]")) {
    input.removeAttribute("list");
    input.autocomplete = "off";
    const list = el("div", { className: "reflist pop", hidden: true });
    input.after(list);
    const box = listbox(input, list, input.dataset.refnames, { pick: (name) => { input.value = name; box.close(); }, hide: () => {} });
    input.addEventListener("blur", () => box.close());
  }

  // Find file.
  const finder = document.querySelector("form[data-finder]");
  if (finder) {
    const input = finder.elements.search, list = document.querySelector("[data-results]"), said = document.querySelector("[data-count]");
    let at = -1, round = 0;
    const choose = (n) => {
      const all = [...list.children];
      at = Math.max(-1, Math.min(n, all.length - 1));
      all.forEach((li, i) => { li.classList.toggle("here", i === at); li.id = `found-${i}`; });
      if (at >= 0) { all[at].scrollIntoView({ block: "nearest" }); input.setAttribute("aria-activedescendant", all[at].id); }
    };
    const show = (j) => {
      document.querySelector("[data-none]")?.remove();
      list.replaceChildren(...j.files.map((f) => {
        const text = el("span", {}, ...f.parts.map((part, i) => i % 2 ? el("mark", {}, part) : part));
        return el("li", {}, el("a", { href: `${finder.dataset.to}/${f.path.split("/").map(encodeURIComponent).join("/")}` }, text));
      }));
      said.textContent = `${j.total} ${j.total === 1 ? "file" : "files"}${j.cut ? `. Only the first ${j.searched} files are searched.` : ""}`;
      if (!j.files.length) said.textContent = "No files match your search.";
      choose(input.value.trim() ? 0 : -1);
    };
    input.setAttribute("aria-controls", list.id);
    input.addEventListener("input", later(60, async () => {
      const mine = ++round, res = await fetch(`${finder.dataset.finder}&search=${encodeURIComponent(input.value)}`);
      if (res.ok && mine === round) { show(await res.json()); history.replaceState(null, "", `?search=${encodeURIComponent(input.value)}`); }
    }));
    input.addEventListener("keydown", (e) => {
      if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); choose(at + (e.key === "ArrowDown" ? 1 : -1)); }
      else if (e.key === "Escape" && !input.value) history.back();
    });
    finder.addEventListener("submit", (e) => { e.preventDefault(); list.children[Math.max(at, 0)]?.querySelector("a").click(); });
    input.setSelectionRange(input.value.length, input.value.length);
  }

  // Selected lines can be copied, linked to and blamed.
  const code = document.querySelector("[data-lines]");
  if (code && navigator.clipboard) {
    const bar = el("div", { className: "linetools", hidden: true }), label = el("span", { className: "muted small" });
    bar.setAttribute("role", "toolbar");
    bar.setAttribute("aria-label", "Selected lines");
    const button = (text, act) => { const b = el("button", { className: "button slim", type: "button", textContent: text }); b.addEventListener("click", () => act(b)); return b; };
    const copy = async (b, text) => { const was = b.textContent; await navigator.clipboard.writeText(text); b.textContent = "Copied"; setTimeout(() => { b.textContent = was; }, 1500); };
    const range = () => { const m = location.hash.match(/^#L(\d+)(?:-L?(\d+))?$/); if (!m) return null; const [a, b] = [+m[1], +(m[2] || m[1])]; return [Math.min(a, b), Math.max(a, b)]; };
    const text = () => {
      const [from, to] = range(), lines = [];
      for (let n = from; n <= Math.min(to, from + 20000); n++) {
        const l = document.getElementById(`L${n}`);
        if (l) lines.push((l.matches("td") ? l.nextElementSibling : l).textContent.replace(/\n$/, ""));
      }
      return lines.join("\n") + "\n";
    };
    bar.append(label, button("Copy lines", (b) => copy(b, text())),
      button("Copy permalink", (b) => { const a = document.querySelector("[data-permalink]"); a.hash = location.hash; copy(b, a.href); }),
      button("Clear", () => { history.replaceState(null, "", location.pathname + location.search); for (const l of $$(".marked", code)) l.classList.remove("marked"); show(); }));
    code.closest(".panel").after(bar);
    const show = () => {
      const r = range();
      bar.hidden = !r;
      if (r) label.textContent = r[0] === r[1] ? `Line ${r[0]}` : `Lines ${r[0]}–${r[1]}`;
    };
    addEventListener("hashchange", show);
    code.addEventListener("click", () => setTimeout(show, 0));
    show();
  }
})();
