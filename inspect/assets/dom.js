// Small helpers. Names come from whoever registered them: they are only ever set as text.

export const $ = (id) => document.getElementById(id);

// make builds an element from its name, its properties and its children. Strings become text.
export function make(name, properties = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "data") for (const [k, v] of Object.entries(value)) e.dataset[k] = v;
    else if (key in e) e[key] = value;
    else e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

// setText changes a text only if it is another one, so that nobody loses a selection and readers aloud stay quiet.
export function setText(e, text) {
  text = String(text);
  if (e.textContent !== text) e.textContent = text;
}

// table keeps a row for each item, found by its key, and its cells' texts up to date.
export function table(body, items, key, columns, decorate) {
  const rows = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  items.forEach((item, i) => {
    const k = String(key(item));
    let row = rows.get(k);
    rows.delete(k);
    if (!row) {
      row = make("tr", { data: { key: k } }, ...columns.map((c) => {
        const cell = make("td", { className: c.kind || "" });
        if (c.make) cell.append(c.make(item));
        else if (c.kind === "name") cell.append(make("span", { className: "long" }));
        return cell;
      }));
    }
    columns.forEach((c, n) => {
      const cell = row.cells[n];
      if (c.make) c.update?.(cell.firstChild, item);
      else setText(c.kind === "name" ? cell.firstChild : cell, c.text(item));
    });
    decorate?.(row, item);
    if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] || null);
  });
  for (const row of rows.values()) row.remove();
}

export const count = (n) => Number(n).toLocaleString("en");

// duration writes nanoseconds. None is what a quantile of nothing is.
export function duration(nanos) {
  if (nanos === 0) return "–";
  if (nanos < 1e3) return nanos + " ns";
  if (nanos < 1e6) return (nanos / 1e3).toPrecision(3) + " µs";
  if (nanos < 1e9) return (nanos / 1e6).toPrecision(3) + " ms";
  return (nanos / 1e9).toPrecision(3) + " s";
}

export function bytes(n) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (n < 1024) return Number(n.toPrecision(3)) + " " + unit;
    n /= 1024;
  }
  return Number(n.toPrecision(3)) + " GiB";
}

// colour is the value of a colour of the style sheet, which differs by day and by night.
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// bar shows in a small canvas how something is shared out, in the colours of the style sheet; one part may be hatched.
export function bar(canvas, parts, hatched = -1) {
  const c = canvas.getContext("2d"), all = parts.reduce((sum, [n]) => sum + n, 0) || 1;
  c.clearRect(0, 0, canvas.width, canvas.height);
  let x = 0;
  parts.forEach(([n, name], i) => {
    const width = (n / all) * canvas.width;
    c.fillStyle = colour(name);
    if (i !== hatched) c.fillRect(x, 0, width, canvas.height);
    else for (let at = x; at < x + width; at += 4) c.fillRect(at, 0, Math.min(2, x + width - at), canvas.height);
    x += width;
  });
}

// makeBar is the element for one.
export const makeBar = () => make("span", { className: "bar" }, make("canvas", { width: 144, height: 16 }));

// fit gives a canvas as many pixels as the screen has for it, and a context that measures in points.
export function fit(canvas) {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  return { c, width, height };
}
