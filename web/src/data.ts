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
}

export interface PointSeries {
  time_s: number[];
  coarse_time_s: number[];
  nines: number[];
  stacks: StackSeries[];
  /** Only in the report of a run. */
  answers?: AnswerSeries;
}

/** Of src/weir/report/ceiling_series.py. */
export interface AnswerSeries {
  time_s: number[];
  lines: (NamedLine & { colour: number | null; is_ceiling: boolean })[];
}

/** Of src/weir/report/curve_series.py. */
export interface CurveSeries {
  axis: string;
  amounts: number[];
  measured: number[];
  lines: {
    name: string;
    colour: number;
    rate_rps: Line;
    rate_low_rps: Line;
    rate_high_rps: Line;
    p99_ms: Line;
    p99_low_ms: Line;
    p99_high_ms: Line;
    law_rps: Line;
  }[];
  crossings: { at: number; low: number | null; high: number | null; text: string }[];
}

export interface ReportData {
  points: PointSeries[];
  /** Only in the report of a run. */
  curves?: CurveSeries[];
}

export function readData(): ReportData {
  return JSON.parse(document.getElementById("data")?.textContent ?? '{"points":[]}') as ReportData;
}
