// Progressive enhancement of the API documentation: the filter, copy buttons and
// the console that sends requests. Responses are only inserted as text, never as
// HTML.
'use strict';

(() => {
  const root = document.documentElement;
  root.classList.add('js');

  // ---- theme: as selected on the other pages, or by the system

  const chosen = document.cookie.match(/(?:^|; )theme=(dark|light)(?:;|$)/)?.[1];
  if (chosen) root.dataset.theme = chosen;
  document.getElementById('theme').addEventListener('click', () => {
    const now = root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
    root.dataset.theme = now === 'dark' ? 'light' : 'dark';
    const secure = location.protocol === 'https:' ? '; Secure' : '';
    document.cookie = `theme=${root.dataset.theme}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
  });

  const base = new URL(root.dataset.up, document.baseURI); // …/api/v4/
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // make builds an element: properties by name, attributes under attrs.
  function make(tag, props = {}, ...children) {
    const { attrs = {}, ...rest } = props;
    const node = Object.assign(document.createElement(tag), rest);
    for (const [name, value] of Object.entries(attrs)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  // ---- token: stored for this tab only

  const token = document.getElementById('token');
  const stored = 'api-token';
  token.value = sessionStorage.getItem(stored) ?? '';
  token.addEventListener('input', () => {
    if (token.value) sessionStorage.setItem(stored, token.value.trim());
    else sessionStorage.removeItem(stored);
  });

  // ---- syntax highlighting of JSON

  const piece = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;

  function paint(code) {
    const text = code.textContent;
    if (text.length > 200_000) return;
    const parts = [];
    let at = 0;
    for (const found of text.matchAll(piece)) {
      parts.push(text.slice(at, found.index));
      const kind = found[1] ? (found[2] ? 'tk' : 'ts') : found[3] ? 'tn' : 'tw';
      parts.push(make('span', { className: kind, textContent: found[1] ?? found[0] }), found[2] ?? '');
      at = found.index + found[0].length;
    }
    code.replaceChildren(...parts, text.slice(at));
  }

  // indent formats JSON without parsing its values, so that large numbers keep
  // their digits.
  function indent(text) {
    try { JSON.parse(text); } catch { return text; }
    let out = '', depth = 0;
    for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
      const last = out.at(-1);
      if (token === '}' || token === ']') {
        depth--;
        out += (last === '{' || last === '[' ? '' : '\n' + '  '.repeat(depth)) + token;
      } else if (token === ',') {
        out += ',';
      } else if (token === ':') {
        out += ': ';
      } else {
        if (last === '{' || last === '[' || last === ',') out += '\n' + '  '.repeat(depth);
        out += token;
        if (token === '{' || token === '[') depth++;
      }
    }
    return out;
  }

  const painter = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      painter.unobserve(entry.target);
      paint(entry.target);
    }
  }, { rootMargin: '600px' });
  for (const code of all('code.json')) painter.observe(code);

  // ---- copy buttons

  document.addEventListener('click', async (event) => {
    const button = event.target.closest('.copy');
    if (!button) return;
    const text = button.dataset.copy ?? button.closest('figure').querySelector('code').textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Copy failed';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });

  // ---- menu on small screens

  const side = document.getElementById('side');
  const menu = document.querySelector('.menu');
  function showMenu(shown) {
    side.classList.toggle('shown', shown);
    menu.setAttribute('aria-expanded', shown);
    menu.textContent = shown ? 'Close' : 'Menu';
  }
  menu.addEventListener('click', () => showMenu(!side.classList.contains('shown')));
  side.addEventListener('click', (event) => { if (event.target.closest('a')) showMenu(false); });
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !side.classList.contains('shown') || event.target.value) return;
    showMenu(false);
    menu.focus();
  });

  // ---- filter

  const filter = document.getElementById('filter');
  const found = document.getElementById('found');
  const nothing = document.getElementById('nothing');
  const endpoints = all('.side details li').map((item) => {
    const link = item.querySelector('a');
    return {
      item,
      article: document.getElementById(link.hash.slice(1)), // null when it is on another page
      text: [link.textContent, link.dataset.path, item.closest('details').querySelector('summary').textContent].join(' ').toLowerCase(),
    };
  });
  const opened = all('.side details[open]');

  function applyFilter() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { item, article, text } of endpoints) {
      const hit = words.every((word) => text.includes(word));
      item.hidden = !hit;
      if (article) article.hidden = !hit;
      if (hit) count++;
    }
    for (const box of all('.side details')) {
      box.hidden = all('li', box).every((node) => node.hidden);
      box.open = words.length ? !box.hidden : opened.includes(box);
    }
    root.classList.toggle('filtered', words.length > 0);
    nothing.hidden = count > 0;
    found.textContent = words.length ? `${count} of ${endpoints.length} endpoints` : '';
  }

  filter.addEventListener('input', () => { applyFilter(); if (filter.value) window.scrollTo({ top: 0, behavior: 'instant' }); });
  filter.addEventListener('keydown', (event) => {
    const first = all('.side details:not([hidden]) li:not([hidden]) a')[0];
    if (event.key === 'Escape') { filter.value = ''; applyFilter(); }
    if (event.key === 'Enter' && filter.value && first) first.click();
    if (event.key === 'ArrowDown' && first) { event.preventDefault(); first.focus(); }
  });
  document.getElementById('clear-filter').addEventListener('click', () => { filter.value = ''; applyFilter(); filter.focus(); });

  side.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp' || !event.target.matches('.side nav a')) return;
    const links = all('.side nav a').filter((link) => link.checkVisibility());
    const next = links[links.indexOf(event.target) + (event.key === 'ArrowDown' ? 1 : -1)];
    event.preventDefault();
    (next ?? filter).focus();
  });

  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea, select')) return;
    event.preventDefault();
    if (menu.checkVisibility()) showMenu(true);
    filter.focus();
  });

  // A link target may be hidden by the filter, in a closed list, or on another
  // page than the index.
  function reveal() {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = document.getElementById(name);
    const other = !target && name && all('.side details a').find((link) => link.hash === location.hash);
    if (other) location.replace(other.href);
    if (!target) return;
    if (target.closest('[hidden]')) { filter.value = ''; applyFilter(); }
    const box = target.closest('details:not([open])');
    if (box) box.open = true;
    target.scrollIntoView({ behavior: 'instant' });
  }
  window.addEventListener('hashchange', reveal);
  // Elements that this script shows have moved the target.
  window.addEventListener('load', () => requestAnimationFrame(reveal));

  // ---- current section

  const links = new Map(all('.side nav a').map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  let current = null;
  const spy = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.isIntersecting ? seen.add(entry.target) : seen.delete(entry.target);
    const top = [...seen].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)[0];
    const link = top && links.get(top.id);
    if (!link || link === current) return;
    current?.removeAttribute('aria-current');
    link.setAttribute('aria-current', 'true');
    current = link;
    if (!side.contains(document.activeElement) && link.checkVisibility()) link.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  }, { rootMargin: '-10% 0px -70% 0px' });
  for (const node of all('.endpoint, #shapes, .guide-grid > section')) spy.observe(node);

  // ---- console

  document.addEventListener('click', (event) => {
    const button = event.target.closest('.try');
    if (!button) return;
    const article = button.closest('.endpoint');
    let form = article.querySelector('.console');
    if (!form) {
      form = newConsole(article);
      article.append(form);
      button.setAttribute('aria-controls', form.id);
    } else {
      form.hidden = !form.hidden;
    }
    button.setAttribute('aria-expanded', !form.hidden);
    button.textContent = form.hidden ? 'Try it' : 'Close console';
    if (!form.hidden) form.querySelector('input, select, textarea, .send').focus();
  });

  function newConsole(article) {
    const method = article.dataset.method;
    const title = article.querySelector('h3').textContent;
    const params = all('.params li[data-in]', article).map((row) => newParam(article, row));
    const needed = params.filter((p) => p.required || p.in === 'path');
    const others = params.filter((p) => !needed.includes(p));

    const send = make('button', { type: 'submit', className: method === 'DELETE' ? 'send danger' : 'send', textContent: `Send ${method}` });
    const stop = make('button', { type: 'button', className: 'stop', textContent: 'Stop', hidden: true });
    const where = make('p', { className: 'hint' }, make('code'));
    const answer = make('div', { className: 'answer' });
    const heard = make('p', { className: 'heard', attrs: { role: 'status' } }); // the outcome, not the whole body
    const form = make('form', { className: 'console', id: `console-${article.id}`, noValidate: true, attrs: { 'aria-label': `Console: ${title}` } },
      make('h4', { textContent: 'Console' }));
    if (needed.length) form.append(make('div', { className: 'inputs' }, ...needed.map((p) => p.box)));
    if (others.length) {
      form.append(make('details', { className: 'others', open: !needed.length && others.length <= 6 },
        make('summary', { textContent: `Optional parameters (${others.length})` }),
        make('div', { className: 'inputs' }, ...others.map((p) => p.box))));
    }
    form.append(make('div', { className: 'actions' }, send, stop, where), heard, answer);

    const show = () => { where.firstChild.textContent = address(article, params).href.replaceAll('%7B', '{').replaceAll('%7D', '}'); };
    form.addEventListener('input', show);
    form.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    show();

    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const aborter = new AbortController();
      stop.onclick = () => aborter.abort();
      send.disabled = true;
      stop.hidden = false;
      try {
        answer.replaceChildren(...await run(method, article, params, aborter.signal));
        heard.textContent = answer.querySelector('.status').textContent;
      } catch (problem) {
        const text = problem.name === 'AbortError' ? 'Stopped.' : problem.message;
        answer.replaceChildren(make('p', { className: 'problem', textContent: text }));
        heard.textContent = text;
      } finally {
        send.disabled = false;
        stop.hidden = true;
      }
    });
    return form;
  }

  // newParam makes the input of a parameter from its row in the list.
  function newParam(article, row) {
    const { name, in: place, kind, enum: values, default: preset } = row.dataset;
    const id = `in-${article.id}-${place}-${name}`;
    const required = 'required' in row.dataset;
    let input;
    if (values && kind !== 'list') {
      input = make('select', { id }, make('option', { value: '', textContent: preset ? `default: ${preset}` : '—' }),
        ...values.split(',').map((value) => make('option', { value, textContent: value })));
    } else if (kind === 'boolean') {
      input = make('select', { id }, ...['', 'true', 'false'].map((value) => make('option', { value, textContent: value || '—' })));
    } else if (kind === 'file') {
      input = make('input', { id, type: 'file' });
    } else if (kind === 'list') {
      input = make('textarea', { id, placeholder: values ? values.split(',').join('\n') : 'one per line', spellcheck: false });
    } else if (kind === 'object') {
      input = make('textarea', { id, placeholder: '{"key": "value"}', spellcheck: false });
    } else {
      input = make('input', {
        id, type: 'secret' in row.dataset ? 'password' : kind === 'date' ? 'date' : 'text', autocomplete: 'off', spellcheck: false,
        inputMode: kind === 'integer' ? 'numeric' : kind === 'number' ? 'decimal' : 'text',
        placeholder: preset ?? (kind === 'date-time' ? '2026-01-31T12:00:00Z' : ''),
      });
    }
    if (required) input.setAttribute('aria-required', 'true');
    const label = make('label', { htmlFor: id }, make('code', { textContent: name }), ' ',
      make('span', { textContent: row.querySelector('.type').textContent }));
    if (required) label.append(' ', make('span', { className: 'required', textContent: 'required' }));
    const box = make('div', { className: kind === 'object' || kind === 'list' ? 'wide' : '' }, label, input);
    return { name: name.replace(/\[\]$/, ''), in: place, kind, required, input, box };
  }

  // given returns the input of a parameter as a JSON value; undefined if it is
  // empty.
  function given(p) {
    if (p.kind === 'file') return p.input.files[0];
    const text = p.input.value;
    if (text === '') return undefined;
    switch (p.kind) {
      case 'boolean': return text === 'true';
      case 'integer': case 'number': return text.trim() !== '' && Number.isSafeInteger(Number(text)) ? Number(text) : text;
      case 'list': return text.split('\n').map((line) => line.trim()).filter(Boolean).map(itemOf);
      case 'object':
        try { return JSON.parse(text); } catch { throw new Error(`${p.name}: invalid JSON.`); }
    }
    return text;
  }

  // itemOf parses a line of a list: JSON for objects, otherwise a string.
  function itemOf(line) {
    if (!line.startsWith('{')) return line;
    try { return JSON.parse(line); } catch { return line; }
  }

  // pairs flattens a value into name[key]=value.
  function* pairs(name, value) {
    if (Array.isArray(value)) for (const item of value) yield* pairs(`${name}[]`, item);
    else if (value instanceof File) yield [name, value];
    else if (value && typeof value === 'object') for (const [key, inner] of Object.entries(value)) yield* pairs(`${name}[${key}]`, inner);
    else yield [name, String(value)];
  }

  function address(article, params) {
    let path = article.querySelector('.path').textContent;
    const query = new URLSearchParams();
    for (const p of params) {
      if (p.in === 'path') {
        const text = p.input.value.trim();
        if (text) path = path.replace(`{${p.name}}`, encodeURIComponent(text).replaceAll('.', '%2E'));
        continue;
      }
      if (p.in !== 'query') continue;
      let value;
      try { value = given(p); } catch { continue; } // told when it is sent
      if (value !== undefined) for (const [name, text] of pairs(p.name, value)) query.append(name, text);
    }
    const url = new URL(base.href.replace(/\/$/, '') + path);
    url.search = query;
    return url;
  }

  async function run(method, article, params, signal) {
    for (const p of params) {
      const value = given(p);
      if (p.in === 'path' && !p.input.value.trim()) {
        p.input.focus();
        throw new Error(`${p.name}: fill this in first.`);
      }
      p.value = value;
    }
    const headers = new Headers({ Accept: 'application/json, */*;q=0.5' });
    const secret = token.value.trim();
    if (secret) headers.set('PRIVATE-TOKEN', secret);
    let body;
    const sent = params.filter((p) => p.in === 'body' && p.value !== undefined);
    if (sent.some((p) => p.kind === 'file')) {
      body = new FormData();
      for (const p of sent) for (const [name, value] of pairs(p.name, p.value)) body.append(name, value);
    } else if (sent.length) {
      headers.set('Content-Type', 'application/json');
      body = JSON.stringify(Object.fromEntries(sent.map((p) => [p.name, p.value])));
    }
    const start = performance.now();
    let reply;
    try {
      // With a token the cookie is not sent, so that the token is used.
      reply = await fetch(address(article, params), { method, headers, body, signal, cache: 'no-store', credentials: secret ? 'omit' : 'same-origin' });
    } catch (problem) {
      if (problem.name === 'AbortError') throw problem;
      throw new Error('The server could not be reached.');
    }
    const content = await reply.blob();
    return showReply(reply, content, performance.now() - start);
  }

  async function showReply(reply, content, took) {
    const type = reply.headers.get('Content-Type') ?? '';
    const kind = reply.ok ? 'ok' : reply.status < 400 ? 'moved' : '';
    const caption = make('figcaption', {}, make('span', { className: `status ${kind}`, textContent: `${reply.status} ${reply.statusText}`.trim() }),
      make('span', { textContent: `${Math.round(took)} ms` }), make('span', { textContent: sizeText(content.size) }));
    const figure = make('figure', {}, caption);
    if (/json|^text\//.test(type) && content.size) {
      const code = make('code');
      let text = await content.text();
      if (/json/.test(type)) {
        text = indent(text);
      }
      const whole = text;
      if (text.length > 500_000) text = text.slice(0, 500_000) + '\n… (the rest is not shown)';
      code.textContent = text;
      if (/json/.test(type)) paint(code);
      caption.append(make('button', { type: 'button', className: 'copy', textContent: 'Copy', attrs: { 'data-copy': whole } }));
      figure.append(make('pre', { tabIndex: 0, attrs: { 'aria-label': 'Response body' } }, code));
    } else if (content.size) {
      const link = make('a', { href: URL.createObjectURL(content), download: 'response', textContent: 'Download' });
      caption.append(make('span', { textContent: type }), link);
    }
    const names = [...reply.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    const headers = make('details', { className: 'sample' }, make('summary', { textContent: 'Headers' }),
      make('pre', { tabIndex: 0, attrs: { 'aria-label': 'Response headers' } }, make('code', { textContent: names })));
    return [figure, headers];
  }

  function sizeText(bytes) {
    if (bytes < 1024) return `${bytes} B`;
    if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
    return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
  }
})();
