// The page: sections in the order in which a new reader would ask.

const page = JSON.parse(document.getElementById("data").textContent);
const p = (...words) => el("p", {}, words);
const sections = [];

/** Adds a section, or how to get it; draw makes its content. */
function section(id, short, title, part, draw) {
  if (part === undefined || part === null) return;
  const missing = part.missing;
  const content = missing === undefined ? draw(part.here ?? part) : p(missing);
  sections.push({ id, short, node: el("section", { id, class: missing === undefined ? undefined : "missing", "aria-labelledby": id + "-title" }, el("h2", { id: id + "-title" }, title), content) });
}

const LINES = ["line1", "line2", "line3", "line4", "line5"];

section("earned", "Returns", "What does it earn?", page.earned, (e) => {
  const bars = (value, half) => e.policies.map((t) => ({ name: t.policy === e.own ? "this policy" : t.policy, value: t[value], half: t[half], own: t.policy === e.own }));
  const chart = (i) => barChart(i === 0
    ? { title: "Mean return of each policy", desc: "One bar for each policy, with a 95 % interval.", label: "sum of rewards in an episode", bars: bars("mean_return", "ci95") }
    : { title: "Mean discounted return of each policy", desc: "One bar for each policy, with a 95 % interval.", label: `discounted sum of rewards, γ = ${number(e.discount)}`, bars: bars("discounted_return", "discounted_ci95"),
      mark: isNumber(e.bound) ? { at: e.bound, name: "upper bound" } : null });
  const informed = e.policies.some((t) => t.policy.startsWith("QMDP"));
  return [
    e.story ? p(el("b", {}, e.domain + ": "), e.story) : null,
    p(`Mean return over ${number(e.episodes)} episodes of at most ${number(e.max_steps)} steps. Higher is better; whiskers are 95 % intervals. All policies were tested with the same seeds.`,
      informed ? " “QMDP, knows the model” was given the exact model; the others were not." : "", e.others ? " " + e.others : ""),
    views(["return", "discounted"], chart),
    numbersTable(["policy", "return", "±", "discounted", "±", "steps", "terminated"], e.policies.map((t) => [t.policy === e.own ? "this policy" : t.policy, fixed(4)(t.mean_return), fixed(4)(t.ci95), fixed(4)(t.discounted_return), fixed(4)(t.discounted_ci95), fixed(1)(t.mean_length), percent(t.terminated)])),
  ];
});

section("rounds", "Rounds", "How did it learn?", page.rounds, (rounds) => {
  const series = [{ name: "earned while sampling", color: "own", points: rounds.map((r) => ({ x: r.episodes, y: r.sampled.discounted_return, half: r.sampled.discounted_ci95, note: `round ${r.number}` })) }];
  if (rounds.some((r) => isNumber(r.value))) {
    series.push({ name: "estimated by its own plan", color: "line1", dash: "6 4", points: rounds.filter((r) => isNumber(r.value)).map((r) => ({ x: r.episodes, y: r.value })) });
  }
  return [
    p("In each round the agent samples episodes with its plans, and others to explore. Then it learns and plans anew from all episodes so far. A rising line is good. Returns while sampling are lower than those of the final policy, because the agent explores. An estimate far above the returns is too optimistic."),
    lineChart({ title: "Discounted return by round", desc: "What the agent earned while it sampled, by episodes so far.", x: { label: "episodes sampled so far", short: "episodes" }, y: { label: "discounted return of an episode" }, series }),
  ];
});

