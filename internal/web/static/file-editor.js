// The editor of files. It paints the lines in sight behind the text field, which
// stays an ordinary one: selection, undo and screen readers work as always.
"use strict";

(() => {
  const el = (tag, props = {}, ...inner) => { const e = Object.assign(document.createElement(tag), props); e.append(...inner); return e; };
  const escape = (s) => s.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

  // Languages by the end of the file name: comments, strings and keywords.
  const kw = (s) => new Set(s.split(" "));
  const c = { line: "//", open: "/*", close: "*/", quotes: "\"'" };
  const langs = [
    [/\.go$/, { ...c, quotes: "\"'`", long: "`", words: kw("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota") }],
    [/\.([cm]?[jt]sx?|vue|svelte)$/, { ...c, quotes: "\"'`", long: "`", words: kw("async await break case catch class const continue debugger default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of private protected public readonly return static super switch this throw true try type typeof undefined var void while with yield") }],
    [/\.(c|h|cc|cpp|hpp|cxx|m|mm|java|kt|kts|cs|swift|scala|dart|rs|php|proto)$/, { ...c, words: kw("abstract as async await bool boolean break byte case catch char class const continue crate default delete do double dyn else enum extends extern final finally float fn for foreach fun func function goto if impl implements import in inline instanceof int interface internal let long match message mod mut namespace new null nullptr object operator override package private protected pub public return sealed self short signed sizeof static string struct super switch syntax template this throw throws trait true try false typedef typename union unsafe unsigned use using val var virtual void volatile when where while yield") }],
    [/\.(css|scss|less)$/, { ...c, words: kw("important media supports import keyframes layer container from to and not only") }],
    [/\.(py|pyi)$/, { line: "#", quotes: "\"'", triple: true, words: kw("and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield self") }],
    [/(\.(rb|rake|gemspec)|Gemfile|Rakefile)$/, { line: "#", quotes: "\"'", words: kw("alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require") }],
    [/(\.(sh|bash|zsh)|Dockerfile|Makefile|\.mk)$/, { line: "#", quotes: "\"'", words: kw("if then else elif fi for while until do done case esac in function return local export set unset echo exit source FROM RUN COPY ADD ENV ARG CMD ENTRYPOINT WORKDIR EXPOSE USER VOLUME LABEL ifeq ifneq endif define endef include") }],
    [/\.(ya?ml|toml|ini|conf|cfg|properties|env)$/, { line: "#", quotes: "\"'", keys: true, words: kw("true false null yes no on off") }],
    [/\.(json|jsonc)$/, { line: "//", quotes: "\"", keys: true, words: kw("true false null") }],
    [/\.sql$/, { line: "--", open: "/*", close: "*/", quotes: "'\"", fold: true, words: kw("select from where insert into values update set delete create table index view alter add drop primary key foreign references not null default unique and or in is as on join left right inner outer group by order having limit offset union all distinct case when then else end begin commit rollback constraint cascade exists returning with") }],
    [/\.(lua)$/, { line: "--", quotes: "\"'", words: kw("and break do else elseif end false for function goto if in local nil not or repeat return then true until while") }],
    [/\.(html?|xml|svg|md)$/, { open: "<!--", close: "-->", quotes: "", tags: true, words: kw("") }],
  ];
  const langOf = (name) => (langs.find(([re]) => re.test(name)) || [0, { quotes: "", words: kw("") }])[1];

  // paint colours one line. state is what the line begins in: "" or the end that
  // a comment or string of several lines waits for.
  const paint = (line, lang, state, want) => {
    let out = "", i = 0;
    const put = (cls, text) => { if (want) out += cls ? `<span class="${cls}">${escape(text)}</span>` : escape(text); };
    while (i < line.length) {
      if (state) {
        const end = line.indexOf(state, i), to = end < 0 ? line.length : end + state.length;
        put(state === lang.close ? "c" : "s", line.slice(i, to));
        i = to;
        if (end >= 0) state = "";
        continue;
      }
      const rest = line.slice(i, i + 4), ch = line[i];
      if (lang.line && rest.startsWith(lang.line) && (lang.line !== "#" || i === 0 || /[\s;]/.test(line[i - 1]))) { put("c", line.slice(i)); break; }
      if (lang.open && rest.startsWith(lang.open)) {
        const end = line.indexOf(lang.close, i + lang.open.length), to = end < 0 ? line.length : end + lang.close.length;
        put("c", line.slice(i, to));
        i = to;
        if (end < 0) state = lang.close;
        continue;
      }
      if (ch && lang.quotes.includes(ch)) {
        const mark = lang.triple && line.startsWith(ch.repeat(3), i) ? ch.repeat(3) : ch;
        let to = i + mark.length;
        for (; to < line.length && !line.startsWith(mark, to); to++) if (line[to] === "\\" && lang.long !== mark) to++;
        const open = to >= line.length;
        to = Math.min(to + mark.length, line.length);
        const key = lang.keys && /^\s*:/.test(line.slice(to));
        put(key ? "nt" : "s", line.slice(i, to));
        i = to;
        if (open && (mark.length === 3 || mark === lang.long)) state = mark;
        continue;
      }
      const word = lang.keys && /^[\p{L}_][\p{L}\p{N}_.-]*(?=\s*[:=])/u.exec(line.slice(i, i + 200))?.[0] || /^[\p{L}_$][\p{L}\p{N}_$]*|^\d[\d.xa-fA-F_eE]*|^<\/?[a-zA-Z][\w:-]*|^[^\p{L}\p{N}_$"'`\/#\-<]+|^./u.exec(line.slice(i, i + 200))[0];
      const known = lang.words.has(lang.fold ? word.toLowerCase() : word);
      let cls = "";
      if (known) cls = "k";
      else if (/^\d/.test(word)) cls = "m";
      else if (lang.tags && word[0] === "<" && word.length > 1) cls = "nt";
      else if (/^[\p{L}_]/u.test(word)) {
        const after = line.slice(i + word.length, i + word.length + 2);
        if (lang.keys && /^\s*[:=]/.test(line.slice(i + word.length)) && /^[\s\-?{,\[]*$/.test(line.slice(0, i))) cls = "nt";
        else if (!lang.tags && after[0] === "(") cls = "nf";
      }
      put(cls, word);
      i += word.length;
    }
    if (state && state === lang.long) { /* goes on */ }
    return [out, state];
  };

  const start = (area) => {
    const named = document.getElementById(area.dataset.code);
    const name = () => named?.value || area.dataset.name || "";
    const gutter = el("div", { className: "ed-gutter", ariaHidden: "true" }), inner = el("div"), layer = el("pre", { className: "ed-paint", ariaHidden: "true" });
    const box = el("div", { className: "ed" }), body = el("div", { className: "ed-body" }), bar = el("div", { className: "ed-bar" });
    gutter.append(inner);
    area.before(box);
    body.append(layer, area);
    box.append(bar, gutter, body);
    box.hidden = area.hidden;

    let lines = [], states = [""], lang = langOf(name()), height = 0, tab = "\t";
    const measure = () => { height = parseFloat(getComputedStyle(area).lineHeight) || 20; };
    const indent = () => {
      const spaces = area.value.match(/^( +)\S/gm)?.map((s) => s.length - 1).filter((n) => n > 1) || [];
      tab = !/^\t/m.test(area.value) && spaces.length ? " ".repeat(Math.min(...spaces, 8)) : /\.(py|rb|ya?ml|json|jsx?|tsx?|css|html?|md|rs)$/.test(name()) && !/^\t/m.test(area.value) ? (/\.(py|rs)$/.test(name()) ? "    " : "  ") : "\t";
    };
    const lineAt = (pos) => { let n = 0; for (let i = area.value.indexOf("\n"); i >= 0 && i < pos; i = area.value.indexOf("\n", i + 1)) n++; return n; };
    const draw = () => {
      const top = area.scrollTop, first = Math.max(0, Math.floor(top / height) - 1), last = Math.min(lines.length, first + Math.ceil(area.clientHeight / height) + 3);
      for (let n = states.length - 1; n < last; n++) states[n + 1] = paint(lines[n], lang, states[n], false)[1];
      let html = "", numbers = "";
      const here = document.activeElement === area ? lineAt(area.selectionStart) : -1;
      for (let n = first; n < last; n++) {
        const text = lines[n];
        html += (text.length > 2000 ? escape(text) : paint(text, lang, states[n], true)[0]) + "\n";
        numbers += `<div${n === here ? ' class="here"' : ""}>${n + 1}</div>`;
      }
      layer.innerHTML = html;
      layer.style.transform = `translate(${-area.scrollLeft}px, ${first * height - top}px)`;
      inner.innerHTML = numbers;
      inner.style.transform = `translateY(${first * height - top}px)`;
      gutter.style.height = `${area.offsetHeight}px`;
      said.textContent = here >= 0 ? `Line ${here + 1}, column ${area.selectionStart - area.value.lastIndexOf("\n", area.selectionStart - 1)}` : `${lines.length} lines`;
    };
    let due = 0;
    const soon = () => { due ||= requestAnimationFrame(() => { due = 0; draw(); }); };
    const read = () => {
      const now = area.value.split("\n");
      let same = 0;
      while (same < now.length && same < lines.length && now[same] === lines[same]) same++;
      lines = now;
      states.length = Math.min(states.length, same + 1);
      soon();
    };
    const insert = (text) => { if (!document.execCommand("insertText", false, text)) { area.setRangeText(text, area.selectionStart, area.selectionEnd, "end"); read(); } };

    // The bar: indentation, wrapping, find.
    const said = el("span", { className: "muted" }), find = el("button", { type: "button", className: "button slim", textContent: "Find", title: "Ctrl+F" });
    bar.append(said, el("span", { className: "grow" }), find);
    const finder = el("div", { className: "ed-find", hidden: true });
    const input = (label) => { const f = el("input", { type: "search", placeholder: label }); f.setAttribute("aria-label", label); return f; };
    const what = input("Find"), by = input("Replace with"), hits = el("span", { className: "muted" });
    hits.setAttribute("role", "status");
    const button = (text, act) => { const b = el("button", { type: "button", className: "button slim", textContent: text }); b.addEventListener("click", act); return b; };
    const all = () => { const list = [], text = area.value.toLowerCase(), q = what.value.toLowerCase(); if (q) for (let i = text.indexOf(q); i >= 0 && list.length < 100000; i = text.indexOf(q, i + q.length)) list.push(i); return list; };
    const show = (at) => {
      area.focus();
      area.setSelectionRange(at, at + what.value.length);
      area.scrollTop = Math.max(0, lineAt(at) * height - area.clientHeight / 2);
      soon();
    };
    const step = (dir) => {
      const list = all();
      if (!list.length) { hits.textContent = what.value ? "No results" : ""; return; }
      let n = dir > 0 ? list.findIndex((i) => i >= (area.selectionEnd > area.selectionStart ? area.selectionStart + 1 : area.selectionStart)) : list.findLastIndex((i) => i < area.selectionStart);
      if (n < 0) n = dir > 0 ? 0 : list.length - 1;
      hits.textContent = `${n + 1} of ${list.length}`;
      show(list[n]);
    };
    const replace = () => { if (area.value.slice(area.selectionStart, area.selectionEnd).toLowerCase() === what.value.toLowerCase() && what.value) { area.focus(); insert(by.value); } step(1); };
    const replaceAll = () => {
      const list = all();
      if (!list.length) return step(1);
      let text = "", from = 0;
      for (const i of list) { text += area.value.slice(from, i) + by.value; from = i + what.value.length; }
      text += area.value.slice(from);
      area.focus();
      area.select();
      insert(text);
      hits.textContent = `${list.length} replaced`;
    };
    finder.append(what, button("Previous", () => step(-1)), button("Next", () => step(1)), by, button("Replace", replace), button("Replace all", replaceAll), hits, button("Close", () => close()));
    bar.after(finder);
    const open = () => { finder.hidden = false; const chosen = area.value.slice(area.selectionStart, area.selectionEnd); if (chosen && !chosen.includes("\n")) what.value = chosen; what.focus(); what.select(); };
    const close = () => { finder.hidden = true; area.focus(); };
    find.addEventListener("click", open);
    finder.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && e.target.matches("input")) { e.preventDefault(); if (e.target === by) replace(); else { step(e.shiftKey ? -1 : 1); what.focus(); } }
      else if (e.key === "Escape") { e.preventDefault(); close(); }
    });

    // Keys: Tab indents, Enter keeps the indentation, Escape then Tab leaves.
    let leave = false;
    area.addEventListener("keydown", (e) => {
      if ((e.ctrlKey || e.metaKey) && e.key === "f") { e.preventDefault(); open(); return; }
      if ((e.ctrlKey || e.metaKey) && (e.key === "s" || e.key === "Enter")) { e.preventDefault(); area.form.requestSubmit(area.form.querySelector("button[value=commit], button.main")); return; }
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "Escape") { leave = true; said.textContent = "Press Tab to leave the editor"; return; }
      if (e.key === "Tab" && !leave) {
        e.preventDefault();
        const [from, to] = [area.selectionStart, area.selectionEnd], begin = area.value.lastIndexOf("\n", from - 1) + 1, part = area.value.slice(begin, to);
        if (!e.shiftKey && !part.slice(from - begin).includes("\n")) { insert(tab); return; }
        const list = part.split("\n"), next = list.map((l) => e.shiftKey ? l.replace(/^(\t| {1,4})/, (s) => s[0] === "\t" ? "" : s.slice(Math.min(s.length, tab.length))) : l && tab + l).join("\n");
        area.setSelectionRange(begin, to);
        insert(next);
        area.setSelectionRange(begin === from ? begin : Math.max(begin, from + (next.split("\n")[0].length - list[0].length)), begin + next.length);
      } else if (e.key === "Enter" && area.selectionStart === area.selectionEnd) {
        const begin = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1, lead = /^[ \t]*/.exec(area.value.slice(begin, area.selectionStart))[0];
        if (lead || /[{(\[:]$/.test(area.value.slice(begin, area.selectionStart))) {
          e.preventDefault();
          insert("\n" + lead + (/[{(\[]$/.test(area.value.slice(begin, area.selectionStart)) ? tab : ""));
        }
      }
    });
    area.addEventListener("blur", () => { leave = false; soon(); });
    area.addEventListener("input", read);
    area.addEventListener("scroll", soon);
    for (const on of ["keyup", "click", "focus"]) area.addEventListener(on, () => { if (!leave) soon(); });
    named?.addEventListener("change", () => { lang = langOf(name()); states = [""]; indent(); soon(); });
    new ResizeObserver(() => { measure(); soon(); }).observe(area);
    indent();
    measure();
    read();
  };

  const areas = [...document.querySelectorAll("textarea[data-code]")];
  for (const area of areas) start(area);

  // Text that was not committed is not lost by leaving the page.
  if (areas.length) {
    let sent = false;
    areas[0].form.addEventListener("submit", () => { sent = true; });
    const unsaved = "files" in areas[0].form.dataset;
    addEventListener("beforeunload", (e) => { if (!sent && (unsaved && areas.length > 1 || areas.some((a) => a.value !== a.defaultValue))) e.preventDefault(); });
  }

  // A merge request is offered for a new branch alone.
  for (const box of document.querySelectorAll("[data-propose]")) {
    const branch = box.closest("form").elements.branch, look = () => { box.hidden = branch.value.trim() === box.dataset.propose; };
    branch.addEventListener("input", look);
    look();
  }

  for (const f of document.querySelectorAll("input[data-drop]")) {
    document.addEventListener("dragover", (e) => { e.preventDefault(); f.classList.add("over"); });
    document.addEventListener("dragleave", () => f.classList.remove("over"));
    document.addEventListener("drop", (e) => { if (e.dataTransfer.files.length) { e.preventDefault(); f.files = e.dataTransfer.files; f.classList.remove("over"); } });
  }

  // Paths of existing files are completed.
  for (const f of document.querySelectorAll("input[data-files-from]")) {
    const list = el("div", { className: "filelist pop", hidden: true, id: "file-paths" });
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Files");
    f.setAttribute("role", "combobox");
    f.setAttribute("aria-controls", list.id);
    f.setAttribute("aria-expanded", "false");
    f.closest(".field").append(list);
    let at = -1, round = 0, timer = 0;
    const choose = (n) => { at = Math.max(-1, Math.min(n, list.children.length - 1)); [...list.children].forEach((o, i) => o.setAttribute("aria-selected", i === at)); list.children[at]?.scrollIntoView({ block: "nearest" }); };
    const hide = () => { list.hidden = true; at = -1; round++; f.setAttribute("aria-expanded", "false"); };
    const pick = (path) => { f.value = path; hide(); f.form.requestSubmit(f.form.querySelector("button[value=add]")); };
    f.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const mine = ++round;
        if (!f.value.trim()) return hide();
        const res = await fetch(`${f.dataset.filesFrom}&search=${encodeURIComponent(f.value)}`);
        if (!res.ok || mine !== round) return;
        const j = await res.json();
        list.replaceChildren(...j.files.slice(0, 20).map((m) => { const o = el("div", { textContent: m.path }); o.setAttribute("role", "option"); return o; }));
        list.hidden = !list.children.length;
        f.setAttribute("aria-expanded", !list.hidden);
        choose(-1);
      }, 80);
    });
    f.addEventListener("keydown", (e) => {
      if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); choose(at + (e.key === "ArrowDown" ? 1 : -1)); }
      else if (e.key === "Enter") { if (list.children[at]) f.value = list.children[at].textContent; hide(); } // the form is sent
      else if (e.key === "Escape") hide();
    });
    list.addEventListener("mousedown", (e) => { e.preventDefault(); const o = e.target.closest("[role=option]"); if (o) pick(o.textContent); });
    f.addEventListener("blur", hide);
  }

  // The pipeline editor validates while one types.
  const pipeline = document.querySelector("form[data-ci-editor]"), yaml = pipeline?.elements.content;
  if (yaml) {
    let timer = 0, round = 0;
    yaml.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const mine = ++round, data = new URLSearchParams(new FormData(pipeline));
        data.set("do", "check");
        const res = await fetch(pipeline.action, { method: "POST", body: data });
        if (!res.ok || mine !== round) return;
        const fresh = new DOMParser().parseFromString(await res.text(), "text/html").querySelectorAll("[data-result]");
        [...pipeline.querySelectorAll("[data-result]")].forEach((part, i) => {
          const open = [...part.querySelectorAll("details")].map((d) => d.open);
          part.replaceChildren(...fresh[i].childNodes);
          [...part.querySelectorAll("details")].forEach((d, n) => { d.open = open[n]; });
        });
      }, 600);
    });
  }
})();
