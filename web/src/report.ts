// The report's charts. The page itself is complete without this script; it adds what needs a canvas, the theme and the copy button.

import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./report.css";
import { type ChartLine, type ChartSpec, draw, numberText } from "./chart";
import { type CurveSeries, type Line, type PointSeries, readData } from "./data";
import { followTheme } from "./theme";

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

function known(lines: (number | null)[][]): number[] {
  return lines.flat().filter((value): value is number => value !== null && value > 0);
}

function rates(point: PointSeries, key: string, unit = "req/s"): ChartSpec {
  const lines: ChartLine[] = [];
  const bands: [number, number][] = [];
  for (const stack of point.stacks) {
    const style = lineOf(stack.colour);
    lines.push({ label: stack.name, values: stack.rate_rps, ...style, direct: true });
    if (stack.trials > 1) {
      bands.push([lines.length, lines.length + 1]);
      lines.push({ label: "", values: stack.rate_high_rps, colour: style.colour, edge: true });
      lines.push({ label: "", values: stack.rate_low_rps, colour: style.colour, edge: true });
    }
    if (stack.failed_rps.some((value) => value)) {
      lines.push({ label: `${stack.name}, failed`, values: stack.failed_rps, colour: style.colour, dash: [2, 2], width: 1 });
    }
  }
  return { x: point.time_s, xRange: timeRange(point.time_s), xUnit: "s", xLabel: "time, s", unit, lines, bands, height: 300, sync: key };
}

