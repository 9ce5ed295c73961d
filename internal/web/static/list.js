// Lists of issues and merge requests: suggestions of the filter bar, bulk edit,
// and pickers that search on the server.
"use strict";

(() => {
  const $$ = (q, from = document) => from.querySelectorAll(q);
  const el = (tag, props = {}, ...inner) => { const e = Object.assign(document.createElement(tag), props); e.append(...inner); return e; };
  const json = async (url) => { const res = await fetch(url); return res.ok ? res.json() : []; };

  // The filter bar: the search field suggests filters, then their values. A
  // chosen value goes to the field of the form that has it without a script.
  for (const form of $$("form[data-filters]")) {
    const filters = JSON.parse(form.dataset.filters), input = form.elements.search, plain = input.placeholder;
    const list = el("div", { className: "suggest", hidden: true, id: "suggestions" }), kind = el("span", { className: "kind", hidden: true });
    let now = null, at = -1, round = 0, timer = 0, shown = null; // shown is the text whose suggestions are listed
    input.parentElement.classList.add("searchbox");
    input.before(kind);
    input.parentElement.append(list);
    for (const [name, value] of Object.entries({ role: "combobox", "aria-controls": list.id, "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off" })) input.setAttribute(name, value);
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Suggestions");
    list.tabIndex = -1; // a list that scrolls would take the focus from the field, and lose it
    const options = () => [...list.children];
    const choose = (n) => {
      const all = options();
      at = Math.max(-1, Math.min(n, all.length - 1));
      all.forEach((o, i) => o.setAttribute("aria-selected", i === at));
      if (at >= 0) { all[at].scrollIntoView({ block: "nearest" }); input.setAttribute("aria-activedescendant", all[at].id); } else input.removeAttribute("aria-activedescendant");
    };
    const hide = () => { list.hidden = true; round++; at = -1; input.setAttribute("aria-expanded", "false"); };
    const show = (items) => {
      shown = input.value.trim();
      list.replaceChildren(...items.map((item, i) => {
        const o = el("div", { id: `suggestion-${i}` }, ...item.inner);
        o.setAttribute("role", "option");
        o.setAttribute("aria-selected", "false");
        o.act = item.act;
        return o;
      }));
      list.hidden = !items.length;
      input.setAttribute("aria-expanded", !list.hidden);
    };
    const enter = (f) => { now = f; shown = null; kind.hidden = !f; kind.textContent = f ? `${f.label} =` : ""; input.value = ""; input.placeholder = f ? "" : plain; input.focus(); suggest(); };
    const apply = (value) => {
      const field = form.elements[now.param], named = field || form.elements[`${now.param}[]`];
      now.several && named.value.trim() ? named.value += `, ${value}` : named.value = value;
      input.value = "";
      const page = form.querySelector("input[name=page]");
      page?.remove();
      for (const f of form.elements) if (f.name && !f.value) f.disabled = true;
      form.submit();
    };
    const suggest = async () => {
      const mine = ++round, text = input.value.trim(), low = text.toLowerCase();
      if (!now) {
        const items = filters.filter((f) => !low || f.label.toLowerCase().includes(low)).map((f) => ({ inner: [f.label], act: () => enter(f) }));
        if (text) items.unshift({ inner: [`Search for “${text}”`], act: () => { hide(); form.requestSubmit(); } });
        show(items);
        choose(text ? 0 : -1);
        return;
      }
      const words = (now.words || []).filter((w) => w.toLowerCase().includes(low)).map((w) => ({ inner: [w], act: () => apply(w) }));
      let values = [];
      if (["user", "label", "milestone", "branch"].includes(now.kind) && form.dataset.values) values = await json(`${form.dataset.values}?kind=${now.kind}&search=${encodeURIComponent(text)}`);
      if (mine !== round) return;
      const items = [...words, ...values.map((v) => {
        const inner = [el("span", {}, v.label)];
        if (v.color) { const dot = el("i"); dot.style.background = v.color; inner.unshift(dot); }
        if (v.note) inner.push(el("span", { className: "muted small" }, v.note));
        return { inner, act: () => apply(v.value) };
      })];
      if (text && now.kind !== "choice" && !values.some((v) => v.value === text)) items.push({ inner: [`“${text}”`], act: () => apply(text) });
      show(items);
      choose(text ? 0 : -1);
    };
    input.addEventListener("focus", () => { if (!input.value) suggest(); });
    input.addEventListener("input", () => {
      const m = !now && input.value.match(/^([\w ]+)[:=]$/), f = m && filters.find((x) => x.label.toLowerCase() === m[1].trim().toLowerCase());
      if (f) { enter(f); return; }
      clearTimeout(timer);
      timer = setTimeout(suggest, now ? 120 : 0);
    });
    input.addEventListener("keydown", (e) => {
      if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); if (list.hidden) suggest(); else choose(at + (e.key === "ArrowDown" ? 1 : -1)); }
      else if (e.key === "Escape" && (!list.hidden || now)) { e.preventDefault(); e.stopPropagation(); if (now) enter(null); hide(); }
      else if (e.key === "Backspace" && !input.value && now) { e.preventDefault(); enter(null); }
    });
    list.addEventListener("mousedown", (e) => { e.preventDefault(); e.target.closest("[role=option]")?.act(); });
    input.addEventListener("blur", () => { hide(); if (now && !input.value) { now = null; kind.hidden = true; input.placeholder = plain; } });
    // Enter takes the suggestion. Empty fields do not belong to the address.
    form.addEventListener("submit", async (e) => {
      if (!list.hidden && at >= 0 || now) {
        e.preventDefault();
        if (now && shown !== input.value.trim()) { // not a suggestion for an earlier text
          clearTimeout(timer);
          await suggest();
          if (!now || shown !== input.value.trim()) return;
        }
        options()[at]?.act();
        return;
      }
      for (const f of form.elements) if (f.name && !f.value) f.disabled = true;
    });
    addEventListener("pageshow", () => { for (const f of form.elements) f.disabled = false; });
  }

  // Bulk edit: how many are selected, and all at once.
  const bulk = document.getElementById("bulk");
  if (bulk) {
    const picks = [...$$("input.pick")], all = bulk.querySelector("[data-pick-all]"), box = all.querySelector("input"), said = bulk.querySelector("[data-picked]"), text = said.textContent;
    all.hidden = !picks.length;
    const count = () => {
      const n = picks.filter((p) => p.checked).length;
      said.textContent = n ? `${n} selected` : text;
      box.checked = n === picks.length;
      box.indeterminate = n > 0 && n < picks.length;
    };
    box.addEventListener("change", () => { for (const p of picks) p.checked = box.checked; count(); });
    let last = null;
    for (const p of picks) p.addEventListener("click", (e) => {
      if (e.shiftKey && last) { const [a, b] = [picks.indexOf(last), picks.indexOf(p)].sort((x, y) => x - y); for (let i = a; i <= b; i++) picks[i].checked = p.checked; }
      last = p;
      count();
    });
    count();
  }

  // Pickers in side panels: what the list does not have is found on the server.
  let round = 0, timer = 0;
  document.addEventListener("input", (e) => {
    const many = e.target.closest?.("[data-many][data-from]"), field = many && e.target.closest("[data-narrow]");
    if (!field) return;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++round, text = field.value.trim();
      if (!text) return;
      const found = await json(`${many.dataset.from}&search=${encodeURIComponent(text)}`);
      if (mine !== round) return;
      const box = many.querySelector(".options"), name = many.dataset.name;
      for (const v of found) {
        const value = String(many.dataset.by === "id" ? v.id : v.value);
        if ([...$$("input", box)].some((i) => i.value === value)) continue;
        const check = el("input", { type: "checkbox", name, value });
        box.append(el("label", { className: "tick" }, check, el("span", {}, `${v.label} `, el("span", { className: "muted small" }, v.note || ""))));
      }
    }, 150);
  });
})();
