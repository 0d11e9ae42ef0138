// What the page's data island holds: the dataclasses of src/weir/report/series.py, by name.

export type Line = (number | null)[];

export interface NamedLine {
  label: string;
  values: Line;
}

export interface StackSeries {
  label: string;
  name: string;
  colour: number;
  trials: number;
  rate_rps: Line;
  rate_low_rps: Line;
  rate_high_rps: Line;
  failed_rps: Line;
  p50_ms: Line;
  p90_ms: Line;
  p99_ms: Line;
  tiers: NamedLine[];
  machine_percent: NamedLine[];
  distribution_ms: Line;
  /** Empty except for a single trial under an open load. */
  service_ms: Line;
  waiting: NamedLine[];
  errors_rps: NamedLine[];
  memory_mb: NamedLine[];
  traffic_mb_s: NamedLine[];
  /** By the names of the engine's thread states, in their order. */
  threads: NamedLine[];
}

export interface PointSeries {
  time_s: number[];
  coarse_time_s: number[];
  threads_time_s: number[];
  nines: number[];
  stacks: StackSeries[];
  /** The rate that an open load asks for; empty of a closed one. */
  offered_rps: Line;
  answers?: AnswerSeries;
}

/** Of src/weir/report/charts.py. */
export interface AnswerSeries {
  time_s: number[];
  lines: (NamedLine & { colour: number | null; is_bound: boolean })[];
}

/** Of src/weir/report/curve_series.py. */
export interface CurveLine {
  name: string;
  colour: number;
  values: Line;
  low: Line;
  high: Line;
  law: Line;
}

export interface CurveSeries {
  unit: string;
  amounts: number[];
  measured: number[];
  charts: { metric: string; unit: string; logarithmic: boolean; lines: CurveLine[] }[];
  crossings: { metric: string; at: number; low: number | null; high: number | null; text: string }[];
  knees: { name: string; colour: number; at: number }[];
  limited: number[];
}

export interface ReportData {
  points: PointSeries[];
  curves?: CurveSeries[];
}

export function readData(): ReportData {
  return JSON.parse(document.getElementById("data")?.textContent ?? '{"points":[]}') as ReportData;
}
