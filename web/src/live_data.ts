// What the page is told: the JSON of src/weir/live/state.py and src/weir/live/runs.py.

import type { Line } from "./data";

export interface Points {
  /** The number of the first of them: they stand in place of all from there on. */
  first: number;
  step_s: number;
  time_s: number[];
  rate_rps: Line;
  failed_rps: Line;
  in_flight: Line;
  queued: Line;
  p50_ms: Line;
  p90_ms: Line;
  p99_ms: Line;
  tiers: Record<string, Line>;
}

export interface Process {
  name: string;
  tier: string;
  processes: number;
  threads: number;
  rss_bytes: number;
  cpus: number | null;
  pools: { pool: string; threads: number; doing: Record<string, number> }[];
}

export interface Trial {
  number: number;
  block: number | null;
  name: string;
  point: string;
  validity: "valid" | "suspect" | "invalid";
  reasons: string[];
  throughput_rps: number | null;
  p50_ms: number | null;
  p99_ms: number | null;
  failed: number | null;
  run: string | null;
}

export interface Step {
  at_s: number;
  text: string;
}

export interface Message {
  kind: "whole" | "news";
  phase: "preparing" | "starting" | "load" | "between" | "ended";
  ended: string | null;
  elapsed_s: number;
  left_s: number | null;
  trial: {
    number: number;
    total: number | null;
    block: number | null;
    blocks: number | null;
    name: string;
    point: string;
    duration_s: number | null;
    requests: number | null;
    load_s: number | null;
  } | null;
  now: {
    rate_rps: number | null;
    p50_ms: number | null;
    p90_ms: number | null;
    p99_ms: number | null;
    in_flight: number;
    queued: number;
    oldest_ms: number;
    answered: number;
    failed: number;
    errors: Record<string, number>;
  } | null;
  processes: Process[];
  logs: string[];
  points: Points;
  /** Whole lists, where something came to them. */
  steps?: Step[];
  trials?: Trial[];
  /** Only in what a viewer is told first. */
  about?: { title: string; question: string; has_trials: boolean };
}

export interface Run {
  name: string;
  title: string;
  question: string;
  kind: "run" | "load" | "";
  scale: string;
  ended: string;
  started_unix_s: number;
  problem: string;
}

export interface Found {
  sentence: string;
  validity: "valid" | "suspect" | "invalid";
  indicative: boolean;
}
