// Episodes step by step: a strip of surprises, a slider, and the predictions and values at its step.

/** Surprise, −ln p: 0 for a probability of 1, 2.3 for 10 %. */
const surprise = (p) => (isNumber(p) ? -Math.log(Math.max(p, 1e-12)) : null);

/** Bars of the surprise at each step, which can be pressed. */
function strip(steps, choose) {
  const host = el("div", { class: "chart strip" });
  const heights = steps.map((s) => surprise(s.given));
  const top = Math.max(1, ...heights.filter(isNumber));
  let now = 0, redraw = () => {};
  function draw(width) {
    const height = 84, bottom = 66, left = 34, room = (width - left) / steps.length;
    const svg = sv("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Surprise of each step; the slider below moves through them" });
    for (const y of ticks(0, top, 2)) {
      const at = bottom - (y / top) * 56;
      svg.append(sv("line", { class: "rule", x1: left, x2: width, y1: at, y2: at }), sv("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, number(y)));
    }
    steps.forEach((s, i) => {
      const tall = Math.max(2, ((heights[i] ?? 0) / top) * 56);
      svg.append(sv("rect", {
        x: (left + i * room + room * 0.12).toFixed(1), width: Math.max(1, room * 0.76).toFixed(1), y: (bottom - tall).toFixed(1), height: tall.toFixed(1), rx: 2,
        style: `fill:var(--${i === now ? "hit" : "line5"});opacity:${i === now ? 1 : 0.6}`,
      }, sv("title", {}, `step ${i + 1}: ${s.action}, then ${s.observation}`)));
    });
    const every = Math.max(1, Math.ceil(26 / room));
    for (let i = 0; i < steps.length; i += every) {
      svg.append(sv("text", { x: left + (i + 0.5) * room, y: bottom + 15, "text-anchor": "middle" }, i + 1));
    }
    const press = (e) => choose(Math.max(0, Math.min(steps.length - 1, Math.floor((e.clientX - svg.getBoundingClientRect().left - left) / room))));
    svg.addEventListener("pointerdown", press);
    host.replaceChildren(svg);
  }
  queueMicrotask(() => { redraw = whenSized(host, draw); });
  return { host, move: (i) => { now = i; redraw(); } };
}

/** A drawing in which the agent, @, is highlighted. */
function marked(text) {
  return text.split(/(@)/).map((part) => (part === "@" ? el("b", { class: "hit" }, part) : part));
}

/** Predictions and values before a step, and the outcome. */
function facts(episode, step, i, about) {
  const cards = [];
  const card = (title, ...content) => cards.push(el("div", {}, el("h3", {}, title), content));
  if (step.expected) {
    const listed = step.expected.map(([name, p]) => ({ name, p }));
    const happened = listed.find((row) => row.name === step.observation);
    const rest = Math.max(0, 1 - listed.reduce((sum, row) => sum + row.p, 0) - (happened ? 0 : step.given || 0));
    if (!happened) listed.push({ name: step.observation, p: step.given || 0 });
    const rows = listed.map((row) => ({ name: row.name, share: row.p, value: percent(row.p), kind: row.name === step.observation ? "hit" : "" }));
    if (rest > 0.001) rows.push({ name: "all others", share: rest, value: percent(rest) });
    card(`Predicted after ${step.action}`, shareBars(rows, "Predicted observations"),
      el("p", { class: "small soft", style: "margin:.5rem 0 0" }, "Coloured: the actual observation.",
        isNumber(step.truth) ? ` Its probability in the exact model is ${percent(step.truth)}.` : "", step.is_new ? " It was not seen in training." : "",
        step.is_lost ? " The filter was lost here and restarted from a default state." : ""));
  }
  if (step.values) {
    const known = step.values.filter(isNumber);
    const [low, high] = [Math.min(0, ...known), Math.max(...known, 0)];
    const best = Math.max(...known);
    const rows = about.actions.map((name, a) => ({
      name, value: fixed(3)(step.values[a]), share: isNumber(step.values[a]) ? (step.values[a] - low) / (high - low || 1) : 0,
      kind: step.values[a] === best && name === (step.advised || step.action) ? "best" : "",
    }));
    card("Value of each action", shareBars(rows, "Value of each action"),
      step.advised && step.advised !== step.action
        ? el("p", { class: "small soft", style: "margin:.5rem 0 0" }, `The policy would have taken ${step.advised}; the logged action is ${step.action}.`) : null);
  }
  if (step.belief) {
    card("Belief", shareBars(step.belief.map(([name, p]) => ({ name, share: p, value: percent(p) })), "Hidden states"),
      el("p", { class: "small soft", style: "margin:.5rem 0 0" }, "Hidden states of the refined model, most probable first."));
  }
  const before = i === 0 ? episode.picture : episode.steps[i - 1].picture;
  if (before || step.picture) {
    const map = (when, text) => (text ? el("div", { style: "max-width:100%" }, el("div", { class: "small soft" }, when), el("pre", { class: "map" }, marked(text))) : null);
    card("Hidden state", el("div", { class: "maps" }, map("before", before), map("after", step.picture)),
      el("p", { class: "small soft", style: "margin:.5rem 0 0" }, "The true state of the system, which the policy does not see.", `${before}${step.picture}`.includes("@") ? " @ is the agent." : ""));
    cards[cards.length - 1].className = "whole";
  }
  return el("div", { class: "facts" }, cards);
}

function stepsTable(episode, at, choose) {
  const rows = episode.steps.map((s, i) => el("tr", { class: i === at ? "now" : undefined, onclick: () => choose(i) },
    [i + 1, s.action, s.observation, percent(s.given), fixed(2)(surprise(s.given)), isNumber(s.reward) ? number(s.reward) : "–"]
      .map((value, k) => el("td", { class: k === 0 || k > 2 ? "n" : "mono" }, value))));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All steps" },
    el("table", {}, el("thead", {}, el("tr", {}, ["step", "action", "observation", "predicted", "surprise", "reward"]
      .map((name, k) => el("th", { class: k === 0 || k > 2 ? "n" : undefined, scope: "col" }, name)))), el("tbody", {}, rows)));
}

