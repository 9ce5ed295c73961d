// Formulas and diagrams. Pages load this file when a text has one.
"use strict";

(() => {
  const assets = document.body.dataset, mostFormulas = 500, tallest = 4000;
  const add = (tag, attributes) => new Promise((done, failed) => {
    const e = Object.assign(document.createElement(tag), attributes);
    e.addEventListener("load", done);
    e.addEventListener("error", failed);
    document.head.append(e);
  });

  // Formulas become MathML. What Temml does not know stays as it was written.
  let loaded = null, drawn = 0;
  const drawMath = async (list) => {
    loaded ||= Promise.all([add("script", { src: assets.math }), add("link", { rel: "stylesheet", href: assets.richStyle })]);
    await loaded;
    for (const e of list) {
      const block = e.dataset.mathStyle === "display", out = document.createElement(block ? "div" : "span");
      out.className = "formula";
      try {
        temml.render(e.textContent.trim(), out, { displayMode: block, annotate: true, throwOnError: true, maxExpand: 500, maxSize: [20, 500], trust: false });
        e.replaceWith(out);
      } catch (error) {
        e.title = error.message;
      }
    }
  };

  // Diagrams are drawn in a frame that has no access to the page.
  const frames = new Map();
  addEventListener("message", (m) => {
    const frame = [...frames.keys()].find((f) => f.contentWindow === m.source);
    if (!frame) return;
    if (m.data.ready) frame.contentWindow.postMessage({ source: frames.get(frame), dark: getComputedStyle(document.documentElement).getPropertyValue("color-scheme") === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches) }, "*");
    if (m.data.height > 0) {
      frame.style.height = `${Math.min(m.data.height, tallest)}px`;
      frame.classList.add("drawn");
    }
    if (m.data.error) {
      const note = document.createElement("p");
      note.className = "muted small";
      note.textContent = `The diagram is not valid: ${String(m.data.error).slice(0, 300)}`;
      frame.nextElementSibling.open = true;
      frame.replaceWith(note);
    }
  });
  const near = new IntersectionObserver((seen) => {
    for (const s of seen) {
      if (!s.isIntersecting) continue;
      near.unobserve(s.target);
      const pre = s.target, frame = document.createElement("iframe"), more = document.createElement("details"), name = document.createElement("summary");
      frame.setAttribute("sandbox", "allow-scripts");
      frame.title = "Diagram";
      frame.className = "diagram";
      frames.set(frame, pre.textContent);
      frame.src = "/-/sandbox/mermaid";
      name.textContent = "Source";
      more.className = "diagram-source";
      pre.replaceWith(frame, more);
      more.append(name, pre);
    }
  }, { rootMargin: "400px" });

  const look = () => {
    const formulas = [];
    for (const e of document.querySelectorAll("code.math:not([data-seen]), pre.math:not([data-seen]), pre.mermaid:not([data-seen])")) {
      e.dataset.seen = "";
      if (e.classList.contains("mermaid")) near.observe(e);
      else if (drawn++ < mostFormulas) formulas.push(e);
    }
    if (formulas.length) drawMath(formulas);
  };
  look();
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
})();
