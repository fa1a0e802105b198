"use strict";
// Everything here is a comfort: sorting and searching of tables, and a choice of colours. The page is whole without it.
(() => {
  const number = (s) => {
    const m = s.replace(/[,\s]/g, "").match(/^[<>]?([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/i);
    return m ? parseFloat(m[1]) : NaN;
  };
  const key = (row, i) => {
    const cell = row.cells[i];
    if (!cell) return "";
    const data = cell.querySelector("data");
    if (data) return data.value;
    const short = cell.querySelector("details.name > code");
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
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (!table.tHead || !body || body.rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      if (!head.textContent.trim()) return; // a button without a name cannot be told from others
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, head, i));
    });
    if (body.rows.length < 12) continue;
    const box = document.createElement("input");
    box.type = "search";
    box.placeholder = "Filter rows";
    box.setAttribute("aria-label", "Filter the rows of " + (table.parentNode.getAttribute("aria-label") || "this table"));
    let words;
    box.addEventListener("input", () => {
      words = words || [...body.rows].map((row) => [row, row.textContent.toLowerCase()]);
      const want = box.value.toLowerCase();
      for (const [row, text] of words) row.hidden = !text.includes(want);
    });
    table.parentNode.before(box);
  }
  const nav = document.querySelector("nav");
  if (nav) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Light or dark";
    button.addEventListener("click", () => {
      const root = document.documentElement.classList;
      const dark = root.contains("dark") || (!root.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
      root.toggle("dark", !dark);
      root.toggle("light", dark);
    });
    nav.append(button);
  }
  // A step: arrow keys go from mark to mark and say what it is, + and - widen the drawing.
  for (const figure of document.querySelectorAll("figure.step")) {
    const wide = figure.querySelector(".wide"), svg = wide.querySelector("svg");
    const marks = [...svg.querySelectorAll("rect")].filter((r) => r.querySelector("title"));
    if (!marks.length) continue;
    const tools = document.createElement("div"), says = document.createElement("output");
    tools.className = "tools";
    let zoom = 1, at = -1;
    const to = (z) => {
      const middle = (wide.scrollLeft + wide.clientWidth / 2) / wide.scrollWidth;
      zoom = Math.min(64, Math.max(1, z));
      svg.style.width = 100 * zoom + "%";
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
