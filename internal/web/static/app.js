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

  // Copy buttons take the text of the element that they name.
  const live = document.querySelector("[data-live]");
  const say = (text) => { if (live) live.textContent = text; };
  for (const b of $$("[data-copy]")) {
    if (!navigator.clipboard) continue;
    b.hidden = false;
    b.addEventListener("click", async () => {
      const from = document.getElementById(b.dataset.copy);
      if (!from) return;
      await navigator.clipboard.writeText(from.dataset.text || from.value || from.textContent.trim());
      b.classList.add("copied");
      b.title = "Copied";
      say("Copied");
      setTimeout(() => { b.classList.remove("copied"); b.title = "Copy"; }, 1500);
    });
  }

  // Times: how long ago, kept up to date; the exact one on hover.
  const units = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "always" });
  const tick = () => {
    for (const t of $$("time[data-ago]")) {
      const at = new Date(t.dateTime), past = (Date.now() - at) / 1000;
      t.title = at.toLocaleString();
      const unit = units.find(([, s]) => past >= s);
      t.textContent = unit ? words.format(-Math.floor(past / unit[1]), unit[0]) : "just now";
    }
  };
  tick();
  setInterval(tick, 60000);

  // On a phone the list of settings is a strip: the present one is in sight.
  document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

  // One menu at a time; a click elsewhere or Escape closes it.
  const closeMenus = (but) => { for (const m of $$("details.menu[open]")) if (m !== but) m.open = false; };
  document.addEventListener("click", (e) => closeMenus(e.target.closest("details.menu")));

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
    let own = path.value !== "";
    path.addEventListener("input", () => { own = path.value !== ""; });
    name?.addEventListener("input", () => {
      if (!own) path.value = name.value.toLowerCase().normalize("NFKD").replace(/[^a-z0-9_.]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
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
  for (const s of $$("select[data-go]")) s.addEventListener("change", () => { location.href = s.value; });

  // Shortcuts: "/" finds, "g p" goes to projects, "?" lists them.
  const go = { p: "/dashboard/projects", g: "/dashboard/groups", e: "/explore", s: "/-/user_settings/profile", n: "/projects/new" };
  let after = 0;
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") closeMenus();
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog[open], [contenteditable]")) return;
    if (e.key === "/") {
      const f = document.querySelector("[data-find]");
      if (f) { e.preventDefault(); f.focus(); f.select(); }
    } else if (e.key === "?") {
      document.querySelector("dialog[data-keys]")?.showModal();
    } else if (e.key === "t") {
      document.querySelector("[data-theme-switch]")?.click();
    } else if (e.key === "g" && Date.now() - after > 1500) {
      after = Date.now();
    } else if (Date.now() - after <= 1500) {
      after = 0;
      if (go[e.key]) location.href = go[e.key];
    }
  });
  for (const b of $$("[data-close]")) b.addEventListener("click", () => b.closest("dialog").close(b.value || ""));
  for (const b of $$("[data-show-keys]")) {
    b.hidden = false;
    b.addEventListener("click", () => document.querySelector("dialog[data-keys]").showModal());
  }
})();
