// The live page: what a run or a load does while it goes on, the form that starts a load, and past runs. Everything that is shown came from
// servers and files: it becomes text on the page (textContent) and never markup.

import "uplot/dist/uPlot.min.css";
import "./report.css";
import "./live.css";
import type { Found, Message, Process, Run, Step, Trial } from "./live_data";
import { LiveCharts } from "./live_charts";
import { numberText } from "./chart";
import { followTheme } from "./theme";
import { threadState } from "./thread_states";

const root = document.documentElement;
const hasRuns = root.dataset["hasRuns"] !== undefined;
const LOG_PERIOD_MS = 2000;
const AGAIN_MS = 2000;

function find(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element ${id}`);
  return element;
}

/** An element with text in it. */
function made(tag: string, text = "", className = ""): HTMLElement {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

/** Writes only what is new: what stays the same is not read out again, and a selection in it stays. */
function write(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function spanText(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function shown(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : numberText(value);
}

// --- What goes on

interface State {
  about: { title: string; question: string; has_trials: boolean };
  last: Message | undefined;
  trial: number;
}

const state: State = { about: { title: "", question: "", has_trials: true }, last: undefined, trial: 0 };
const charts = new LiveCharts({
  rate: find("chart-rate"),
  times: find("chart-times"),
  waiting: find("chart-waiting"),
  tiers: find("chart-tiers"),
});

function take(message: Message): void {
  if (message.about) {
    state.about = message.about;
    write(find("title"), message.about.title);
    write(find("question"), message.about.question);
    document.title = `${message.about.title} · weir`;
  }
  state.last = message;
  const number = message.trial?.number ?? 0;
  if (number !== state.trial) {
    state.trial = number;
    find("logs").replaceChildren();
    find("processes").replaceChildren();
  }
  // Before the charts, which are as wide as what they stand in.
  find("live").hidden = hasRuns && number === 0;
  showProgress(message);
  showNow(message);
  charts.take(message.points, message.trial?.duration_s ?? null);
  find("figure-tiers").hidden = !charts.hasTiers;
  showProcesses(message.processes);
  showLogs(message.logs);
  if (message.trials) showTrials(message.trials);
  if (message.steps) showSteps(message.steps);
  showControls(message);
}

function showProgress(message: Message): void {
  const { trial, phase } = message;
  const bar = find("progress") as HTMLProgressElement;
  const done = phase === "ended" || phase === "between";
  const doing: Record<string, string> = { preparing: "Preparing", starting: "Starting ", load: "", between: "Done: ", ended: "Ended" };
  write(find("what"), phase === "preparing" || phase === "ended" || !trial ? (doing[phase] ?? "") : `${doing[phase] ?? ""}${trial.name}`);
  write(find("point"), phase === "ended" ? (message.ended ?? "") : (trial?.point ?? ""));
  const answered = (message.now?.answered ?? 0) + (message.now?.failed ?? 0);
  let share: number | undefined;
  let text = "";
  if (trial && trial.load_s !== null) {
    text = `${trial.load_s.toFixed(1)} s`;
    if (trial.requests !== null) {
      share = answered / trial.requests;
      text += `, ${answered.toLocaleString("en-US")} of ${trial.requests.toLocaleString("en-US")} requests`;
    } else if (trial.duration_s !== null) {
      share = trial.load_s / trial.duration_s;
      // A trial that shows no steady state goes on for longer; the last interval of any load ends a little later.
      text += ` of ${trial.duration_s} s${share > 1.05 ? ", extended: not steady yet" : ""}`;
      if (share < 1 && !done) text += `, ${spanText(trial.duration_s - trial.load_s)} left`;
    }
  }
  if (done) share = 1;
  if (share === undefined) bar.removeAttribute("value");
  else bar.value = Math.min(1, share);
  write(find("progress-text"), text);
  const parts: string[] = [];
  if (trial && state.about.has_trials && !hasRuns) {
    parts.push(`trial ${trial.number}${trial.total === null ? "" : ` of ${trial.total}`}`);
    if (trial.block !== null) parts.push(`block ${trial.block}${trial.blocks === null ? "" : ` of ${trial.blocks}`}`);
  }
  if (!hasRuns) parts.push(`${spanText(message.elapsed_s)} since the start`);
  if (message.left_s !== null && state.about.has_trials && !hasRuns) parts.push(`about ${spanText(message.left_s)} left`);
  write(find("run-progress"), parts.join(" · "));
}

const TILES: [string, string, (now: NonNullable<Message["now"]>) => number | null][] = [
  ["Throughput", "req/s, in the last second", (now) => now.rate_rps],
  ["p50", "ms", (now) => now.p50_ms],
  ["p90", "ms", (now) => now.p90_ms],
  ["p99", "ms", (now) => now.p99_ms],
  ["In flight", "requests", (now) => now.in_flight],
  ["Answered", "since the start", (now) => now.answered],
  ["Failed", "since the start", (now) => now.failed],
];
const tiles = TILES.map(([title, unit]) => {
  const tile = made("article", "", "tile");
  const heading = made("h3", `${title} `);
  heading.append(made("small", unit));
  const value = made("b", "–");
  tile.append(heading, value);
  find("tiles").append(tile);
  return value;
});

function showNow(message: Message): void {
  const now = message.now;
  TILES.forEach(([, , of], index) => write(tiles[index] as HTMLElement, now ? shown(of(now)) : "–"));
  const kinds = Object.entries(now?.errors ?? {}).sort((one, other) => other[1] - one[1]);
  const errors = kinds.map(([kind, count]) => `${kind} ${count.toLocaleString("en-US")}`);
  const waiting = now && now.queued > 0 ? [`${now.queued.toLocaleString("en-US")} wait for a connection`] : [];
  write(find("errors"), [...(errors.length ? [`failed: ${errors.join(", ")}`] : []), ...waiting].join(" · "));
}

function showProcesses(processes: Process[]): void {
  find("processes-section").hidden = processes.length === 0;
  find("processes").replaceChildren(
    ...processes.map((one) => {
      const row = document.createElement("tr");
      const name = made("th", one.name);
      name.setAttribute("scope", "row");
      const threads = made("td", "", "text");
      for (const pool of one.pools) {
        const doing = Object.entries(pool.doing).sort((first, second) => second[1] - first[1]);
        const text = doing.map(([what, count]) => `${numberText(count)} ${threadState(what).label}`).join(", ");
        threads.append(made("span", `${pool.pool} × ${pool.threads}${text ? `: ${text}` : ""}`, "pools"));
      }
      row.append(
        name, made("td", one.tier, "text"), made("td", String(one.processes)), made("td", String(one.threads)), made("td", shown(one.cpus)),
        made("td", numberText(one.rss_bytes / 1e6)), threads,
      );
      return row;
    }),
  );
}

/** Who has opened the log of one trial wants to see that of the next. */
const openLogs = new Set<string>();

function showLogs(names: string[]): void {
  const logs = find("logs");
  find("logs-section").hidden = names.length === 0;
  const there = [...logs.children].map((one) => (one as HTMLElement).dataset["log"]);
  if (there.length === names.length && there.every((name, index) => name === names[index])) return;
  logs.replaceChildren(
    ...names.map((name) => {
      const details = document.createElement("details");
      details.dataset["log"] = name;
      const text = document.createElement("pre");
      text.tabIndex = 0;
      details.append(made("summary", name), text);
      details.open = openLogs.has(name);
      let isRead = false;
      details.addEventListener("toggle", () => {
        if (details.open) openLogs.add(name);
        else openLogs.delete(name);
        if (isRead) return;
        isRead = true;
        void readLog(details, name, text).finally(() => (isRead = false));
      });
      return details;
    }),
  );
}

/** The end of a log, again and again while it is open. */
async function readLog(details: HTMLDetailsElement, name: string, text: HTMLElement): Promise<void> {
  while (details.open && details.isConnected && state.last?.phase !== "ended") {
    const answer = await fetch(`/log?name=${encodeURIComponent(name)}`).catch(() => undefined);
    if (answer?.ok) {
      const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
      write(text, (await answer.text()) || "(nothing yet)");
      if (atEnd) text.scrollTop = text.scrollHeight;
    }
    await new Promise((done) => setTimeout(done, LOG_PERIOD_MS));
  }
}

let known = 0;

function showTrials(trials: Trial[]): void {
  find("trials-section").hidden = trials.length === 0 || !(state.about.has_trials || hasRuns);
  write(find("trials-title"), hasRuns ? "Loads from this page" : "Trials");
  find("trials").replaceChildren(
    ...[...trials].reverse().map((trial) => {
      const row = document.createElement("tr");
      row.className = trial.validity;
      const what = made("td", trial.name, "text");
      what.append(made("small", trial.point));
      if (trial.run !== null) what.append(reportLink(trial.run, "its report"));
      const verdict = made("td", "", "text");
      verdict.append(made("span", trial.validity, `verdict ${trial.validity}`), made("small", trial.reasons.join("; ")));
      row.append(
        made("th", String(trial.number)), what, made("td", shown(trial.block)), made("td", shown(trial.throughput_rps)), made("td", shown(trial.p50_ms)),
        made("td", shown(trial.p99_ms)), made("td", shown(trial.failed)), verdict,
      );
      return row;
    }),
  );
  // A load that has ended is a run more.
  if (hasRuns && trials.length !== known) void showRuns();
  known = trials.length;
}

function showSteps(steps: Step[]): void {
  find("steps-section").hidden = steps.length === 0;
  const list = find("steps");
  const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  list.replaceChildren(
    ...steps.map((step) => {
      const item = made("li");
      item.append(made("span", `${step.at_s.toFixed(1)} s`, "at"), ` ${step.text}`);
      return item;
    }),
  );
  if (atEnd) list.scrollTop = list.scrollHeight;
}

// --- Buttons and the form

async function post(path: string, value: Record<string, string | number>): Promise<{ message?: string; hint?: string }> {
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Weir-Form": root.dataset["formToken"] ?? "" },
      body: JSON.stringify(value),
    });
    if (answer.ok) return {};
    const text = await answer.text();
    try {
      return JSON.parse(text) as { message?: string; hint?: string };
    } catch {
      return { message: text.trim() };
    }
  } catch {
    return { message: "weir does not answer" };
  }
}

function button(id: string): HTMLButtonElement | null {
  return document.getElementById(id) as HTMLButtonElement | null;
}

/** What is being stopped needs a moment to end. */
let isStopping = false;

function showControls(message: Message): void {
  const goesOn = message.phase === "starting" || message.phase === "load";
  const stop = button("stop");
  if (hasRuns && !goesOn) isStopping = false;
  if (stop) stop.disabled = isStopping || message.phase === "ended" || (hasRuns && !goesOn);
  const skip = button("skip");
  if (skip) skip.disabled = !goesOn;
  const extend = button("extend");
  if (extend) extend.disabled = message.phase === "ended";
  const start = document.querySelector<HTMLButtonElement>("#form button[type=submit]");
  if (start) start.disabled = goesOn;
}

button("stop")?.addEventListener("click", () => {
  if (!confirm(hasRuns ? "End this load now? What was measured is kept." : "End it now, as Ctrl-C does? What was finished is kept.")) return;
  isStopping = true;
  void post("/stop", {}).then((problem) => {
    if (problem.message) isStopping = false;
    write(find("control-problem"), problem.message ?? "");
  });
});
button("skip")?.addEventListener("click", () => {
  void post("/skip", { trial: state.trial }).then((problem) => write(find("control-problem"), problem.message ?? ""));
});
button("extend")?.addEventListener("click", () => {
  void post("/extend", {}).then(({ message }) => {
    write(find("control-problem"), message ?? "");
    write(find("control-done"), message ? "" : "One more block comes after the others.");
  });
});
const form = document.getElementById("form") as HTMLFormElement | null;
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = Object.fromEntries([...new FormData(form)].filter((pair): pair is [string, string] => typeof pair[1] === "string" && pair[1].trim() !== ""));
  void post("/start", fields).then(({ message, hint }) => {
    write(find("form-problem"), message ? `${message}${hint ? ` (try: ${hint})` : ""}` : "");
  });
});

// --- Past runs

function reportLink(run: string, text: string): HTMLAnchorElement {
  const link = document.createElement("a");
  link.textContent = text;
  link.href = `/report?run=${encodeURIComponent(run)}`;
  return link;
}

let listing = 0;

/** The list, and then, one after the other, what each run found: that takes the server a while the first time. */
async function showRuns(): Promise<void> {
  const mine = ++listing;
  const answer = await fetch("/runs").catch(() => undefined);
  if (!answer?.ok || mine !== listing) return;
  const { runs } = (await answer.json()) as { runs: Run[] };
  if (mine !== listing) return;
  write(find("runs-note"), runs.length ? "" : "There is none yet: weir run STUDY, weir load URL --out, or the form above make one.");
  const places: [Run, HTMLElement, HTMLElement][] = [];
  find("runs").replaceChildren(
    ...runs.map((run) => {
      const row = document.createElement("tr");
      const name = made("th");
      name.setAttribute("scope", "row");
      if (run.problem) name.textContent = run.name;
      else name.append(reportLink(run.name, run.name));
      const text = made("td", "", "text");
      text.append(made("b", run.question || run.title));
      const found = made("span", run.problem, "answer-text");
      text.append(found);
      const verdict = made("td", "", "text");
      if (!run.problem) places.push([run, found, verdict]);
      const date = new Date(run.started_unix_s * 1000);
      const day = Number.isNaN(date.getTime()) ? "–" : date.toISOString().slice(0, 16).replace("T", " ");
      row.append(name, text, verdict, made("td", day));
      return row;
    }),
  );
  root.dataset["runs"] = String(runs.length);
  for (const [run, found, verdict] of places) {
    if (mine !== listing) return;
    await showFound(run, found, verdict, () => mine === listing);
  }
}

async function showFound(run: Run, found: HTMLElement, verdict: HTMLElement, isWanted: () => boolean): Promise<void> {
  while (isWanted()) {
    const answer = await fetch(`/found?run=${encodeURIComponent(run.name)}`).catch(() => undefined);
    if (!answer) return;
    const value = (await answer.json().catch(() => ({}))) as Partial<Found> & { message?: string; later?: string };
    found.textContent = value.sentence ?? value.message ?? value.later ?? "";
    if (value.validity) {
      const more = [...(value.indicative ? ["indicative"] : []), ...(run.ended === "interrupted" ? ["interrupted"] : run.ended ? [] : ["unfinished"])];
      verdict.replaceChildren(made("span", value.validity, `verdict ${value.validity}`), made("small", more.join(", ")));
    }
    if (!value.later) return;
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

// --- The connection

function say(text: string, kind: "on" | "lost" | ""): void {
  const element = find("connection");
  write(element, text);
  element.className = `connection ${kind}`;
  root.dataset["connection"] = kind || "ended";
}

function connect(): void {
  const source = new EventSource("/news");
  source.onopen = () => say("live", "on");
  source.onmessage = (event: MessageEvent<string>) => {
    const message = JSON.parse(event.data) as Message;
    take(message);
    if (message.phase === "ended") {
      source.close();
      say("ended", "");
    }
    root.dataset["ready"] = "true";
  };
  source.onerror = () => {
    say("connection lost, trying again", "lost");
    // A browser tries again by itself, except where it was answered with something else than a stream.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN_MS);
  };
}

// The token has done its work: it need not stay in the address bar, nor in a screenshot of it.
history.replaceState(null, "", location.pathname);
followTheme(() => charts.redraw());
if (hasRuns) void showRuns();
connect();
