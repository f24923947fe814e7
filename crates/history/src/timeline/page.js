"use strict";
(() => {
  const $ = id => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const {phases, nodes, pools, reasons} = data;
  const lives = data.lives.map(([node, pool, begin, spans, ending, reason, jobs, marks, machine]) => {
    let end = begin;
    for (let i = 1; i < spans.length; i += 2) end += spans[i];
    return {node, pool, begin, end, spans, ending, reason, jobs, marks, machine};
  });
  const jobs = data.jobs.map(([id, label, waits, runs, ends, on, state]) => ({id, label, waits, runs, ends, on, state}));
  // Slurm's accounts know jobs that the log does not.
  const livesOf = nodes.map(() => []);
  for (const life of lives) livesOf[life.node].push(life);
  for (const job of jobs) {
    if (job.runs === null) continue;
    for (const life of job.on.flatMap(node => livesOf[node])) {
      const meets = life.begin < (job.ends ?? data.length) && job.runs < life.end;
      if (meets && !life.jobs.includes(job.id)) life.jobs.push(job.id);
    }
  }
  const AXIS = 26, LANE = 18, BAR = 12, GAP = 12, JOBS = 220;
  let JOB = 16;
  const canvas = $("view"), box = $("scroll"), pen = canvas.getContext("2d");
  let gutter = 120, view = {from: 0, to: Math.max(data.length, 1)}, lanes = [], bars = [], jobRows = 0, drawn = {};

  // Words.
  const length = ms => {
    const s = Math.floor(ms / 1000), two = (a, x, b, y) => `${a} ${x} ${b} ${y}`;
    if (s < 1) return `${Math.round(ms)} ms`;
    if (s < 10) return `${(ms / 1000).toFixed(1)} s`;
    if (s < 120) return `${s} s`;
    if (s < 7200) return two(Math.floor(s / 60), "min", s % 60, "s");
    if (s < 172800) return two(Math.floor(s / 3600), "h", Math.floor(s % 3600 / 60), "min");
    return two(Math.floor(s / 86400), "d", Math.floor(s % 86400 / 3600), "h");
  };
  const pad = n => String(n).padStart(2, "0");
  const clock = (at, exact) => {
    const d = new Date(data.from + at);
    return `${pad(d.getHours())}:${pad(d.getMinutes())}${exact ? ":" + pad(d.getSeconds()) : ""}`;
  };
  const day = at => {
    const d = new Date(data.from + at);
    return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`;
  };
  const many = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

  // What is shown: lanes whose lives match every word of the filter.
  const matches = (words, life) => words.every(word => {
    const [, kind, text] = /^(?:(node|job|pool):)?(.*)$/.exec(word);
    const is = {
      node: () => nodes[life.node].toLowerCase().includes(text),
      job: () => life.jobs.some(job => String(job) === text),
      pool: () => life.pool >= 0 && pools[life.pool].toLowerCase().includes(text),
    };
    return kind ? is[kind]() : is.node() || is.job() || is.pool();
  });
  const select = () => {
    const words = $("filter").value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    const pool = $("pool").value === "" ? -1 : Number($("pool").value);
    const some = words.length > 0 || pool >= 0;
    const byNode = new Map();
    for (const life of lives) {
      life.shown = !some || ((pool < 0 || life.pool === pool) && matches(words, life));
      if (!byNode.has(life.node)) byNode.set(life.node, []);
      byNode.get(life.node).push(life);
    }
    lanes = [...byNode].filter(([, all]) => all.some(life => life.shown)).map(([node, all]) => ({node, lives: all}));
    lanes.sort((a, b) => a.node - b.node);
    const wanted = new Set(lives.filter(life => life.shown).flatMap(life => life.jobs));
    const asked = words.map(word => /^(?:job:)?(\d+)$/.exec(word)).filter(Boolean).map(found => Number(found[1]));
    const named = jobs.some(job => asked.includes(job.id));
    bars = jobs.filter(job => !some || (named ? asked.includes(job.id) : wanted.has(job.id)));
    pack();
    gutter = 20 + Math.ceil(lanes.reduce((most, lane) => Math.max(most, pen.measureText(nodes[lane.node]).width), 40));
    $("space").style.height = `${Math.max(0, height() - box.clientHeight)}px`;
    draw();
  };
  const endOf = job => job.ends ?? (job.runs === null ? job.waits : data.length);
  // Rows for the bars, each of which keeps so much room behind it.
  const rowsOf = room => {
    const ends = [];
    for (const job of bars) {
      let row = ends.findIndex(end => end <= job.waits);
      if (row < 0) row = ends.length;
      ends[row] = Math.max(endOf(job), job.waits) + room;
      job.row = row;
    }
    return ends.length;
  };
  const pack = () => {
    jobRows = rowsOf((view.to - view.from) / 40);
    // Thousands of jobs have no numbers, and leave room for the nodes.
    if (jobRows * 8 > JOBS) jobRows = rowsOf(0);
    JOB = jobRows <= 6 ? 16 : Math.min(11, JOBS / jobRows);
  };
  const lanesTop = () => AXIS + (jobRows ? jobRows * JOB + GAP : 0) + 6;
  const height = () => lanesTop() + lanes.length * LANE + 8;

  // Drawing.
  const x = at => gutter + (at - view.from) / (view.to - view.from) * (canvas.clientWidth - gutter - 10);
  const timeAt = px => view.from + (px - gutter) / (canvas.clientWidth - gutter - 10) * (view.to - view.from);
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2419200];
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const cross = (at, y) => {
    pen.beginPath();
    pen.moveTo(at - 4, y - 4); pen.lineTo(at + 4, y + 4);
    pen.moveTo(at + 4, y - 4); pen.lineTo(at - 4, y + 4);
    pen.lineWidth = 4; pen.strokeStyle = colours.back; pen.stroke();
    pen.lineWidth = 2.25; pen.strokeStyle = data.red; pen.stroke();
  };
  let colours = {}, queued = false;
  const draw = () => {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; paint(); });
  };
  const paint = () => {
    const width = box.clientWidth, tall = box.clientHeight, scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(tall * scale)) {
      canvas.width = Math.round(width * scale); canvas.height = Math.round(tall * scale);
      canvas.style.width = `${width}px`; canvas.style.height = `${tall}px`;
    }
    colours = {back: colour("--back"), text: colour("--text"), soft: colour("--soft"), line: colour("--line"), band: colour("--band"), job: colour("--job")};
    drawn = {lanes: 0, spans: 0, marks: 0, jobs: 0};
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = colours.back; pen.fillRect(0, 0, width, tall);
    pen.font = FONT; pen.textBaseline = "middle";
    grid(tall);
    pen.save();
    pen.beginPath(); pen.rect(0, AXIS, width, tall); pen.clip();
    const top = -box.scrollTop;
    paintJobs(top);
    paintLanes(top, tall, width);
    pen.restore();
    pen.fillStyle = colours.soft; pen.textAlign = "center";
    for (const [at, words] of ticks) pen.fillText(words, at, AXIS / 2);
    const span = view.to - view.from;
    $("window").textContent = `${clock(view.from, true)} – ${clock(view.to, true)} (${length(span)})`;
  };
  const FONT = '12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif';
  let ticks = [];
  const grid = tall => {
    const span = view.to - view.from, most = Math.max(2, (canvas.clientWidth - gutter) / 90);
    const step = 1000 * (STEPS.find(s => span / (s * 1000) <= most) || 31536000);
    const offset = new Date(data.from).getTimezoneOffset() * 60000;
    ticks = [];
    pen.strokeStyle = colours.line; pen.lineWidth = 1; pen.beginPath();
    for (let at = Math.ceil((data.from - offset + view.from) / step) * step - data.from + offset; at <= view.to; at += step) {
      const px = Math.round(x(at)) + .5;
      pen.moveTo(px, AXIS); pen.lineTo(px, tall);
      ticks.push([px, step >= 86400000 ? day(at) : clock(at, step < 60000)]);
    }
    pen.moveTo(0, AXIS - .5); pen.lineTo(canvas.clientWidth, AXIS - .5);
    pen.stroke();
  };
  const paintJobs = top => {
    if (!jobRows) return;
    pen.textAlign = "right"; pen.fillStyle = colours.soft;
    pen.fillText("jobs", gutter - 10, top + AXIS + 6 + JOB / 2);
    pen.textAlign = "left";
    for (const job of bars) {
      const y = top + AXIS + 5 + job.row * JOB, waits = x(job.waits), runs = x(job.runs ?? endOf(job)), ends = x(endOf(job));
      if (ends < gutter || waits > canvas.clientWidth || y < 0 || y > canvas.clientHeight) continue;
      pen.fillStyle = colours.soft;
      pen.fillRect(Math.max(waits, gutter), y + (JOB < 8 ? 0 : (JOB - 3) / 2 - 1), Math.max(1, runs - Math.max(waits, gutter)), JOB < 8 ? .5 : 1.5);
      pen.fillStyle = colours.job;
      if (job.runs !== null) pen.fillRect(Math.max(runs, gutter), y, Math.max(2, ends - Math.max(runs, gutter)), JOB < 8 ? Math.max(JOB, 1) : JOB - 3);
      const room = ends - runs > 8 * String(job.id).length + 4;
      pen.fillStyle = room ? "#fff" : colours.soft;
      pen.font = FONT.replace("12px", JOB < 16 ? "8.5px" : "10px");
      if (ends >= gutter && JOB >= 8) pen.fillText(job.id, room ? Math.max(runs, gutter) + 3 : ends + 3, y + (JOB - 2) / 2);
      pen.font = FONT;
      drawn.jobs += 1;
    }
    pen.fillStyle = colours.line;
    pen.fillRect(0, Math.round(top + lanesTop() - 7), canvas.clientWidth, 1);
  };
  const paintLanes = (top, tall, width) => {
    const first = Math.max(0, Math.floor((AXIS - top - lanesTop()) / LANE));
    for (let index = first; index < lanes.length; index += 1) {
      const lane = lanes[index], y = top + lanesTop() + index * LANE;
      if (y > tall) break;
      if (index % 2 === 0) { pen.fillStyle = colours.band; pen.fillRect(0, y - 3, width, LANE); grids(y); }
      pen.fillStyle = colours.text; pen.textAlign = "right";
      pen.fillText(nodes[lane.node], gutter - 10, y + BAR / 2);
      for (const life of lane.lives) paintLife(life, y);
      for (const life of lane.lives) if (life.shown) paintMarks(life, y);
      drawn.lanes += 1;
    }
    pen.globalAlpha = 1;
  };
  const grids = y => {
    pen.fillStyle = colours.line;
    for (const [at] of ticks) pen.fillRect(at - .5, y - 3, 1, LANE);
  };
  const paintLife = (life, y) => {
    if (life.end < view.from || life.begin > view.to) return;
    pen.globalAlpha = life.shown ? 1 : .2;
    let at = life.begin, last = -1;
    for (let i = 0; i < life.spans.length; i += 2) {
      const from = Math.max(x(at), gutter), to = x(at += life.spans[i + 1]);
      if (to < gutter) continue;
      // Several phases within one pixel are one.
      if (to - last < .5) continue;
      pen.fillStyle = phases[life.spans[i]].colour;
      pen.fillRect(from, y, Math.max(to - from, 1), BAR);
      last = to;
      drawn.spans += 1;
    }
    pen.globalAlpha = 1;
  };
  const marksOf = life => {
    const all = [];
    for (let i = 0; i < life.marks.length; i += 2) all.push([life.marks[i], life.marks[i + 1]]);
    if (life.ending === 2) all.push([life.end, life.reason]);
    return all;
  };
  const paintMarks = (life, y) => {
    for (const [at] of marksOf(life)) {
      if (at < view.from || at > view.to) continue;
      cross(x(at), y + BAR / 2);
      drawn.marks += 1;
    }
  };

  // What is under the pointer.
  const hit = (px, py) => {
    const at = timeAt(px), y = py + box.scrollTop;
    if (px < gutter || py < AXIS) return null;
    if (y < lanesTop() - GAP / 2) {
      const row = Math.floor((y - AXIS - 5) / JOB);
      const job = bars.find(job => job.row === row && at >= job.waits - pixel(3) && at <= endOf(job) + pixel(3));
      return job ? {job} : null;
    }
    const lane = lanes[Math.floor((y - lanesTop() + 3) / LANE)];
    if (!lane) return null;
    for (const life of lane.lives) {
      const mark = marksOf(life).find(([when]) => Math.abs(x(when) - px) <= 6);
      if (mark && life.shown) return {life, mark};
    }
    const life = lane.lives.findLast(life => at >= life.begin - pixel(1) && at <= life.end + pixel(1));
    return life ? {life, at} : null;
  };
  const pixel = n => n * (view.to - view.from) / Math.max(1, canvas.clientWidth - gutter - 10);
  const ENDS = ["goes on", "terminated", "failed", "end not in the log"];
  const describe = found => {
    if (found.job) {
      const {job} = found, run = job.runs === null ? "not seen running" : `ran ${length(endOf(job) - job.runs)}${job.ends === null ? " so far" : ""}`;
      return [["b", `job ${job.id}${job.label ? " " + job.label : ""}`], ["", `waited ${length((job.runs ?? endOf(job)) - job.waits)}, ${run}`],
        ["soft", `${day(job.waits)} ${clock(job.waits, true)} – ${clock(endOf(job), true)}`], ["soft", job.on.map(node => nodes[node]).join(", ")], ["soft", job.state]];
    }
    const {life} = found, lines = [["b", nodes[life.node]]];
    if (found.mark) lines.push(["why", found.mark[1] < 0 ? "failed" : reasons[found.mark[1]]], ["soft", `${day(found.mark[0])} ${clock(found.mark[0], true)}`]);
    else {
      let at = life.begin, now = null;
      for (let i = 0; i < life.spans.length && !now; i += 2) {
        const to = at + life.spans[i + 1];
        if (found.at <= to || i + 2 >= life.spans.length) now = {phase: phases[life.spans[i]], from: at, to};
        at = to;
      }
      if (now) lines.push(["", `${now.phase.name}: ${now.phase.words}`], ["", `${length(now.to - now.from)}, ${clock(now.from, true)} – ${clock(now.to, true)}`]);
      if (life.reason >= 0) lines.push(["why", reasons[life.reason]]);
    }
    if (life.jobs.length) lines.push(["soft", `${life.jobs.length === 1 ? "job" : "jobs"} ${life.jobs.slice(0, 12).join(", ")}`]);
    if (life.pool >= 0) lines.push(["soft", pools[life.pool]]);
    lines.push(["soft", `${life.machine ? `machine …${life.machine}, ` : ""}${length(life.end - life.begin)} in all, ${ENDS[life.ending]}`]);
    return lines;
  };
  const show = event => {
    const edge = canvas.getBoundingClientRect(), tip = $("tip");
    const found = drag ? null : hit(event.clientX - edge.left, event.clientY - edge.top);
    tip.hidden = !found;
    if (!found) return;
    tip.replaceChildren(...describe(found).filter(([, text]) => text).map(([kind, text]) => {
      const line = document.createElement(kind === "b" ? "b" : "div");
      line.className = kind; line.textContent = text;
      return line;
    }));
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18}px`;
  };

  // Zoom and move.
  const look = (from, to) => {
    const span = Math.min(Math.max(to - from, 50), Math.max(data.length, 50) * 1.02), margin = data.length * .01;
    const begin = Math.min(Math.max(from, -margin), data.length + margin - span);
    view = {from: begin, to: begin + span};
    pack();
    $("space").style.height = `${Math.max(0, height() - box.clientHeight)}px`;
    draw();
  };
  const fit = () => look(-data.length * .01, data.length * 1.01);
  const zoom = (factor, around = (view.from + view.to) / 2) =>
    look(around - (around - view.from) * factor, around + (view.to - around) * factor);
  let drag = null;
  canvas.addEventListener("mousemove", show);
  canvas.addEventListener("mouseleave", () => { $("tip").hidden = true; });
  canvas.addEventListener("mousedown", event => { drag = {x: event.clientX, y: event.clientY, top: box.scrollTop, ...view}; $("tip").hidden = true; });
  addEventListener("mouseup", () => { drag = null; });
  addEventListener("mousemove", event => {
    if (!drag) return;
    const moved = (event.clientX - drag.x) * (drag.to - drag.from) / Math.max(1, canvas.clientWidth - gutter - 10);
    box.scrollTop = drag.top - (event.clientY - drag.y);
    look(drag.from - moved, drag.to - moved);
  });
  box.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY / 300), timeAt(event.clientX - canvas.getBoundingClientRect().left));
    else { const by = pixel(event.deltaX); look(view.from + by, view.to + by); }
  }, {passive: false});
  box.addEventListener("scroll", draw);
  canvas.addEventListener("dblclick", fit);
  $("in").onclick = () => zoom(1 / 1.6);
  $("out").onclick = () => zoom(1.6);
  $("fit").onclick = fit;
  addEventListener("keydown", event => {
    if (event.target.matches("input,select")) return;
    const step = (view.to - view.from) / 8;
    const keys = {"+": () => zoom(1 / 1.6), "=": () => zoom(1 / 1.6), "-": () => zoom(1.6), 0: fit,
      ArrowLeft: () => look(view.from - step, view.to - step), ArrowRight: () => look(view.from + step, view.to + step)};
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
  $("filter").addEventListener("input", select);
  $("pool").addEventListener("change", select);
  addEventListener("resize", select);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", draw);

  // What stands around it.
  const element = (kind, text, style) => {
    const it = document.createElement(kind);
    it.textContent = text ?? ""; if (style) it.style.background = style;
    return it;
  };
  for (const phase of phases) {
    const entry = element("span"), box = element("i", "", phase.colour);
    entry.title = phase.words; entry.append(box, phase.name); $("legend").append(entry);
  }
  const failed = element("span"), sign = element("i", "×");
  sign.className = "x"; sign.style.color = data.red; failed.append(sign, "refused or failed"); $("legend").append(failed);
  pools.map((name, index) => [name, index]).sort().forEach(([name, index]) => {
    const option = element("option", name); option.value = index; $("pool").append(option);
  });
  const machines = lives.filter(life => life.machine).length, failures = lives.filter(life => life.ending === 2).length;
  $("summary").textContent = `${day(0)} ${clock(0, true)}, ${length(data.length)}: ${many(nodes.length, "node")}, ${many(machines, "machine")}, ` +
    `${many(jobs.length, "job")}, ${many(failures, "failed start")}, ${many(data.coolings.length, "cool-down")}`;
  const starts = phases.slice(0, data.starts).map(phase => ({phase, row: data.times.find(row => row.phase === phase.name)})).filter(it => it.row);
  const sum = starts.reduce((total, it) => total + it.row.sum, 0);
  for (const {phase, row} of starts) {
    const part = 100 * row.sum / Math.max(sum, 1), bar = element("span", part >= 6 ? `${phase.name} ${Math.round(part)} %` : "", phase.colour);
    bar.style.flex = `${part} 1 0`; bar.title = `${phase.name}: ${part.toFixed(1)} % of all start time`; $("share").append(bar);
  }
  const head = element("tr");
  head.append(...["phase", "count", "median", "90 %", "99 %", "longest"].map(word => element("th", word)));
  $("times").append(head);
  for (const row of data.times) {
    const line = element("tr"), name = element("td"), phase = phases.find(phase => phase.name === row.phase);
    if (phase) name.append(element("i", "", phase.colour));
    name.append(row.phase);
    line.append(name, element("td", row.count.toLocaleString("en")), ...row.words.map(words => element("td", words)));
    $("times").append(line);
  }
  if (!data.times.length) $("boot").hidden = true;
  pen.font = FONT;
  view = {from: -data.length * .01, to: Math.max(data.length * 1.01, 50)};
  select();

  // For scripts and tests: what was drawn last, and where something is on the page.
  window.timeline = {
    drawn: () => ({...drawn, shown: lanes.map(lane => nodes[lane.node]), bars: bars.map(job => job.id)}),
    failures: () => lanes.flatMap((lane, index) => lane.lives.filter(life => life.shown).flatMap(life => marksOf(life).map(([at, reason]) => ({
      node: nodes[lane.node], reason: reasons[reason] ?? "", x: x(at) + canvas.getBoundingClientRect().left,
      y: canvas.getBoundingClientRect().top + lanesTop() + index * LANE + BAR / 2 - box.scrollTop})))),
  };
})();
