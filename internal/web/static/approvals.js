// The form of approval rules: completion of usernames and paths of groups in the
// fields that list several, separated by commas. Pages work without it.
"use strict";

(() => {
  const base = `${location.pathname.split("/-/")[0]}/-/autocomplete_sources/`, kinds = { users: "approvers", groups: "groups" };
  const known = new Map(), list = document.createElement("ul");
  list.className = "names";
  list.id = "names";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  let input = null, items = [], at = -1, round = 0, timer = 0;
  const say = (text) => { const live = document.querySelector("[data-live]"); if (live) live.textContent = text; };

  // part is the name that the caret is in: where it starts and ends.
  const part = () => {
    const v = input.value, caret = input.selectionStart, from = v.lastIndexOf(",", caret - 1) + 1, end = v.indexOf(",", caret);
    const to = end < 0 ? v.length : end, text = v.slice(from, caret);
    return { from, to, text: text.trim().replace(/^@/, "") };
  };
  const others = () => input.value.split(",").map((n) => n.trim().replace(/^@/, "").toLowerCase());
  const hide = () => {
    round++;
    clearTimeout(timer);
    list.hidden = true;
    at = -1;
    input?.setAttribute("aria-expanded", "false");
    input?.removeAttribute("aria-activedescendant");
  };
  const mark = (n) => {
    at = n;
    [...list.children].forEach((li, i) => li.setAttribute("aria-selected", i === n));
    if (n < 0) { input.removeAttribute("aria-activedescendant"); return; }
    list.children[n].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", `names-${n}`);
  };
  const choose = (n) => {
    const { from, to } = part(), value = items[n].value.replace(/^@/, ""), head = input.value.slice(0, from), tail = input.value.slice(to);
    const text = `${head}${head ? " " : ""}${value}`;
    input.value = text + (tail || ", ");
    const caret = tail ? text.length : input.value.length;
    input.setSelectionRange(caret, caret);
    hide();
  };
  const show = (found) => {
    const chosen = others();
    items = found.filter((s) => !chosen.includes(s.value.replace(/^@/, "").toLowerCase()) || s.value.replace(/^@/, "").toLowerCase() === part().text.toLowerCase());
    list.replaceChildren(...items.map((s, i) => {
      const li = document.createElement("li"), name = document.createElement("b"), note = document.createElement("span");
      li.id = `names-${i}`;
      li.setAttribute("role", "option");
      name.textContent = s.label;
      note.className = "muted small";
      note.textContent = s.note || "";
      li.append(name, " ", note);
      li.addEventListener("mousedown", (e) => { e.preventDefault(); choose(i); });
      return li;
    }));
    list.hidden = !items.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (!items.length) { hide(); return; }
    input.after(list);
    mark(0);
    say(`${items.length} suggestion${items.length === 1 ? "" : "s"}. Use the arrow keys, Enter to insert, Escape to close.`);
  };
  const complete = () => {
    // Until the answer is there, only suggestions that match are kept.
    const text = part().text.toLowerCase();
    if (!list.hidden) show(items.filter((s) => `${s.value} ${s.label}`.toLowerCase().includes(text)));
    const mine = ++round, url = `${base}${kinds[input.name]}?search=${encodeURIComponent(part().text)}`;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      try {
        if (!known.has(url)) {
          const res = await fetch(url, { headers: { Accept: "application/json" } });
          known.set(url, res.ok ? await res.json() : []);
        }
        if (mine === round) show(known.get(url));
      } catch { hide(); }
    }, 100);
  };
  const isField = (e) => e instanceof HTMLInputElement && e.name in kinds && e.closest(".rule-form, .rule-add");
  for (const f of document.querySelectorAll("input")) {
    if (!isField(f)) continue;
    for (const [name, value] of Object.entries({ role: "combobox", "aria-controls": "names", "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off" })) f.setAttribute(name, value);
  }
  document.addEventListener("focusin", (e) => { if (isField(e.target)) { input = e.target; complete(); } });
  document.addEventListener("focusout", (e) => { if (e.target === input) hide(); });
  document.addEventListener("input", (e) => { if (e.target === input) complete(); });
  // Browsers leave out the character of a key that was handled; programs that send
  // keys may not.
  let handled = false;
  document.addEventListener("keypress", (e) => { if (handled && e.key === "Enter" && e.target === input) e.preventDefault(); });
  document.addEventListener("keydown", (e) => {
    onKey(e);
    handled = e.defaultPrevented;
  });
  const onKey = (e) => {
    if (e.target !== input || e.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && list.hidden) { e.preventDefault(); complete(); return; }
    if (list.hidden) return;
    if (step) { e.preventDefault(); mark((at + step + items.length) % items.length); }
    else if (e.key === "Enter" || e.key === "Tab" && !e.shiftKey && part().text) { e.preventDefault(); choose(Math.max(at, 0)); }
    else if (e.key === "Escape") { e.preventDefault(); e.stopPropagation(); hide(); }
  };
})();
