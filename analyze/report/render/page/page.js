"use strict";
// Everything here is a comfort: sorting, searching and copying of tables, the choice of columns and colours, zooming into a
// flame graph. The page is whole without it.
(() => {
  const make = (tag, text, more) => Object.assign(document.createElement(tag), { textContent: text }, more);
  const button = (text, click) => {
    const b = make("button", text, { type: "button" });
    b.addEventListener("click", () => click(b));
    return b;
  };
  const factor = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15, kFLOP: 1e3, MFLOP: 1e6, GFLOP: 1e9, TFLOP: 1e12, PFLOP: 1e15, EFLOP: 1e18 };
  const number = (s) => {
    const m = s.replace(/[,▲▼]/g, "").trim().match(/^[<>]?\s*([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-zµA-Z]+)?/i);
    return m ? parseFloat(m[1]) * (factor[m[2]] || 1) : NaN;
  };
  // A long name is on the page in full once; wherever else it stands it is shown when the pointer asks for it, and copied.
  const wholes = new Map();
  for (const d of document.querySelectorAll("details.name")) wholes.set(d.firstElementChild.textContent, d.lastElementChild.textContent);
  document.addEventListener("mouseover", (e) => {
    const again = e.target.closest && e.target.closest("code.again");
    if (again && !again.title) again.title = wholes.get(again.textContent) || "";
  });
  const full = (cell) => {
    if (!cell) return "";
    const parts = cell.cloneNode(true);
    for (const d of parts.querySelectorAll("details.name")) d.replaceWith(d.lastElementChild.textContent);
    for (const c of parts.querySelectorAll("code.again")) c.textContent = wholes.get(c.textContent) || c.textContent;
    return parts.textContent.trim();
  };
  const key = (row, i) => {
    const cell = row.cells[i];
    if (!cell) return "";
    const data = cell.querySelector("data");
    if (data) return data.value;
    const short = cell.querySelector("details.name > summary");
    return (short || cell).textContent.trim();
  };
  const sort = (table, head, i) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, at) => ({ row, at, text: key(row, i) }));
    for (const r of rows) r.num = number(r.text);
    const numeric = rows.filter((r) => !isNaN(r.num)).length * 2 > rows.length;
    const down = head.getAttribute("aria-sort") === "descending" ? false : numeric || head.getAttribute("aria-sort") === "ascending";
    rows.sort((a, b) => {
      let d;
      if (numeric) {
        if (isNaN(a.num) || isNaN(b.num)) return isNaN(a.num) - isNaN(b.num) || a.at - b.at;
        d = a.num - b.num;
      } else d = a.text.localeCompare(b.text);
      return (down ? -d : d) || a.at - b.at;
    });
    for (const th of head.parentNode.cells) th.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map((r) => r.row));
  };
  const copy = async (text, b) => {
    const was = b.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    b.textContent = "Copied";
    setTimeout(() => { b.textContent = was; }, 1500);
  };
  for (const c of document.querySelectorAll("p.command")) c.append(button("Copy", (b) => copy(c.firstElementChild.textContent, b)));
  // What is in sight of a table: its head, its rows that are not filtered away, its foot; its columns that are shown.
  const grid = (table) => {
    const shown = (cell) => getComputedStyle(cell).display !== "none";
    const titles = [...table.tHead.rows[0].cells].filter(shown).map((c) => c.textContent.trim());
    const rows = [...table.tBodies[0].rows].filter((r) => !r.hidden);
    return [titles, ...[...rows, ...(table.tFoot ? table.tFoot.rows : [])].map((r) => [...r.cells].filter(shown).map(full))];
  };
  const line = (s) => s.replace(/\s+/g, " ");
  const tsv = (rows) => rows.map((r) => r.map(line).join("\t")).join("\n") + "\n";
  const code = (s) => line(s).replace(/[\\`*_{}[\]<>()#+!|@~&:-]/g, "\\$&");
  const markdown = (rows) => [rows[0], rows[0].map(() => "---"), ...rows.slice(1)].map((r, i) => "| " + r.map(i === 1 ? String : code).join(" | ") + " |").join("\n") + "\n";

  const tables = [];
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (!table.tHead || !body || body.rows.length < 2) continue;
    const buttons = [];
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      if (!head.textContent.trim()) return; // a button without a name cannot be told from others
      const b = button("", () => sort(table, head, i));
      b.append(...head.childNodes);
      b.tabIndex = buttons.length ? -1 : 0; // one stop of the tab key for all; arrows go from one to the next
      buttons.push(b);
      head.append(b);
    });
    table.tHead.addEventListener("keydown", (e) => {
      const to = buttons[buttons.indexOf(e.target) + ({ ArrowRight: 1, ArrowLeft: -1 }[e.key] || NaN)];
      if (to) to.focus();
    });
    if (buttons.length && table.parentElement.className === "scroll") table.parentElement.removeAttribute("tabindex");
  }
  for (const box of document.querySelectorAll("div.table")) {
    const table = box.querySelector("table"), body = table.tBodies[0], tools = box.querySelector(".tools");
    const name = (box.querySelector(".scroll").getAttribute("aria-label") || "this table").replace(/^Table: /, "");
    const all = body ? [...body.rows] : [];
    const t = { box, all, own: "", words: null, count: null };
    tables.push(t);
    if (!table.tHead) continue;
    const more = make("span", "", { className: "more", hidden: true }), dots = button("\u22ef", () => {
      more.hidden = !more.hidden;
      dots.setAttribute("aria-expanded", String(!more.hidden));
    });
    dots.className = "dots";
    dots.setAttribute("aria-expanded", "false");
    dots.setAttribute("aria-label", "Filter, columns and copies of " + name);
    more.append(...tools.childNodes);
    if (all.length >= 12) {
      const filter = make("input", "", { type: "search", placeholder: "Filter rows" });
      filter.setAttribute("aria-label", "Filter the rows of " + name);
      filter.addEventListener("input", () => { t.own = filter.value.toLowerCase(); narrow(t); });
      t.count = make("output", "");
      more.prepend(filter, t.count);
    }
    const few = /^p\d/.test(table.className);
    if (few || table.classList.contains("sides")) {
      table.classList.add("few");
      const n = few ? [...table.tHead.rows[0].cells].filter((c) => getComputedStyle(c).display === "none").length : 2;
      const label = n === 1 ? "1 more column" : n + " more columns";
      const wider = button(label, (b) => {
        const off = table.classList.toggle("few");
        b.setAttribute("aria-expanded", String(!off));
        b.textContent = off ? label : "Fewer columns";
      });
      if (!few) wider.className = "phone"; // wider windows have them all
      wider.setAttribute("aria-expanded", "false");
      wider.setAttribute("aria-label", label + " of " + name);
      more.append(wider);
    }
    if (all.length >= 2) {
      for (const [what, write] of [["TSV", tsv], ["Markdown", markdown]]) {
        const b = button("Copy " + what, (b) => copy(write(grid(table)), b));
        b.setAttribute("aria-label", "Copy " + what + " of " + name);
        more.append(b);
      }
    }
    if (more.childNodes.length && all.length > 4) tools.append(more, dots);
  }
  // A name in a box is as long as there is room for, whatever the width of the window and of the drawing.
  const letter = 6.6, bold = 7.6;
  const fit = (e) => {
    for (const t of e.querySelectorAll("svg svg > text")) {
      const whole = t.dataset.whole || (t.dataset.whole = t.textContent);
      const room = Math.floor((t.parentNode.width.baseVal.value - 6) / (t.closest(".bars") ? bold : letter));
      t.textContent = whole.length <= room ? whole : room < 4 ? "" : whole.slice(0, room - 1) + "\u2026";
    }
  };
  const fitAll = () => { for (const f of document.querySelectorAll("figure")) if (f.checkVisibility()) fit(f); };
  addEventListener("resize", fitAll);
  document.addEventListener("toggle", (e) => fit(e.target), true);
  fitAll();
  // One kernel in its table, in the step and in the flame graph: pointing at one lights the others. Names are shortened in
  // the middle, so that both ends tell them apart.
  const alike = (name) => name.replace(/^#\d+ /, "").replace(/^(.{24}).*(.{8})$/, "$1|$2");
  const same = new Map(), nameOf = new Map();
  const known = (e, name) => {
    const k = alike(name);
    nameOf.set(e, k);
    same.has(k) ? same.get(k).push(e) : same.set(k, [e]);
  };
  const drawn = [];
  for (const title of document.querySelectorAll("figure.step rect > title, svg.flame title")) {
    const e = title.closest("svg.flame > svg") || title.parentNode, name = title.textContent.split(": ")[0];
    known(e, name);
    drawn.push({ e, name: name.toLowerCase(), figure: e.closest("figure") });
  }
  for (const row of document.querySelectorAll(".table tbody tr")) {
    const code = row.querySelector("code.name, details.name > summary > code");
    if (code) known(row, code.textContent);
  }
  let bright = [];
  const light = (e) => {
    for (const b of bright) b.classList.remove("lit");
    bright = e && nameOf.has(e) && same.get(nameOf.get(e)).length > 1 ? same.get(nameOf.get(e)) : [];
    for (const b of bright) b.classList.add("lit");
  };
  document.addEventListener("pointerover", (e) => light(e.target.closest && e.target.closest("svg.flame > svg, figure.step rect, .table tbody tr")));
  // A click into a flame graph makes a box as wide as the drawing; the search marks boxes and says what they add up to.
  for (const flame of document.querySelectorAll("svg.flame")) {
    const boxes = [...flame.children].map((e) => ({ e, x: parseFloat(e.getAttribute("x")), w: parseFloat(e.getAttribute("width")),
      y: +e.getAttribute("y"), name: e.querySelector("title").textContent }));
    const zoom = (to) => {
      const { x, w } = to || { x: 0, w: 100 };
      for (const b of boxes) {
        const out = b.x + b.w <= x + 1e-6 || b.x >= x + w - 1e-6;
        b.e.style.display = out ? "none" : "";
        const from = Math.max(b.x, x), end = Math.min(b.x + b.w, x + w);
        b.e.setAttribute("x", ((from - x) / w) * 100 + "%");
        b.e.setAttribute("width", Math.max(0, ((end - from) / w) * 100) + "%");
        if (!out && !b.e.querySelector("text") && (end - from) / w > 0.03) {
          const t = document.createElementNS("http://www.w3.org/2000/svg", "text");
          t.setAttribute("x", "4");
          t.setAttribute("y", "14");
          b.e.append(t);
        }
        const t = b.e.querySelector("text");
        if (t) t.dataset.whole = b.name.split(": ")[0];
      }
      fit(flame.parentNode);
      reset.hidden = !to;
    };
    const reset = button("Whole graph", () => zoom(null));
    reset.hidden = true;
    for (const b of boxes) b.e.addEventListener("click", () => zoom(b));
    const search = make("input", "", { type: "search", placeholder: "Find in the graph" }), found = make("output", "");
    search.setAttribute("aria-label", "Find ranges and kernels in the graph");
    search.addEventListener("input", () => {
      const want = search.value.trim().toLowerCase();
      let covered = 0, end = -1;
      const hits = boxes.filter((b) => want && b.name.toLowerCase().includes(want));
      for (const b of boxes) b.e.classList.toggle("miss", want !== "" && !hits.includes(b));
      for (const b of hits.sort((p, q) => p.x - q.x || q.w - p.w)) if (b.x >= end - 1e-6) { covered += b.w; end = b.x + b.w; }
      found.textContent = want ? hits.length + (hits.length === 1 ? " box, " : " boxes, ") + covered.toFixed(1) + " % of the graph" : "";
    });
    search.addEventListener("keydown", (e) => {
      if (e.key === "Enter") zoom(boxes.find((b) => search.value.trim() && b.name.toLowerCase().includes(search.value.trim().toLowerCase())));
    });
    const tools = make("div", "", { className: "tools" });
    tools.append(search, found, reset);
    flame.before(tools);
  }
  let everywhere = "";
  // narrow hides the rows that the table's own filter or the search over all tables does not match.
  const narrow = (t) => {
    t.words = t.words || t.all.map((row) => row.textContent.toLowerCase());
    let n = 0;
    t.all.forEach((row, i) => {
      const hit = t.words[i].includes(t.own) && t.words[i].includes(everywhere);
      if (row.hidden === hit) row.hidden = !hit;
      if (hit) n++;
    });
    if (t.count) t.count.textContent = !t.own && !everywhere ? "" : n === 0 ? "Nothing found in " + t.all.length + " rows" : n + " of " + t.all.length + " rows";
    return n;
  };
  const nav = document.querySelector("nav");
  if (nav) {
    const links = nav.querySelector("details");
    const small = matchMedia("(max-width:60rem)");
    if (links && small.matches) links.open = false;
    if (tables.some((t) => t.all.length > 2)) {
      const search = make("input", "", { type: "search", placeholder: "Search tables, figures  /" }), found = make("output", "");
      search.setAttribute("aria-label", "Search all tables and figures");
      const opened = [];
      let wait;
      const look = () => {
        everywhere = search.value.trim().toLowerCase();
        for (const d of opened.splice(0)) d.open = false;
        let rows = 0, in_ = 0;
        const keep = new Set();
        for (const t of tables) {
          const n = narrow(t);
          t.box.hidden = everywhere !== "" && n === 0;
          if (!everywhere || n === 0) continue;
          rows += n;
          in_++;
          keep.add(t.box.closest("section, header"));
          for (let e = t.box.parentElement; e; e = e.parentElement) if (e.tagName === "DETAILS" && !e.open) { e.open = true; opened.push(e); }
        }
        let marks = 0;
        const figures = new Set();
        for (const d of drawn) {
          const hit = everywhere !== "" && d.name.includes(everywhere);
          d.e.classList.toggle("miss", everywhere !== "" && !hit);
          if (!hit) continue;
          marks++;
          figures.add(d.figure);
          keep.add(d.figure.closest("section, header"));
        }
        for (const s of document.querySelectorAll("main > section")) s.hidden = everywhere !== "" && !keep.has(s);
        const of = (n, one) => n + " " + one + (n === 1 ? "" : "s");
        const parts = [];
        if (rows) parts.push(of(rows, "row") + " in " + of(in_, "table"));
        if (marks) parts.push(of(marks, "mark") + " in " + of(figures.size, "figure"));
        found.textContent = !everywhere ? "" : parts.join(", ") || "Nothing found";
      };
      search.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(look, 120); });
      search.addEventListener("keydown", (e) => { if (e.key === "Escape") { search.value = ""; look(); search.blur(); } });
      addEventListener("keydown", (e) => {
        if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
        e.preventDefault();
        search.focus();
      });
      nav.prepend(search, found);
    }
    const root = document.documentElement.classList, stored = "explain-colours";
    try {
      const was = localStorage.getItem(stored);
      if (was === "dark" || was === "light") root.add(was);
    } catch { /* a browser that keeps nothing */ }
    nav.append(button("Light or dark", () => {
      const dark = root.contains("dark") || (!root.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
      root.toggle("dark", !dark);
      root.toggle("light", dark);
      try { localStorage.setItem(stored, dark ? "light" : "dark"); } catch { /* not remembered */ }
    }));
    const by = new Map([...nav.querySelectorAll("a")].map((a) => [a.hash.slice(1), a]));
    const heads = [...document.querySelectorAll("main h2[id]")].filter((h) => by.has(h.id));
    if (heads.length && "IntersectionObserver" in window) {
      let now;
      const seen = new Set();
      const watch = new IntersectionObserver((list) => {
        for (const e of list) e.isIntersecting ? seen.add(e.target) : seen.delete(e.target);
        const head = heads.find((h) => seen.has(h.parentElement));
        const a = head && by.get(head.id);
        if (a === now) return;
        if (now) now.removeAttribute("aria-current");
        if (a) a.setAttribute("aria-current", "true");
        if (a && !small.matches) {
          const r = a.getBoundingClientRect(), n = nav.getBoundingClientRect();
          if (r.top < n.top || r.bottom > n.bottom) nav.scrollTop += r.top - n.top - n.height / 2;
        }
        now = a;
      }, { rootMargin: "-15% 0px -70% 0px" });
      for (const h of heads) watch.observe(h.parentElement);
    }
  }
  // A step: arrow keys go from mark to mark and say what it is, + and - widen the drawing.
  for (const figure of document.querySelectorAll("figure.step")) {
    const wide = figure.querySelector(".wide"), svg = wide.querySelector("svg");
    const marks = [...svg.querySelectorAll("rect")].filter((r) => r.querySelector("title"));
    if (!marks.length) continue;
    const tools = document.createElement("div"), says = document.createElement("output");
    tools.className = "tools";
    let zoom = 1, at = -1;
    const whole = +svg.dataset.length;
    // The wider the drawing, the closer its ticks: about seven in sight.
    const ticks = () => {
      const least = whole / 7 / zoom, ten = 10 ** Math.floor(Math.log10(least)), step = ten * [1, 2, 5, 10].find((m) => ten * m >= least);
      const [size, unit] = [[1e9, " s"], [1e6, " ms"], [1e3, " \u00b5s"], [1, " ns"]].find(([size]) => size <= Math.max(step, whole / 100)) || [1, " ns"];
      for (const old of svg.querySelectorAll("text.tick, line.grid")) old.remove();
      for (let v = 0; v <= whole; v += step) {
        const x = (100 * v) / whole + "%";
        const line = document.createElementNS(svg.namespaceURI, "line"), text = document.createElementNS(svg.namespaceURI, "text");
        for (const [k, to] of Object.entries({ class: "grid", x1: x, x2: x, y1: 14, y2: "100%" })) line.setAttribute(k, to);
        for (const [k, to] of Object.entries({ class: "tick", x, y: 11, "text-anchor": v === 0 ? "start" : v > 0.97 * whole ? "end" : "middle" })) text.setAttribute(k, to);
        text.textContent = v === 0 ? "0" : +(v / size).toPrecision(6) + unit;
        svg.prepend(line, text);
      }
    };
    const to = (z) => {
      const middle = (wide.scrollLeft + wide.clientWidth / 2) / wide.scrollWidth;
      zoom = Math.min(64, Math.max(1, z));
      svg.style.width = 100 * zoom + "%";
      ticks();
      fit(figure);
      wide.scrollLeft = middle * wide.scrollWidth - wide.clientWidth / 2;
    };
    for (const [label, name, by] of [["+", "Widen the drawing", 2], ["\u2212", "Narrow the drawing", 0.5]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.setAttribute("aria-label", name);
      button.addEventListener("click", () => to(zoom * by));
      tools.append(button);
    }
    const show = (i) => {
      if (at >= 0) marks[at].classList.remove("at");
      at = i;
      marks[at].classList.add("at");
      says.textContent = marks[at].querySelector("title").textContent;
      light(marks[at]);
      const box = marks[at].getBoundingClientRect(), frame = wide.getBoundingClientRect();
      if (box.left < frame.left || box.right > frame.right) wide.scrollLeft += box.left - frame.left - wide.clientWidth / 3;
    };
    tools.append(says);
    figure.insertBefore(tools, wide);
    says.textContent = "Point at a mark, or use the arrow keys here.";
    wide.tabIndex = 0;
    wide.setAttribute("role", "group");
    wide.setAttribute("aria-label", figure.querySelector("figcaption").textContent);
    svg.addEventListener("pointerover", (e) => {
      const i = marks.indexOf(e.target);
      if (i >= 0) show(i);
    });
    wide.addEventListener("keydown", (e) => {
      const n = marks.length, go = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: n - 1 }[e.key];
      if (go !== undefined) show(Math.min(n - 1, Math.max(0, go)));
      else if (e.key === "+") to(zoom * 2);
      else if (e.key === "-") to(zoom / 2);
      else return;
      e.preventDefault();
    });
  }
  const open = () => {
    const at = location.hash && document.getElementById(location.hash.slice(1));
    for (let e = at; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    if (at) at.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
})();