section("estimates", "From logs", "What would it earn, estimated from logs?", page.estimates, (e) => {
  const names = { pdis: "importance sampling", snpdis: "self-normalised importance sampling", dr: "doubly robust", wdr: "weighted doubly robust", fqe: "fitted-Q evaluation", model: "rollouts in its model" };
  const half = (x) => isNumber(x.low) ? (x.high - x.low) / 2 : 0;
  return [
    p(`Estimates with different kinds of error, from ${number(e.episodes)} logged episodes, over ${number(e.max_steps)} steps with discount ${number(e.discount)}. Importance sampling weights logged episodes by how probable the policy makes them; fitted-Q evaluation propagates logged rewards backwards along the policy's actions; doubly robust estimates are both; rollouts simulate the policy in its own model. `, el("b", {}, e.verdict)),
    p(e.notes.join(" ")),
    barChart({ title: "Estimated discounted return", desc: `Bars with ${percent(e.level)} intervals.`, label: "discounted return", bars: [
      { name: "what was logged", value: e.logged.value, half: half(e.logged) },
      ...e.estimates.map((x) => ({ name: `policy, by ${names[x.estimator]}`, value: x.value, half: half(x), own: true })),
    ] }),
  ];
});

section("foresight", "Predictions", "How well does it predict?", page.foresight, (f) => {
  let line = 0;
  const looks = (l) => ({
    model: () => ({ color: "own" }),
    truth: () => ({ color: "truth", dash: "7 4" }),
    baseline: () => ({ color: LINES[line++ % 4] }),
    uniform: () => ({ color: "line5", dash: "2 3", hidden: true }),
  })[l.who]();
  const looked = f.lines.map((l) => ({ ...looks(l), name: l.name, source: l.points }));
  const has = (who) => f.lines.some((l) => l.who === who);
  const chart = (i) => {
    const own = new Map(looked[0].source.map((h) => [h.horizon, h.log_likelihood]));
    const of = (h) => [
      { y: h.log_likelihood, half: h.ci95 },
      { y: h.log_likelihood / h.horizon, half: h.ci95 / h.horizon },
      { y: h.log_likelihood - own.get(h.horizon) },
    ][i];
    return lineChart({
      title: "Log-likelihood of held-out logs by horizon", desc: "One line for each predictor; higher is better.",
      x: { label: "horizon: steps from the start of an episode", short: "horizon", whole: true }, y: { label: ["mean log-probability of all observations so far, nats", "the same per step, nats", "how much better than this model, nats"][i] },
      series: looked.map((l) => ({ ...l, points: l.source.map((h) => ({ x: h.horizon, ...of(h) })) })),
    });
  };
  return [
    p(`Each line is the mean log-probability of all observations up to a step of an episode, given the actions, over ${number(f.episodes)} held-out episodes. Higher is better, and 0 is certainty. Lines fall because each further observation can only lower the probability. Bands are 95 % intervals.`),
    p(has("truth") ? "The dashed line is the exact model, the best possible predictor: the closer to it, the better. " : "", "n-grams count what followed the same last steps, and “action only” what followed the same action. A model should be above them."),
    views(["all steps", "per step", "difference"], chart),
    p(`The mean log-probability of a step is ${plusMinus(f.per_step, f.per_step_ci95, number)} nats. The table compares it with other predictors on the same steps; above 0 the model is better. The model is better or worse beyond noise if the 95 % interval does not contain 0.`),
    numbersTable(["compared with", "difference, nats per step", "±"], f.comparisons.map((c) => [c.name, fixed(4)(c.difference), isNumber(c.ci95) ? fixed(4)(c.ci95) : "–"]), "Comparison with other predictors"),
    el("p", { class: "small soft", style: "margin:.6rem 0 0" }, `The filter was lost ${number(f.lost)} times in ${number(f.steps)} steps.`,
      f.unseen > 0 ? ` ${number(f.unseen)} of them had an action or observation that was not seen in training${f.unseen > f.steps / 2 ? ": are these logs of the same system?" : "."}` : "",
      f.uncertainty ? ` The mean spread of the ensemble's predictions is ${number(f.uncertainty.spread)}${isNumber(f.uncertainty.coverage) ? `; an interval of two spreads contains the true probability in ${percent(f.uncertainty.coverage)} of them` : ""}.` : ""),
  ];
});

