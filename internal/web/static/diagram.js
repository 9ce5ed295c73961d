// Draws one diagram in a frame of its own, which can reach nothing else.
"use strict";

mermaid.initialize({ startOnLoad: false });
addEventListener("message", async (m) => {
  if (m.source !== parent) return;
  const out = document.getElementById("out");
  try {
    mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: m.data.dark ? "dark" : "default", maxTextSize: 50000, maxEdges: 500, htmlLabels: false, flowchart: { htmlLabels: false } });
    out.innerHTML = (await mermaid.render("diagram", String(m.data.source))).svg;
    const height = () => { // a frame that is not in sight may have none yet
      const n = Math.ceil(out.getBoundingClientRect().height);
      if (n) parent.postMessage({ height: n + 4 }, "*");
    };
    new ResizeObserver(height).observe(out);
    height();
  } catch (error) {
    parent.postMessage({ error: error.message }, "*");
  }
});
parent.postMessage({ ready: true }, "*");
