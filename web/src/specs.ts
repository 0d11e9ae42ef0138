// What each kind of chart draws of the page's data.

import { type ChartLine, type ChartSpec, numberText } from "./chart";
import type { CurveSeries, Line, NamedLine, PointSeries, StackSeries } from "./data";
import { threadState } from "./thread_states";

const COLOURS = 7;
// Lines differ by dash as well as by colour.
const DASHES: (number[] | undefined)[] = [undefined, [10, 4], [3, 3], [10, 3, 3, 3], [14, 6], [6, 2], [2, 5]];

function lineOf(number: number): { colour: string; dash?: number[] } {
  const dash = DASHES[number % DASHES.length];
  return { colour: `--series-${number % COLOURS}`, ...(dash ? { dash } : {}) };
}

/** From the load's start to half a slice beyond the middle of the last one. */
function timeRange(times: number[]): [number, number] {
  const first = times[0] ?? 0;
  return [0, (times[times.length - 1] ?? 1) + first];
}

function known(lines: Line[]): number[] {
  return lines.flat().filter((value): value is number => value !== null && value > 0);
}

function overTime(x: number[], key: string): Pick<ChartSpec, "x" | "xRange" | "xUnit" | "xLabel" | "sync"> {
  return { x, xRange: timeRange(x), xUnit: "s", xLabel: "time, s", sync: key };
}

function rates(point: PointSeries, key: string): ChartSpec {
  const lines: ChartLine[] = [];
  const bands: [number, number][] = [];
  for (const stack of point.stacks) {
    const style = lineOf(stack.colour);
    lines.push({ label: stack.name, values: stack.rate_rps, ...style, direct: true });
    if (stack.trials > 1) {
      bands.push([lines.length, lines.length + 1]);
      lines.push({ label: `${stack.name}, fastest trial`, values: stack.rate_high_rps, colour: style.colour, edge: true });
      lines.push({ label: `${stack.name}, slowest trial`, values: stack.rate_low_rps, colour: style.colour, edge: true });
    }
    if (stack.failed_rps.some((value) => value)) {
      lines.push({ label: `${stack.name}, failed`, values: stack.failed_rps, colour: style.colour, dash: [2, 2], width: 1 });
    }
  }
  if (point.offered_rps.length) lines.push({ label: "asked for", values: point.offered_rps, ...lineOf(6), direct: true });
  return { ...overTime(point.time_s, key), unit: "req/s", lines, bands, height: 300 };
}

function answers(point: PointSeries, key: string): ChartSpec {
  const series = point.answers ?? { time_s: [], lines: [] };
  const measured = series.lines.filter((line) => !line.is_bound);
  // An upper bound far above everything would press the measured lines flat: it leaves the chart instead.
  const most = Math.max(1, ...known(measured.map((line) => line.values)));
  return {
    x: series.time_s, xRange: [0, series.time_s[series.time_s.length - 1] ?? 1], xUnit: "s", xLabel: "time, s", unit: "answers", height: 300, sync: key,
    range: [0, most * 1.15],
    lines: series.lines.map((line): ChartLine => {
      const style = line.colour === null ? { colour: "--series-6" } : lineOf(line.colour);
      return { label: line.label, values: line.values, ...style, ...(line.is_bound ? { width: 1, dash: [2, 4] } : {}), direct: !line.is_bound };
    }),
  };
}

function percentiles(point: PointSeries, number: number, key: string): ChartSpec {
  const stack = point.stacks[number];
  const all = known(point.stacks.flatMap((one) => [one.p50_ms, one.p90_ms, one.p99_ms]));
  const colour = `--series-${(stack?.colour ?? 0) % COLOURS}`;
  const lines: ChartLine[] = [
    { label: "p99", values: stack?.p99_ms ?? [], colour, dash: [3, 3], width: 1.5, direct: true },
    { label: "p90", values: stack?.p90_ms ?? [], colour, dash: [10, 4], width: 1.5, direct: true },
    { label: "p50", values: stack?.p50_ms ?? [], colour, direct: true },
  ];
  return {
    ...overTime(point.coarse_time_s, key), unit: "ms", lines, height: 230, logarithmic: true,
    ...(all.length ? { range: [Math.min(...all) * 0.8, Math.max(...all) * 1.25] as [number, number] } : {}),
  };
}

/** Lines of all stacks in one chart; where a stack has several, each is named after it. */
function together(point: PointSeries, of: (stack: StackSeries) => NamedLine[], unit: string, key: string): ChartSpec {
  const shown = point.stacks.filter((stack) => of(stack).length);
  const lines = shown.flatMap((stack) => {
    const mine = of(stack);
    return mine.map((line, index): ChartLine => {
      const label = shown.length === 1 ? line.label : mine.length === 1 ? stack.name : `${stack.name}, ${line.label}`;
      return { label, values: line.values, ...lineOf(shown.length === 1 ? index : stack.colour), ...(index && shown.length > 1 ? { dash: [2, 2 + 2 * index], width: 1.5 } : {}), direct: true };
    });
  });
  return { ...overTime(point.time_s, key), unit, lines, height: 220 };
}