section("calibration", "Calibration", "Can its probabilities be trusted?", page.foresight && page.foresight.here, (f) => {
  const most = Math.max(...f.calibration.map((b) => b.predictions));
  const points = f.calibration.map((b) => ({ x: b.predicted, y: b.observed, half: b.ci95, size: 3.5 + 6 * Math.sqrt(b.predictions / most), note: `${number(b.predictions)} predictions` }));
  return [
    p("Do observations with a predicted probability of 30 % occur in 30 of 100 cases? On the diagonal, predicted and observed frequencies are equal. Above it, observations occurred more often than predicted; below it, less often. Larger dots stand for more predictions."),
    el("div", { style: "max-width:560px" }, lineChart({
      title: "Calibration", desc: "Observed frequency against predicted probability; the diagonal is perfect calibration.", diagonal: true, height: 380,
      x: { label: "predicted probability", short: "predicted", range: [0, 1], text: percent }, y: { label: "observed frequency", range: [0, 1], text: percent },
      series: [{ name: "observed", color: "own", dots: true, points }],
    })),
  ];
});

section("episodes", "Step by step", "What happens, step by step?", page.episodes, (e) => [
  p(e.source, e.acted
    ? " Before each step the policy computes the values of its actions, and its model predicts the observation. Move the slider, or press a bar."
    : " Before each step the model predicts the observation. Move the slider, or press a bar.", " Tall bars are surprising observations."),
  episodePlayer(e),
]);

section("spectrum", "Spectrum", "How large is the state?", page.spectrum, (s) => [
  p("Singular values of the learned moments, largest first. Each measures how much the future depends on the past in one direction. ",
    `The ${number(s.rank)} values to the left of the mark are kept. A flat tail is noise. If the values fall steeply only after the mark, a larger rank may help.`,
    s.states ? ` The model was then refined to a POMDP with ${number(s.states)} hidden states.` : "",
    s.all > s.values.length ? ` The first ${number(s.values.length)} of ${number(s.all)} are shown.` : ""),
  lineChart({ title: "Singular values", desc: "Singular values on a logarithmic scale, largest first, with the number that is kept.", x: { label: "number", whole: true }, y: { label: "singular value (logarithmic)", log: true },
    series: [{ name: "singular value", color: "own", dots: true, points: s.values.map((y, i) => ({ x: i + 1, y, color: i < s.rank ? "own" : "line5" })) }],
    marks: [{ x: s.rank + 0.5, name: `${s.rank} kept` }] }),
]);

section("data", "Logs", "What is in the logs?", page.data, (d) => {
  const list = (counts, label) => {
    const most = Math.max(1, ...counts.shown.map(([, n]) => n));
    const rows = counts.shown.map(([name, n]) => ({ name, value: percent(n / d.steps), share: n / most }));
    if (counts.others) rows.push({ name: `${number(counts.all - counts.shown.length)} others`, value: percent(counts.others / d.steps), share: counts.others / most });
    return el("div", {}, el("h3", {}, `${number(counts.all)} ${label}`), shareBars(rows, label));
  };
  const r = d.rewards;
  const facts = [
    ["files", d.files.map((f) => f.name).join(", ")],
    ["episodes", `${number(d.episodes)}, ${number(d.steps)} steps in total`],
    d.lengths && ["length", `${number(d.lengths.min)} to ${number(d.lengths.max)} steps, mean ${number(d.lengths.mean)}, median ${number(d.lengths.median)}`],
    ["ends", `${percent(d.terminated)} terminated, the others were truncated`],
    ["rewards", isNumber(r.mean) ? `${number(r.min)} to ${number(r.max)}, mean ${number(r.mean)}, non-zero in ${percent(r.nonzero)} of the steps` : "none"],
    ["pairs", `${number(d.pairs)} distinct pairs of action and observation`],
    d.has_propensities && ["propensities", "every step has the probability of its action"],
    d.skipped > 0 && ["skipped", `${number(d.skipped)} episodes with bad rows`],
  ].filter(Boolean);
  return [
    p("The held-out logs on which the model was tested. Percentages are of all steps."),
    el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    d.findings.length ? el("div", { style: "margin-top:14px" }, el("h3", {}, "Notes"), el("ul", { style: "margin:0;padding-left:1.2rem" }, d.findings.map((f) => el("li", {}, f)))) : null,
    el("div", { class: "columns", style: "margin-top:18px" }, list(d.actions, "actions"), list(d.observations, "observations")),
  ];
});

