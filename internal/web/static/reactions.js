// The picker of reactions: a popover with a search field and a grid of emoji.
// Without this script the link leads to a page with the same choice.
(() => {
  "use strict";
  let picker = null, from = null;

  const build = async () => {
    const groups = await (await fetch("/-/emojis")).json();
    picker = document.createElement("div");
    picker.className = "emoji-picker";
    picker.popover = "auto";
    picker.setAttribute("role", "dialog");
    picker.setAttribute("aria-label", "Add reaction");
    picker.innerHTML = `<input type="search" aria-label="Search emoji" placeholder="Search emoji" autocomplete="off"><div class="emoji-grid" role="group" aria-label="Emoji"></div>`;
    const grid = picker.querySelector(".emoji-grid"), search = picker.querySelector("input");
    const first = ["thumbsup", "thumbsdown", "smile", "tada", "heart", "rocket", "eyes", "thinking", "white_check_mark", "100"];
    const all = groups.flatMap((g) => g.list);
    const rank = (names) => { const i = first.indexOf(names.split(" ")[0]); return i < 0 ? first.length : i; };
    all.sort((a, b) => rank(a[1]) - rank(b[1]));
    const show = () => {
      const words = search.value.trim().toLowerCase().replaceAll(" ", "_");
      grid.replaceChildren(...all.filter(([, names]) => names.includes(words)).slice(0, words ? 200 : 400).map(([text, names], i) => {
        const b = document.createElement("button"), name = names.split(" ")[0];
        b.type = "button";
        b.textContent = text;
        b.title = `:${name}:`;
        b.setAttribute("aria-label", name);
        b.dataset.name = name;
        b.tabIndex = i ? -1 : 0;
        return b;
      }));
    };
    search.addEventListener("input", show);
    search.addEventListener("keydown", (e) => {
      if (e.key === "Enter") { e.preventDefault(); grid.querySelector("button")?.click(); }
      if (e.key === "ArrowDown") { e.preventDefault(); grid.querySelector("button")?.focus(); }
    });
    grid.addEventListener("keydown", (e) => {
      const list = [...grid.children], at = list.indexOf(document.activeElement);
      if (at < 0) return;
      const top = list[0].offsetTop, row = list.findIndex((b) => b.offsetTop > top);
      const columns = row < 0 ? list.length : row;
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
      if (!step) return;
      e.preventDefault();
      (at + step < 0 ? search : list[Math.min(at + step, list.length - 1)]).focus();
    });
    grid.addEventListener("click", (e) => {
      const b = e.target.closest("button");
      if (!b || !from) return;
      const form = from.closest("[data-part]").querySelector("form");
      form.querySelector("input[name=name]")?.remove();
      const name = document.createElement("input");
      name.type = "hidden";
      name.name = "name";
      name.value = b.dataset.name;
      form.append(name);
      picker.hidePopover();
      form.requestSubmit();
    });
    picker.addEventListener("toggle", (e) => { if (e.newState === "closed" && from?.isConnected) from.focus({ preventScroll: true }); });
    document.body.append(picker);
    show();
  };

  document.addEventListener("click", async (e) => {
    const a = e.target.closest("a[data-react]");
    if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    try {
      if (!picker) await build();
    } catch { location.href = a.href; return; }
    from = a;
    const search = picker.querySelector("input");
    search.value = "";
    search.dispatchEvent(new Event("input"));
    picker.showPopover();
    const at = a.getBoundingClientRect(), width = picker.offsetWidth;
    picker.style.left = `${scrollX + Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
    const below = at.bottom + picker.offsetHeight + 8 < innerHeight || at.top < picker.offsetHeight;
    picker.style.top = `${scrollY + (below ? at.bottom + 4 : at.top - picker.offsetHeight - 4)}px`;
    search.focus();
  });
})();