/** One stack's lines by tier, in the stack's colour for the first tier and in others for what serves it. */
function byTier(point: PointSeries, number: number, of: (stack: StackSeries) => NamedLine[], unit: string, key: string): ChartSpec {
  const tierOf = (label: string): string => label.replace(/ (user|system)$|, (read from|written to) disk$/, "");
  const names = [...new Set(point.stacks.flatMap((stack) => of(stack).map((line) => tierOf(line.label))))];
  const stack = point.stacks[number];
  const lines = (stack ? of(stack) : []).map((line): ChartLine => {
    const tier = names.indexOf(tierOf(line.label));
    const second = /( system|written to disk)$/.test(line.label);
    const colour = tier === 0 ? (stack?.colour ?? 0) : 6 - ((tier - 1) % 3);
    return { label: line.label, values: line.values, colour: `--series-${colour % COLOURS}`, ...(second ? { dash: [3, 3] } : {}), direct: true };
  });
  const largest = Math.max(0.01, ...known(point.stacks.flatMap((one) => of(one).map((line) => line.values))));
  return { ...overTime(point.coarse_time_s, key), unit, lines, height: 200, range: [0, largest * 1.1] };
}

/** The stack's CPUs in the stack's colour, the others in grey, steal apart. */
function machineStyle(label: string, index: number, colour: number): { colour: string; dash?: number[]; width?: number } {
  if (label === "steal") return { colour: "--alarm", dash: [2, 3], width: 1.5 };
  if (/\bstack\b/.test(label)) return { colour: `--series-${colour % COLOURS}` };
  return { ...lineOf(index + 1), colour: "--series-6" };
}

function machine(point: PointSeries, number: number, key: string): ChartSpec {
  const stack = point.stacks[number];
  const lines = (stack?.machine_percent ?? []).map(
    (line, index): ChartLine => ({ label: line.label, values: line.values, ...machineStyle(line.label, index, stack?.colour ?? 0), direct: true }),
  );
  return { ...overTime(point.coarse_time_s, key), unit: "%", lines, height: 200, range: [0, 104] };
}

/** What the threads of one stack were doing, stacked: the state named first lies at the bottom. */
function threads(point: PointSeries, number: number, key: string): ChartSpec {
  const states = point.stacks[number]?.threads ?? [];
  let below: Line = point.threads_time_s.map(() => 0);
  const lines: ChartLine[] = [{ label: "none", values: below, colour: "--muted", edge: true }];
  const bands: [number, number][] = [];
  for (const state of states) {
    const under = below;
    below = state.values.map((value, index) => (value === null ? null : value + (under[index] ?? 0)));
    bands.push([lines.length, lines.length - 1]);
    lines.push({ ...threadState(state.label), values: below, shown: state.values, width: 1 });
  }
  return { ...overTime(point.threads_time_s, key), unit: "threads", lines, bands, height: 220 };
}

function percentileText(nines: number): string {
  return `p${Number((100 * (1 - 10 ** -nines)).toFixed(nines < 2 ? 1 : Math.ceil(nines))).toString()}`;
}

function distribution(point: PointSeries): ChartSpec {
  const ticks = [0, 0.30103, 1, 2, 3, 4, 5, 6].map((at) => ({ at, text: percentileText(at) }));
  return {
    x: point.nines, xRange: [0, point.nines[point.nines.length - 1] ?? 1], xUnit: "", xLabel: "percentile", unit: "ms", height: 340, logarithmic: true,
    lines: point.stacks.flatMap((stack) => {
      const hasTwo = stack.service_ms.length > 0;
      const response = { label: hasTwo ? "response time" : stack.name, values: stack.distribution_ms, ...lineOf(stack.colour), direct: true };
      return hasTwo ? [response, { label: "service time", values: stack.service_ms, ...lineOf(stack.colour + 1), direct: true }] : [response];
    }),
    xTicks: (low, high) => ticks.filter((tick) => tick.at >= low - 1e-9 && tick.at <= high + 1e-9),
    xText: percentileText,
  };
}

/** Measured amounts as ticks: all of them where they have room, else the first, the last and those with some distance between. */
function amountTicks(measured: number[]): { at: number; text: string }[] {
  const span = Math.log10((measured[measured.length - 1] ?? 1) / (measured[0] ?? 1)) || 1;
  const shown: { at: number; text: string }[] = [];
  for (const amount of measured) {
    const at = Math.log10(amount);
    const last = shown[shown.length - 1];
    if (last && at - last.at <= span * 0.045) {
      // The last amount stands in any case.
      if (amount !== measured[measured.length - 1] || shown.length === 1) continue;
      shown.pop();
    }
    shown.push({ at, text: numberText(amount) });
  }
  return shown;
}

