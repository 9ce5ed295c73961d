// Reviews of merge requests: the batch of suggestions, and the button that inserts
// one. Pages work without it.
"use strict";

(() => {
  // The bar of the batch shows when something is selected, and how much.
  const count = () => {
    const batch = document.querySelector("[data-batch]"), n = document.querySelectorAll('input[form="batch"]:checked').length;
    if (!batch) return;
    batch.hidden = n === 0;
    batch.querySelector("[data-batch-apply]").textContent = n === 1 ? "Apply 1 suggestion" : `Apply ${n} suggestions`;
  };
  document.addEventListener("change", (e) => { if (e.target.matches('input[form="batch"]')) count(); });
  document.addEventListener("svc:review", () => {
    count();
    const own = document.querySelector("[data-your-review]"), pending = Boolean(document.querySelector(".reviewbar:not(.batch)"));
    if (own) own.hidden = pending; // the bar has the same form
    for (const b of document.querySelectorAll("button[name=review]")) b.lastChild.textContent = pending ? " Add to review" : " Start a review";
  });
  addEventListener("pageshow", count);
  count();

  // Insert suggestion: the lines that the comment is about, in a block. The form
  // names them as old_new, the first and the last.
  const text = (form) => {
    const row = form.closest("tr"), { from, to } = form.elements;
    if (!row || !to?.value) return null;
    const last = to.value.split("_")[1], first = (from?.value || to.value).split("_")[1];
    if (!+last) return null; // a removed line
    const list = [];
    for (let r = row.previousElementSibling; r; r = r.previousElementSibling) {
      if (r.classList.contains("talkrow")) continue;
      const cells = [...r.cells], at = cells.length > 3 ? 2 : 1, n = cells[at]?.dataset.n;
      if (!n || cells[at + 1] === undefined) { if (cells[0]?.dataset.n) continue; break; }
      if (+n > +last) continue;
      list.unshift(cells[at + 1].textContent.replace(/\n$/, ""));
      if (+n <= (+first || +last)) break;
    }
    return list.length ? { lines: list, above: list.length - 1 } : null;
  };
  document.addEventListener("click", (e) => {
    const b = e.target.closest("[data-suggest]");
    if (!b) return;
    const form = b.closest("form"), area = form.querySelector("textarea"), found = text(form);
    if (!found) return;
    let fence = "```";
    while (found.lines.some((l) => l.includes(fence))) fence += "`";
    const start = area.selectionStart, lead = start && area.value[start - 1] !== "\n" ? "\n" : "";
    const block = `${lead}${fence}suggestion:-${found.above}+0\n${found.lines.join("\n")}\n${fence}\n`;
    area.setRangeText(block, start, area.selectionEnd, "end");
    const at = start + block.indexOf("\n", lead.length) + 1;
    area.setSelectionRange(at, at + found.lines.join("\n").length);
    area.focus();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const show = () => { for (const b of document.querySelectorAll("tr.talkrow [data-suggest]")) b.hidden = !text(b.closest("form")); };
  new MutationObserver(show).observe(document.getElementById("main") || document.body, { childList: true, subtree: true });
  show();
})();