function answers(point: PointSeries, key: string): ChartSpec {
  const series = point.answers ?? { time_s: [], lines: [] };
  const measured = series.lines.filter((line) => !line.is_ceiling);
  // A ceiling far above everything would press the measured lines flat: it leaves the chart instead.
  const most = Math.max(1, ...known(measured.map((line) => line.values)));
  return {
    x: series.time_s, xRange: [0, series.time_s[series.time_s.length - 1] ?? 1], xUnit: "s", xLabel: "time, s", unit: "answers", height: 300, sync: key,
    range: [0, most * 1.15],
    lines: series.lines.map((line): ChartLine => {
      const style = line.colour === null ? { colour: "--series-6" } : lineOf(line.colour);
      return { label: line.label, values: line.values, ...style, ...(line.is_ceiling ? { width: 1, dash: [2, 4] } : {}), direct: !line.is_ceiling };
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
    x: point.coarse_time_s, xRange: timeRange(point.coarse_time_s), xUnit: "s", xLabel: "time, s", unit: "ms", lines, height: 230, sync: key, logarithmic: true,
    ...(all.length ? { range: [Math.min(...all) * 0.8, Math.max(...all) * 1.25] as [number, number] } : {}),
  };
}

function tiers(point: PointSeries, number: number, key: string): ChartSpec {
  const names = [...new Set(point.stacks.flatMap((stack) => stack.tiers.map((line) => line.label.replace(/ (user|system)$/, ""))))];
  const lines = (point.stacks[number]?.tiers ?? []).map((line): ChartLine => {
    const tier = names.indexOf(line.label.replace(/ (user|system)$/, ""));
    const system = line.label.endsWith(" system");
    // The first tier has its stack's colour; what serves it is drawn in others.
    const colour = tier === 0 ? (point.stacks[number]?.colour ?? 0) : 6 - ((tier - 1) % 3);
    return { label: line.label, values: line.values, colour: `--series-${colour % COLOURS}`, ...(system ? { dash: [3, 3] } : {}), direct: true };
  });
  const largest = Math.max(0.1, ...known(point.stacks.flatMap((stack) => stack.tiers.map((line) => line.values))));
  return { x: point.coarse_time_s, xRange: timeRange(point.coarse_time_s), xUnit: "s", xLabel: "time, s", unit: "CPUs", lines, height: 200, sync: key, range: [0, largest * 1.1] };
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
  return { x: point.coarse_time_s, xRange: timeRange(point.coarse_time_s), xUnit: "s", xLabel: "time, s", unit: "%", lines, height: 200, sync: key, range: [0, 104] };
}

function percentileText(nines: number): string {
  return `p${Number((100 * (1 - 10 ** -nines)).toFixed(nines < 2 ? 1 : Math.ceil(nines))).toString()}`;
}

function distribution(point: PointSeries): ChartSpec {
  const ticks = [0, 0.30103, 1, 2, 3, 4, 5, 6].map((at) => ({ at, text: percentileText(at) }));
  return {
    x: point.nines, xRange: [0, point.nines[point.nines.length - 1] ?? 1], xUnit: "", xLabel: "percentile", unit: "ms", height: 340, logarithmic: true,
    lines: point.stacks.map((stack) => ({ label: stack.name, values: stack.distribution_ms, ...lineOf(stack.colour), direct: true })),
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

/** Over the amount of load, on a logarithmic axis: uPlot's own would need the same distance between all places. */
function curve(series: CurveSeries, kind: "rate" | "time"): ChartSpec {
  const x = series.amounts.map(Math.log10);
  const room = Math.max(0.02, ((x[x.length - 1] ?? 0) - (x[0] ?? 0)) * 0.03);
  const lines: ChartLine[] = [];
  const bands: [number, number][] = [];
  for (const stack of series.lines) {
    const style = { ...lineOf(stack.colour), sparse: true };
    const parts: [Line, Line, Line] = kind === "rate" ? [stack.rate_rps, stack.rate_high_rps, stack.rate_low_rps] : [stack.p99_ms, stack.p99_high_ms, stack.p99_low_ms];
    lines.push({ label: stack.name, values: parts[0], ...style, direct: true });
    if (parts[1].some((value) => value !== null)) {
      bands.push([lines.length, lines.length + 1]);
      lines.push({ label: "", values: parts[1], colour: style.colour, edge: true, sparse: true });
      lines.push({ label: "", values: parts[2], colour: style.colour, edge: true, sparse: true });
    }
    if (kind === "rate" && stack.law_rps.length) {
      lines.push({ label: `${stack.name}, the law`, values: stack.law_rps, colour: style.colour, width: 1, dash: [2, 4] });
    }
  }
  const unit = series.axis === "rate_rps" ? "req/s" : "connections";
  const [first, last] = [(x[0] ?? 0) - room, (x[x.length - 1] ?? 1) + room];
  const ticks = amountTicks(series.measured);
  return {
    x, xRange: [first, last], xUnit: unit, xLabel: `${unit}, logarithmic`, unit: kind === "rate" ? "req/s" : "ms", lines, bands, height: 320, logarithmic: kind === "time",
    xTicks: () => ticks,
    xText: (value) => `${numberText(10 ** value)} ${unit}`,
    ...(kind === "rate"
      ? {
          marks: series.crossings.map((one) => ({
            at: Math.log10(one.at),
            low: one.low === null ? Math.log10(one.at) : Math.max(first, Math.log10(one.low)),
            high: one.high === null ? Math.log10(one.at) : Math.min(last, Math.log10(one.high)),
          })),
        }
      : {}),
  };
}

function specOf(element: HTMLElement, points: PointSeries[], curves: CurveSeries[]): ChartSpec | undefined {
  const drawn = curves[Number(element.dataset["curve"] ?? -1)];
  if (drawn) return curve(drawn, element.dataset["kind"] === "curve-rate" ? "rate" : "time");
  const at = element.dataset["point"] ?? "0";
  const point = points[Number(at)];
  const stack = Number(element.dataset["stack"] ?? 0);
  if (!point) return undefined;
  // Charts of one point share their cursor; so do all charts of a single load.
  const group = `time-${element.dataset["group"] ?? at}`;
  switch (element.dataset["kind"]) {
    case "rate":
      return rates(point, group);
    case "count":
      return rates(point, group, "");
    case "answers":
      return answers(point, group);
    case "percentiles":
      return percentiles(point, stack, group);
    case "tiers":
      return tiers(point, stack, group);
    case "machine":
      return machine(point, stack, group);
    case "distribution":
      return distribution(point);
    default:
      return undefined;
  }
}

function copyButton(): void {
  const button = document.getElementById("copy");
  const command = document.getElementById("command");
  if (!button || !command) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const range = document.createRange();
    range.selectNodeContents(command);
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
    // The clipboard API is not there in a page opened from a file everywhere; the selection is copied instead, or stays to be copied.
    const done = document.execCommand("copy");
    button.textContent = done ? "Copied" : "Press Ctrl-C";
  });
}

const { points, curves = [] } = readData();
const charts: uPlot[] = [];
for (const element of document.querySelectorAll<HTMLElement>(".chart")) {
  const spec = specOf(element, points, curves);
  if (!spec) continue;
  if (spec.lines.some((line) => line.values.some((value) => value != null))) {
    charts.push(draw(element, spec));
  } else {
    element.textContent = "Nothing was measured here.";
    element.classList.add("empty");
  }
}
followTheme(() => charts.forEach((chart) => chart.redraw()));
copyButton();
document.documentElement.dataset["ready"] = "true";
