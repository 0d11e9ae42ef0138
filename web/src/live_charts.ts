// The charts of the live page: those of the report (chart.ts), which are given more points as they come.

import type uPlot from "uplot";
import { type ChartLine, type ChartSpec, draw } from "./chart";
import type { Line } from "./data";
import type { Points } from "./live_data";

const SYNC = "live";
const SHORTEST_S = 10;

/** One chart. Its lines are drawn anew where their names change, and otherwise only get their values. */
class LiveChart {
  private chart: uPlot | undefined;
  private names = "";

  constructor(
    private readonly place: HTMLElement,
    private readonly spec: ChartSpec,
  ) {}

  show(x: number[], xRange: [number, number], lines: ChartLine[], range?: [number, number]): void {
    // The chart asks its spec for both ends whenever it scales.
    this.spec.x = x;
    this.spec.xRange = xRange;
    if (range) this.spec.range = range;
    const names = lines.map((line) => line.label).join("\n");
    if (this.chart && names === this.names) {
      this.chart.setData([x, ...lines.map((line) => line.values)] as uPlot.AlignedData);
      return;
    }
    this.names = names;
    this.spec.lines = lines;
    // In an element of its own: what watches the size of the old one goes with it.
    const inside = document.createElement("div");
    this.place.replaceChildren(inside);
    this.chart = draw(inside, this.spec);
    this.place.dataset["drawn"] = "true";
  }

  redraw(): void {
    this.chart?.redraw();
  }
}

function spec(unit: string, height: number, logarithmic = false): ChartSpec {
  return { x: [], xRange: [0, SHORTEST_S], xUnit: "s", xLabel: "time, s", unit, lines: [], height, logarithmic, sync: SYNC };
}

type LineName = "rate_rps" | "failed_rps" | "in_flight" | "queued" | "p50_ms" | "p90_ms" | "p99_ms";
const NAMES: LineName[] = ["rate_rps", "failed_rps", "in_flight", "queued", "p50_ms", "p90_ms", "p99_ms"];

/** From `first` on the new values stand in place of the old ones. */
function joined<T>(old: T[], first: number, values: T[]): T[] {
  return [...old.slice(0, first), ...values];
}

/** A line that ended before `length` has nothing from there on. */
function padded(line: Line, length: number): Line {
  return line.length < length ? [...line, ...Array<null>(length - line.length).fill(null)] : line;
}

export class LiveCharts {
  private time: number[] = [];
  private readonly lines = new Map<LineName, Line>();
  private tiers = new Map<string, Line>();
  private readonly rate: LiveChart;
  private readonly times: LiveChart;
  private readonly waiting: LiveChart;
  private readonly cpu: LiveChart;

  constructor(places: { rate: HTMLElement; times: HTMLElement; waiting: HTMLElement; tiers: HTMLElement }) {
    this.rate = new LiveChart(places.rate, spec("req/s", 230));
    this.times = new LiveChart(places.times, spec("ms", 230, true));
    this.waiting = new LiveChart(places.waiting, spec("", 200));
    this.cpu = new LiveChart(places.tiers, spec("CPUs", 200));
  }

  get hasTiers(): boolean {
    return this.tiers.size > 0;
  }

  /** Takes over new points, and draws: over `duration` seconds where the load has so many, and as long as it takes otherwise. */
  take(points: Points, duration: number | null): void {
    const { first } = points;
    this.time = joined(this.time, first, points.time_s);
    for (const name of NAMES) this.lines.set(name, joined(this.lines.get(name) ?? [], first, points[name]));
    const kept = first === 0 ? new Map<string, Line>() : this.tiers;
    for (const [tier, values] of Object.entries(points.tiers)) kept.set(tier, joined(padded(kept.get(tier) ?? [], first), first, values));
    this.tiers = new Map([...kept].map(([tier, values]) => [tier, padded(values, this.time.length)]));
    const last = (this.time[this.time.length - 1] ?? 0) + points.step_s / 2;
    this.show([0, Math.max(last, Math.min(duration ?? SHORTEST_S, 2 * Math.max(last, SHORTEST_S)))]);
  }

  redraw(): void {
    for (const chart of [this.rate, this.times, this.waiting, this.cpu]) chart.redraw();
  }

  private line(name: LineName): Line {
    return this.lines.get(name) ?? [];
  }

  private show(xRange: [number, number]): void {
    const failed = this.line("failed_rps");
    this.rate.show(this.time, xRange, [
      { label: "answered", values: this.line("rate_rps"), colour: "--series-0" },
      ...(failed.some((value) => value) ? [{ label: "failed", values: failed, colour: "--alarm", dash: [3, 3] }] : []),
    ]);
    const percentiles: ChartLine[] = [
      { label: "p99", values: this.line("p99_ms"), colour: "--series-0", dash: [3, 3], width: 1.5, direct: true },
      { label: "p90", values: this.line("p90_ms"), colour: "--series-0", dash: [10, 4], width: 1.5, direct: true },
      { label: "p50", values: this.line("p50_ms"), colour: "--series-0", direct: true },
    ];
    const known = percentiles.flatMap((line) => line.values).filter((value): value is number => value != null && value > 0);
    this.times.show(this.time, xRange, percentiles, known.length ? [Math.min(...known) * 0.8, Math.max(...known) * 1.25] : [0.1, 10]);
    const queued = this.line("queued");
    this.waiting.show(this.time, xRange, [
      { label: "in flight", values: this.line("in_flight"), colour: "--series-2" },
      ...(queued.some((value) => value) ? [{ label: "waiting for a connection", values: queued, colour: "--series-1", dash: [10, 4] }] : []),
    ]);
    if (!this.hasTiers) return;
    const tiers = [...this.tiers].sort(([one], [other]) => one.localeCompare(other));
    this.cpu.show(
      this.time,
      xRange,
      tiers.map(([tier, values], index) => ({ label: tier, values, colour: `--series-${index % 7}`, ...(index ? { dash: [10, 4] } : {}), direct: true })),
    );
  }
}