/** Around each of these amounts, half way to its neighbours; what touches becomes one. */
function partsAround(limited: number[], measured: number[], first: number, last: number): [number, number][] {
  const parts: [number, number][] = [];
  measured.forEach((amount, index) => {
    if (!limited.includes(amount)) return;
    const [before, after] = [measured[index - 1], measured[index + 1]];
    const low = before === undefined ? first : Math.log10(before * amount) / 2;
    const high = after === undefined ? last : Math.log10(after * amount) / 2;
    const touching = parts[parts.length - 1];
    if (touching && touching[1] >= low - 1e-9) touching[1] = high;
    else parts.push([low, high]);
  });
  return parts;
}

/** Over the amount of load or a setting, on a logarithmic axis: uPlot's own would need the same distance between all places. */
function curve(series: CurveSeries, number: number): ChartSpec | undefined {
  const chart = series.charts[number];
  if (!chart) return undefined;
  const x = series.amounts.map(Math.log10);
  const room = Math.max(0.02, ((x[x.length - 1] ?? 0) - (x[0] ?? 0)) * 0.03);
  const lines: ChartLine[] = [];
  const bands: [number, number][] = [];
  for (const stack of chart.lines) {
    const style = { ...lineOf(stack.colour), sparse: true };
    lines.push({ label: stack.name, values: stack.values, ...style, direct: true });
    if (stack.high.some((value) => value !== null)) {
      bands.push([lines.length, lines.length + 1]);
      lines.push({ label: `${stack.name}, 95 % up to`, values: stack.high, colour: style.colour, edge: true, sparse: true });
      lines.push({ label: `${stack.name}, 95 % from`, values: stack.low, colour: style.colour, edge: true, sparse: true });
    }
    if (stack.law.length) {
      lines.push({ label: `${stack.name}, the law`, values: stack.law, colour: style.colour, width: 1, dash: [2, 4] });
    }
  }
  const { unit } = series;
  const [first, last] = [(x[0] ?? 0) - room, (x[x.length - 1] ?? 1) + room];
  const ticks = amountTicks(series.measured);
  return {
    x, xRange: [first, last], xUnit: unit, xLabel: `${unit}, logarithmic`, unit: chart.unit, lines, bands, height: number ? 240 : 320, logarithmic: chart.logarithmic,
    xTicks: () => ticks,
    xText: (value) => `${numberText(10 ** value)} ${unit}`,
    hatched: { parts: partsAround(series.limited, series.measured, first, last), words: "the generator may be the limit" },
    marks: [
      ...series.crossings
        .filter((one) => one.metric === chart.metric)
        .map((one) => ({
          at: Math.log10(one.at),
          low: one.low === null ? Math.log10(one.at) : Math.max(first, Math.log10(one.low)),
          high: one.high === null ? Math.log10(one.at) : Math.min(last, Math.log10(one.high)),
        })),
      ...series.knees.map((one) => ({ at: Math.log10(one.at), low: Math.log10(one.at), high: Math.log10(one.at), colour: `--series-${one.colour % COLOURS}`, words: "knee" })),
    ],
  };
}

/** What a chart's element asks for by its data attributes; nothing of a kind that is not known. */
export function specOf(element: HTMLElement, points: PointSeries[], curves: CurveSeries[]): ChartSpec | undefined {
  const drawn = curves[Number(element.dataset["curve"] ?? -1)];
  if (drawn) return curve(drawn, Number(element.dataset["chart"] ?? 0));
  const at = element.dataset["point"] ?? "0";
  const point = points[Number(at)];
  const stack = Number(element.dataset["stack"] ?? 0);
  if (!point) return undefined;
  // Charts of one point share their cursor.
  const group = `time-${at}`;
  switch (element.dataset["kind"]) {
    case "rate":
      return rates(point, group);
    case "waiting":
      return together(point, (one) => one.waiting, "requests", group);
    case "errors":
      return together(point, (one) => one.errors_rps, "failed/s", group);
    case "answers":
      return answers(point, group);
    case "percentiles":
      return percentiles(point, stack, group);
    case "tiers":
      return byTier(point, stack, (one) => one.tiers, "CPUs", group);
    case "memory":
      return byTier(point, stack, (one) => one.memory_mb, "MB", group);
    case "traffic":
      return byTier(point, stack, (one) => one.traffic_mb_s, "MB/s", group);
    case "machine":
      return machine(point, stack, group);
    case "threads":
      return threads(point, stack, group);
    case "distribution":
      return distribution(point);
    default:
      return undefined;
  }
}
