"use strict";
// Elements, numbers and charts. Text is always set as text, so that names in logs cannot inject HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) node.append(child);
  }
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const sv = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const isNumber = (x) => typeof x === "number" && Number.isFinite(x);

/** 12345.6 as 12 346, 0.012345 as 0.0123, with a real minus. */
function number(x, digits = 3) {
  if (!isNumber(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e7 || size < 1e-4) return x.toExponential(1).replace("-", "−").replace("-", "−");
  const places = size >= 1000 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  let text = x.toFixed(Math.min(places, 6));
  if (text.includes(".")) text = text.replace(/0+$/, "").replace(/\.$/, "");
  const [whole, part] = text.replace("-", "").split(".");
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  return (x < 0 && Number(text) !== 0 ? "−" : "") + grouped + (part ? "." + part : "");
}

/** A value and half its interval, both to the digits that the interval leaves: 0.945 ± 0.010. */
function plusMinus(value, half, text) {
  if (!half || text !== number || Math.abs(value) >= 1e7 || half < 1e-4) return text(value) + (half ? ` ± ${text(half)}` : "");
  const places = Math.max(0, 1 - Math.floor(Math.log10(half)));
  return `${fixed(places)(value)} ± ${fixed(places)(half)}`;
}

const fixed = (digits) => (x) => (isNumber(x) ? x.toFixed(digits).replace("-", "−") : "–");

/** 0.123 as 12 %; with one more digit near 0 % and near 100 %. */
function percent(p) {
  if (!isNumber(p)) return "–";
  if (p > 0 && p < 0.0005) return "<\u202f0.1\u00a0%";
  const digits = p === 0 || p === 1 || (p >= 0.0995 && p < 0.9995) ? 0 : 1;
  return (100 * p).toFixed(digits) + "\u00a0%";
}

/** About n round numbers between two. */
function ticks(low, high, n) {
  const rough = (high - low) / Math.max(n, 1);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough * 0.999) * power;
  const all = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) all.push(i * step);
  return all;
}

/** Maps numbers to pixels. */
function scale(low, high, from, to, isLog) {
  const t = isLog ? Math.log10 : (x) => x;
  const [a, b] = [t(low), t(high)];
  const at = (x) => from + ((t(x) - a) / (b - a || 1)) * (to - from);
  let marks;
  if (isLog) {
    const [first, last] = [Math.ceil(a - 1e-9), Math.floor(b + 1e-9)];
    const every = Math.max(1, Math.ceil((last - first) / 6));
    marks = [];
    for (let k = first; k <= last; k += every) marks.push(10 ** k);
    if (marks.length < 3) {
      const finer = [first - 1, first, first + 1, first + 2].flatMap((k) => [1, 2, 5].map((m) => m * 10 ** k));
      marks = finer.filter((x) => x >= low && x <= high);
    }
  }
  return { at, ticks: (n) => marks || ticks(low, high, n) };
}

/** A folded table of the numbers of a chart. */
function numbersTable(header, rows, summary = "The numbers") {
  const cell = (tag) => (value, i) => el(tag, { class: i > 0 ? "n" : undefined, scope: tag === "th" ? "col" : undefined }, value);
  return el("details", {},
    el("summary", {}, summary),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": summary },
      el("table", {},
        el("thead", {}, el("tr", {}, header.map(cell("th")))),
        el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell("td"))))))));
}

/** Calls draw(width) now and whenever the width changes. */
function whenSized(host, draw) {
  let width = 0;
  const check = () => {
    const now = Math.floor(host.clientWidth);
    if (now > 0 && now !== width) draw((width = now));
  };
  new ResizeObserver(check).observe(host);
  check();
  return () => width && draw(width);
}

let charts = 0;

/**
 * Lines or dots over two axes, with bands or whiskers, a legend that hides and shows, and values under the pointer.
 * spec: { title, desc, x: {label, log, range, text}, y: {label, log, range, text}, series: [{name, color, dash, dots, hidden,
 * points: [{x, y, half, size, note}]}], marks: [{x, name}], diagonal, height }
 */
