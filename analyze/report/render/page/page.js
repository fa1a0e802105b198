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
  const open = () => {
    const at = location.hash && document.getElementById(location.hash.slice(1));
    for (let e = at; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    if (at) at.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
})();
