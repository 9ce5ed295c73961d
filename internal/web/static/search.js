// Suggestions below the search box of the header: arrows choose one, Enter opens it.
"use strict";

(() => {
  const box = document.querySelector("[data-find]"), form = box?.form;
  if (!box || !box.dataset.suggest) return;
  const list = document.createElement("div");
  Object.assign(list, { className: "suggestions", id: "suggestions", hidden: true });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  form.append(list);
  for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", "suggestions"], ["aria-autocomplete", "list"], ["autocomplete", "off"]]) box.setAttribute(name, value);

  let at = -1, asked = "", stop = null, due = 0;
  const options = () => [...list.querySelectorAll("[role=option]")];
  const show = (on) => {
    list.hidden = !on;
    box.setAttribute("aria-expanded", on);
    if (!on) choose(-1);
  };
  const choose = (n) => {
    at = n;
    options().forEach((o, i) => o.setAttribute("aria-selected", i === n));
    const o = options()[n];
    if (o) { box.setAttribute("aria-activedescendant", o.id); o.scrollIntoView({ block: "nearest" }); } else box.removeAttribute("aria-activedescendant");
  };
  const add = (text, note, url) => {
    const a = document.createElement("a"), label = document.createElement("span"), more = document.createElement("span");
    Object.assign(a, { href: url, id: `suggestion-${options().length}`, tabIndex: -1 });
    a.setAttribute("role", "option");
    a.setAttribute("aria-selected", "false");
    label.textContent = text;
    more.textContent = note || "";
    a.append(label, more);
    list.append(a);
  };
  const results = (text, place) => {
    const query = new URLSearchParams(place ? new FormData(form) : {});
    query.set("search", text);
    return `${form.getAttribute("action")}?${query}`;
  };
  const draw = (text, found) => {
    list.replaceChildren();
    if (box.dataset.place) add(`Search for “${text}”`, `in ${box.dataset.place}`, results(text, true));
    add(`Search for “${text}”`, "everywhere", results(text, false));
    let kind = "";
    for (const f of found) {
      if (f.category !== kind) {
        const head = document.createElement("div");
        Object.assign(head, { className: "kind", textContent: kind = f.category });
        head.setAttribute("role", "presentation");
        list.append(head);
      }
      add(f.label, f.note, f.url);
    }
    list.dataset.for = text;
    choose(-1);
    show(document.activeElement === box);
  };
  const ask = async () => {
    const text = box.value.trim();
    if (text === asked) return;
    asked = text;
    stop?.abort();
    if (text.length < 2) { show(false); return; }
    stop = new AbortController();
    try {
      const res = await fetch(`${box.dataset.suggest}${encodeURIComponent(text)}`, { signal: stop.signal, headers: { Accept: "application/json" } });
      draw(text, res.ok ? await res.json() : []);
    } catch (e) {
      if (e.name !== "AbortError") draw(text, []);
    }
  };
  box.addEventListener("input", () => { clearTimeout(due); due = setTimeout(ask, 150); });
  box.addEventListener("focus", () => { if (list.childElementCount && box.value.trim() === asked && asked.length > 1) show(true); });
  box.addEventListener("keydown", (e) => {
    const all = options();
    if (e.key === "Escape" && !list.hidden) { e.preventDefault(); e.stopPropagation(); show(false); return; }
    if (list.hidden || !all.length) return;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      const step = e.key === "ArrowDown" ? 1 : -1;
      choose(at < 0 && step < 0 ? all.length - 1 : (at + step + all.length + (at + step < 0 ? 1 : 0)) % all.length);
    } else if (e.key === "Enter" && at >= 0) {
      e.preventDefault();
      location.href = all[at].href;
    }
  });
  document.addEventListener("click", (e) => { if (!form.contains(e.target)) show(false); });
  form.addEventListener("focusout", (e) => { if (!form.contains(e.relatedTarget)) show(false); });
  if (box.value.trim()) ask();
})();