function lineChart(spec) {
  const id = "chart" + ++charts;
  const host = el("div", { class: "chart" });
  const tip = el("div", { class: "tip", hidden: true });
  const live = el("div", { class: "hidden", "aria-live": "polite" });
  const shown = spec.series.map((s) => !s.hidden);
  const text = { x: spec.x.text || number, y: spec.y.text || number };
  let cursor = null, stops = [], redraw = () => {};

  function draw(width) {
    const height = spec.height || Math.round(Math.min(400, Math.max(250, width * 0.48)));
    const box = { left: 54, right: width - 14, top: 14, bottom: height - 42 };
    const visible = spec.series.filter((_, i) => shown[i]);
    const all = visible.flatMap((s) => s.points).filter((p) => isNumber(p.x) && isNumber(p.y) && (!spec.y.log || p.y > 0));
    const ys = all.flatMap((p) => (p.half && !spec.y.log ? [p.y - p.half, p.y + p.half] : [p.y]));
    const xs = all.map((p) => p.x).concat((spec.marks || []).map((m) => m.x));
    const [x0, x1] = spec.x.range || [Math.min(...xs), Math.max(...xs)];
    let [y0, y1] = spec.y.range || [Math.min(...ys), Math.max(...ys)];
    if (!spec.y.range) {
      if (spec.y.log) [y0, y1] = [y0 / 1.3, y1 * 1.3];
      else { const pad = 0.06 * (y1 - y0) || Math.abs(y1) * 0.1 || 1; [y0, y1] = [y0 - pad, y1 + pad]; }
    }
    const sx = scale(x0, x1, box.left + 6, box.right, spec.x.log);
    const sy = scale(y0, y1, box.bottom, box.top, spec.y.log);
    const svg = sv("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: 0, "aria-labelledby": `${id}t ${id}d` },
      sv("title", { id: id + "t" }, spec.title), sv("desc", { id: id + "d" }, spec.desc + " Arrow keys read the values."));
    if (!all.length) {
      svg.append(sv("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "No lines selected: press a name above."));
      host.replaceChildren(svg, tip, live);
      stops = [];
      return;
    }
    for (const y of sy.ticks(5)) {
      svg.append(sv("line", { class: "rule", x1: box.left, x2: box.right, y1: sy.at(y), y2: sy.at(y) }),
        sv("text", { x: box.left - 8, y: sy.at(y) + 4, "text-anchor": "end" }, text.y(y)));
    }
    for (const x of sx.ticks(Math.min(8, width / 80))) {
      if (spec.x.whole && !Number.isInteger(x)) continue;
      svg.append(sv("line", { class: "axis", x1: sx.at(x), x2: sx.at(x), y1: box.bottom, y2: box.bottom + 4 }),
        sv("text", { x: sx.at(x), y: box.bottom + 18, "text-anchor": "middle" }, text.x(x)));
    }
    svg.append(sv("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
      sv("text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, spec.x.label));
    if (spec.diagonal) {
      svg.append(sv("line", { class: "guide", x1: sx.at(x0), y1: sy.at(x0), x2: sx.at(x1), y2: sy.at(x1) }));
    }
    for (const mark of spec.marks || []) {
      const right = sx.at(mark.x) < width * 0.6;
      svg.append(sv("line", { class: "axis", "stroke-dasharray": "5 4", x1: sx.at(mark.x), x2: sx.at(mark.x), y1: box.top, y2: box.bottom }),
        sv("text", { class: "strong halo", x: sx.at(mark.x) + (right ? 6 : -6), y: box.top + 10, "text-anchor": right ? "start" : "end" }, mark.name));
    }
    for (const s of [...visible].reverse()) {
      const points = s.points.filter((p) => all.includes(p));
      const place = (p, y) => `${sx.at(p.x).toFixed(1)} ${sy.at(Math.min(Math.max(y, y0), y1)).toFixed(1)}`;
      const paint = `stroke:var(--${s.color});fill:none;stroke-width:${s.color === "own" ? 2.6 : 1.8}`;
      if (!s.dots && !spec.y.log && points.some((p) => p.half)) {
        const band = [...points.map((p) => place(p, p.y + p.half)), ...[...points].reverse().map((p) => place(p, p.y - p.half))];
        svg.append(sv("path", { d: `M${band.join("L")}Z`, style: `fill:var(--${s.color});opacity:.15` }));
      }
      if (!s.dots && points.length > 1) {
        svg.append(sv("path", { d: `M${points.map((p) => place(p, p.y)).join("L")}`, style: paint, "stroke-dasharray": s.dash || undefined, "stroke-linejoin": "round" }));
      }
      for (const p of points) {
        if (!s.dots && points.length > 40) break;
        if (s.dots && p.half) {
          svg.append(sv("path", { d: `M${place(p, p.y - p.half)}L${place(p, p.y + p.half)}`, style: paint + ";opacity:.6" }));
        }
        svg.append(sv("circle", { cx: sx.at(p.x).toFixed(1), cy: sy.at(p.y).toFixed(1), r: p.size || (s.dots ? 3 : 2.4), style: `fill:var(--${p.color || s.color})` }));
      }
    }
    const overlay = sv("g", {});
    svg.append(overlay);
    host.replaceChildren(svg, tip, live);
    stops = [...new Set(all.map((p) => p.x))].sort((a, b) => a - b);

    function point(at) {
      overlay.replaceChildren();
      cursor = at;
      tip.hidden = at === null;
      if (at === null) return;
      const x = stops[at];
      const here = visible.map((s) => [s, s.points.find((p) => p.x === x && all.includes(p))]).filter(([, p]) => p);
      here.sort((a, b) => b[1].y - a[1].y);
      overlay.append(sv("line", { class: "guide", x1: sx.at(x), x2: sx.at(x), y1: box.top, y2: box.bottom }),
        here.map(([s, p]) => sv("circle", { cx: sx.at(x), cy: sy.at(p.y), r: 4.5, style: `fill:var(--${s.color});stroke:var(--card);stroke-width:1.5` })));
      const says = ([s, p]) => `${s.name} ${plusMinus(p.y, p.half, text.y)}${p.note ? ", " + p.note : ""}`;
      const head = `${spec.x.short || spec.x.label} ${text.x(x)}`;
      tip.replaceChildren(el("b", {}, head), ...here.map((h) => el("div", {}, el("i", { style: `background:var(--${h[0].color})` }), says(h))));
      const left = sx.at(x) + 14 + tip.offsetWidth > width ? sx.at(x) - tip.offsetWidth - 12 : sx.at(x) + 12;
      tip.style.left = Math.max(0, Math.min(left, width - tip.offsetWidth)) + "px";
      tip.style.top = box.top + 6 + "px";
      live.textContent = `${head}: ${here.map(says).join("; ")}`;
    }
    function near(event) {
      const at = event.clientX - svg.getBoundingClientRect().left;
      let best = 0;
      stops.forEach((x, i) => { if (Math.abs(sx.at(x) - at) < Math.abs(sx.at(stops[best]) - at)) best = i; });
      point(best);
    }
    svg.addEventListener("pointermove", near);
    svg.addEventListener("pointerdown", near);
    svg.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") point(null); });
    svg.addEventListener("blur", () => point(null));
    svg.addEventListener("keydown", (e) => {
      const to = { ArrowRight: (cursor ?? -1) + 1, ArrowLeft: (cursor ?? stops.length) - 1, Home: 0, End: stops.length - 1 }[e.key];
      if (e.key === "Escape") point(null);
      if (to === undefined) return;
      e.preventDefault();
      point(Math.max(0, Math.min(stops.length - 1, to)));
    });
  }

  const swatch = (s) => sv("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" }, s.dots
    ? sv("circle", { cx: 11, cy: 5, r: 4, style: `fill:var(--${s.color})` })
    : sv("line", { x1: 1, x2: 21, y1: 5, y2: 5, style: `stroke:var(--${s.color});stroke-width:3`, "stroke-dasharray": s.dash || undefined }));
  const legend = spec.series.length < 2 ? null : el("div", { class: "legend", role: "group", "aria-label": "Lines shown" },
    spec.series.map((s, i) => el("button", {
      type: "button", "aria-pressed": String(shown[i]),
      onclick: (e) => { shown[i] = !shown[i]; e.currentTarget.setAttribute("aria-pressed", String(shown[i])); redraw(); },
    }, swatch(s), s.name)));
  const xs = [...new Set(spec.series.flatMap((s) => s.points.map((p) => p.x)))].sort((a, b) => a - b);
  const value = (p) => (p ? plusMinus(p.y, p.half, text.y) : "");
  const figure = el("figure", { style: "margin:0" }, legend, el("div", { class: "small soft" }, spec.y.label), host,
    numbersTable([spec.x.short || spec.x.label, ...spec.series.map((s) => s.name)],
      xs.map((x) => [text.x(x), ...spec.series.map((s) => value(s.points.find((p) => p.x === x)))])));
  queueMicrotask(() => { redraw = whenSized(host, draw); });
  return figure;
}

/**
 * The range of a bar chart. A bar that is many times longer than all others would flatten them: it is
 * cut, and drawn as continuing.
 */
function barRange(bars, mark) {
  const ends = bars.map((b) => [b.value - (b.half || 0), b.value + (b.half || 0)]).concat(mark ? [[mark.at, mark.at]] : []);
  const [lows, highs] = [ends.map((e) => Math.min(0, e[0])).sort((a, b) => a - b), ends.map((e) => Math.max(0, e[1])).sort((a, b) => b - a)];
  let [low, high] = [lows[0], highs[0]];
  const rest = highs[Math.min(1, highs.length - 1)] - lows[Math.min(1, lows.length - 1)];
  if (bars.length > 2 && rest > 0 && low < lows[1] - 5 * rest) low = lows[1] - 0.35 * rest;
  if (bars.length > 2 && rest > 0 && high > highs[1] + 5 * rest) high = highs[1] + 0.35 * rest;
  return [low, high > low ? high : low + 1];
}

/** Bars with whiskers, from zero. spec: { title, desc, label, text, bars: [{name, value, half, own}], mark: {at, name} } */
function barChart(spec) {
  const id = "chart" + ++charts;
  const host = el("div", { class: "chart" });
  const text = spec.text || number;
  const bars = spec.bars.filter((b) => isNumber(b.value));
  function draw(width) {
    const narrow = width < 560;
    const row = narrow ? 46 : 34;
    const longest = Math.max(...bars.map((b) => b.name.length));
    const names = narrow ? 2 : Math.min(width * 0.34, 20 + 6.8 * longest);
    const values = 92;
    const top = spec.mark ? 24 : 6;
    const height = top + row * bars.length + 40;
    const [low, high] = barRange(bars, spec.mark);
    const linear = scale(low, high, names + (low < 0 ? 10 : 0), width - values, false);
    const s = { ...linear, at: (x) => linear.at(Math.min(high, Math.max(low, x))) };
    const svg = sv("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-labelledby": `${id}t ${id}d` },
      sv("title", { id: id + "t" }, spec.title), sv("desc", { id: id + "d" }, spec.desc));
    const bottom = height - 40;
    for (const x of s.ticks(Math.min(6, width / 110))) {
      svg.append(sv("line", { class: "rule", x1: s.at(x), x2: s.at(x), y1: top, y2: bottom }),
        sv("text", { x: s.at(x), y: bottom + 16, "text-anchor": "middle" }, text(x)));
    }
    bars.forEach((b, i) => {
      const y = top + i * row + (narrow ? 20 : 7), tall = narrow ? 18 : 20, middle = y + tall / 2;
      const [x0, x1] = [Math.min(s.at(0), s.at(b.value)), Math.max(s.at(0), s.at(b.value))];
      const says = plusMinus(b.value, b.half, text);
      const group = sv("g", { tabindex: 0, role: "listitem", "aria-label": `${b.name}: ${says}` },
        sv("title", {}, `${b.name}: ${says}`),
        sv("rect", { x: 0, y: y - (narrow ? 18 : 6), width, height: row - 2, style: "fill:transparent" }),
        sv("text", { class: b.own ? "strong" : "", x: narrow ? 2 : names - 10, y: narrow ? y - 5 : middle + 4, "text-anchor": narrow ? "start" : "end", "font-weight": b.own ? 700 : 400, "font-size": 13 }, b.name),
        sv("rect", { x: x0, y, width: Math.max(1.5, x1 - x0), height: tall, rx: 3, style: `fill:var(--${b.own ? "own" : "line5"});opacity:${b.own ? 1 : 0.75}` }));
      if (b.value < low || b.value > high) { // cut: drawn as continuing
        const x = s.at(b.value), to = b.value < low ? -1 : 1;
        group.append(sv("path", { d: `M${x - to * 9} ${y - 1}l${to * 6} ${tall / 2 + 1}l${-to * 6} ${tall / 2 + 1}`, style: "stroke:var(--card);stroke-width:3;fill:none" }));
      } else if (b.half) {
        const [l, r] = [s.at(b.value - b.half), s.at(b.value + b.half)];
        group.append(sv("path", { d: `M${l} ${middle}H${r}M${l} ${middle - 5}V${middle + 5}M${r} ${middle - 5}V${middle + 5}`, style: "stroke:var(--ink);stroke-width:1.4;fill:none" }));
      }
      const end = Math.max(s.at(0), s.at(b.value + (b.half || 0)));
      group.append(sv("text", { class: b.own ? "strong" : "", x: end + 8, y: middle + 4, "font-weight": b.own ? 700 : 400, style: "font-variant-numeric:tabular-nums" }, says));
      svg.append(group);
    });
    svg.append(sv("line", { class: "axis", x1: s.at(0), x2: s.at(0), y1: top, y2: bottom }),
      sv("text", { x: (names + width - values) / 2, y: height - 6, "text-anchor": "middle" }, spec.label));
    if (spec.mark) {
      const x = s.at(spec.mark.at), right = x < width * 0.5;
      svg.append(sv("line", { class: "axis", "stroke-dasharray": "5 4", x1: x, x2: x, y1: top - 8, y2: bottom }),
        sv("text", { class: "halo", x: x + (right ? 5 : 4), y: top - 10, "text-anchor": right ? "start" : "end" }, spec.mark.name));
    }
    host.replaceChildren(svg);
  }
  queueMicrotask(() => whenSized(host, draw));
  return el("figure", { style: "margin:0" }, host);
}

/** Longer names are placed above their bars. */
const LONG = 14;

/** Names with bars for their fractions. rows: [{name, value, share, kind, title}] */
function shareBars(rows, label) {
  const isLong = rows.some((r) => r.name.length > LONG);
  return el("div", { class: isLong ? "bars long" : "bars", role: "list", "aria-label": label },
    rows.map((r) => el("div", { class: "row " + (r.kind || ""), role: "listitem" },
      el("span", { class: "name", title: r.name }, r.name),
      el("span", { class: "track", "aria-hidden": "true" }, el("i", { style: `width:${(100 * Math.max(0, Math.min(1, r.share))).toFixed(2)}%` })),
      el("span", { class: "value" }, r.value))));
}

/** Buttons that choose between views of the same data. */
function views(names, show) {
  const host = el("div", {});
  const buttons = names.map((name, i) => el("button", { type: "button", "aria-pressed": String(i === 0), onclick: () => choose(i) }, name));
  function choose(i) {
    buttons.forEach((b, j) => b.setAttribute("aria-pressed", String(i === j)));
    host.replaceChildren(show(i));
  }
  host.append(show(0));
  return [el("div", { class: "views", role: "group", "aria-label": "What is shown" }, buttons), host];
}
