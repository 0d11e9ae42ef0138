// What threads do, by the engine's names, in the order in which it tells them: the words of THREAD_STATE_WORDS in src/weir/model/observer_records.py,
// and always the same colour and pattern.

export interface ThreadState {
  label: string;
  /** Name of a CSS custom property. */
  colour: string;
  pattern: number;
}

const STATES: Record<string, ThreadState> = {
  on_cpu: { label: "on a CPU", colour: "--series-1", pattern: 0 },
  runnable: { label: "waiting for a CPU", colour: "--series-4", pattern: 1 },
  socket_io: { label: "in socket I/O", colour: "--series-0", pattern: 3 },
  event_wait: { label: "waiting for events", colour: "--series-5", pattern: 6 },
  lock: { label: "parked or on a lock", colour: "--series-3", pattern: 2 },
  accept: { label: "accepting", colour: "--series-2", pattern: 4 },
  disk: { label: "on files", colour: "--alarm", pattern: 7 },
  sleep: { label: "asleep", colour: "--series-6", pattern: 8 },
  other: { label: "elsewhere", colour: "--muted", pattern: 5 },
};

/** A state of a newer engine keeps its name. */
export function threadState(name: string): ThreadState {
  return STATES[name] ?? { label: name, colour: "--muted", pattern: 5 };
}