section("parameters", "Parameters", "With what parameters?", page.parameters.length ? page.parameters : null, (groups) => [
  p("The same parameters, logs and seed give exactly the same result."),
  groups.map((g, i) => el("details", { open: i === 0 && groups.length === 1 }, el("summary", {}, `${g.title}: ${g.list.length} parameters`),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": g.title }, el("table", {},
      el("thead", {}, el("tr", {}, ["flag", "value", "meaning"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, g.list.map((x) => el("tr", {}, el("td", {}, el("code", {}, x.flag)), el("td", {}, x.value), el("td", { class: "wide" }, x.meaning)))))))),
]);

section("provenance", "Origin", "Where does this come from?", page.provenance, (rows) => el("dl", {}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));

section("words", "Glossary", "Glossary", {}, () => el("dl", {}, [
  ["episode", "a sequence of actions and observations from a start to an end"],
  ["observation", "what is seen after an action; the true state of the system stays hidden"],
  ["nats", "unit of natural log-probability: −0.7 is a probability of 50 %, −2.3 of 10 %"],
  ["horizon", "number of steps from the start of an episode that are predicted together"],
  ["n-gram", "a table of what followed the same last steps in the logs; it backs off to fewer steps where counts are small"],
  ["predictive state", "a vector that summarises the past, from which the probabilities of all futures are computed"],
  ["POMDP", "partially observable Markov decision process: a model with hidden states, about which observations give partial information"],
  page.kind === "model" ? null : ["policy", "a rule that chooses an action, given the episode so far"],
  page.kind === "model" ? null : ["discounted", "later rewards count less, by a factor γ per step"],
].filter(Boolean).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));

const THEMES = ["auto", "light", "dark"];
function themeButton() {
  let theme = "auto";
  try { theme = localStorage.getItem("foretell-theme") || theme; } catch { /* not every browser keeps things for files */ }
  const button = el("button", { type: "button", onclick: () => set(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]) });
  function set(to) {
    theme = to;
    if (to === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = to;
    button.textContent = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" }[to];
    button.setAttribute("aria-label", `Colours: ${to}. Press to change.`);
    try { localStorage.setItem("foretell-theme", to); } catch { /* as above */ }
  }
  set(THEMES.includes(theme) ? theme : "auto");
  return button;
}

const kinds = { model: "a model", policy: "a policy", run: "a run" };
document.getElementById("page").append(
  el("header", {},
    el("div", { class: "top" }, el("div", { class: "brand" }, "foretell ", el("span", {}, `· report on ${kinds[page.kind]}`)), themeButton()),
    el("h1", {}, page.title),
    page.about.map((sentence) => p(sentence)),
    el("ul", { class: "numbers" }, page.headlines.map((h) => el("li", {}, el("b", {}, h.value), el("span", {}, h.label), el("i", {}, h.note))))),
  el("nav", { "aria-label": "Sections" }, el("ul", {}, sections.map((s) => el("li", {}, el("a", { href: "#" + s.id }, s.short))))),
  page.warnings.length ? el("div", { class: "warnings", role: "note" }, el("h2", {}, "Warnings"), el("ul", {}, page.warnings.map((w) => el("li", {}, w)))) : "",
  el("main", {}, sections.map((s) => s.node)),
  el("footer", {}, "Made by foretell. This page is one file: it needs no network and sends nothing anywhere."));