/** Tabs of episodes, each with its player. */
function episodePlayer(about) {
  const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Episodes" });
  const body = el("div", {});
  let timer = null;
  const stop = () => { clearInterval(timer); timer = null; };

  function show(index) {
    stop();
    const episode = about.list[index];
    [...tabs.children].forEach((tab, i) => tab.setAttribute("aria-selected", String(i === index)));
    const detail = el("div", {}), table = el("div", {}), story = el("p", { class: "story", "aria-live": "polite" });
    const slider = el("input", { type: "range", min: 1, max: episode.steps.length, value: 1, step: 1, "aria-label": "Step", oninput: () => move(slider.value - 1) });
    const surprises = episode.steps.some((s) => isNumber(s.given)) ? strip(episode.steps, (i) => move(i)) : null;
    let at = -1;
    function move(i) {
      if (i === at) return;
      at = i;
      slider.value = i + 1;
      slider.setAttribute("aria-valuetext", `step ${i + 1} of ${episode.steps.length}`);
      const step = episode.steps[i];
      story.replaceChildren(`Step ${i + 1} of ${episode.steps.length}: `, "action ", el("b", {}, step.action), ", ",
        "observation ", el("b", { class: "hit" }, step.observation),
        step.words && step.words !== step.observation + "." ? ` (${step.words.replace(/\.$/, "")})` : "",
        isNumber(step.given) ? `, predicted with ${percent(step.given)}` : "", ".",
        step.reward ? el("span", {}, " Reward ", el("b", {}, number(step.reward)), ".") : "");
      detail.replaceChildren(facts(episode, step, i, about));
      table.replaceChildren(stepsTable(episode, i, move));
      if (surprises) surprises.move(i);
    }
    const play = el("button", { type: "button", onclick: () => {
      if (timer) { stop(); play.textContent = "Play"; return; }
      if (at === episode.steps.length - 1) move(0);
      play.textContent = "Stop";
      timer = setInterval(() => {
        if (at + 1 < episode.steps.length) move(at + 1);
        else { stop(); play.textContent = "Play"; }
      }, 900);
    } }, "Play");
    body.replaceChildren(
      el("p", { class: "soft small" }, `This episode ${episode.end} after ${episode.steps.length + episode.left_out} steps`,
        isNumber(episode.total) ? `, with a total reward of ${number(episode.total)}.` : ".",
        episode.left_out ? ` The first ${episode.steps.length} are shown.` : ""),
      surprises ? el("div", { class: "small soft" }, "surprise, −ln p: 0 for a probability of 1, 2.3 for 10 %, 4.6 for 1 %") : "", surprises ? surprises.host : "",
      el("div", { class: "player" },
        el("button", { type: "button", "aria-label": "Step back", onclick: () => move(Math.max(0, at - 1)) }, "‹"), slider,
        el("button", { type: "button", "aria-label": "Next step", onclick: () => move(Math.min(episode.steps.length - 1, at + 1)) }, "›"), play),
      story, detail, el("details", {}, el("summary", {}, "All steps of this episode"), table));
    move(0);
  }

  about.list.forEach((episode, i) => {
    const total = isNumber(episode.total) ? `, ${number(episode.total)}` : "";
    tabs.append(el("button", { type: "button", role: "tab", "aria-selected": "false", onclick: () => show(i) },
      `Episode ${i + 1} `, el("small", {}, `${episode.steps.length + episode.left_out} steps${total}`)));
  });
  if (about.list.length) show(0);
  return [tabs, body];
}
