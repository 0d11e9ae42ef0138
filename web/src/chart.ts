// One chart: uPlot with our axes, our legend, labels at the line ends, and the keyboard.

import uPlot from "uplot";
import { pattern, patternPicture } from "./patterns";
import { colour, faded } from "./theme";

export interface ChartLine {
  label: string;
  values: (number | null | undefined)[];
  /** Name of a CSS custom property. */
  colour: string;
  width?: number;
  dash?: number[];
  /** Drawn as the edge of a band, without a line or a place in the legend. */
  edge?: boolean;
  /** Written at the line's end as well. */
  direct?: boolean;
  /** Drawn over places without a value, and with a dot at each that has one. */
  sparse?: boolean;
  /** The pattern of the area between this line and the lower one of its band; a plain tint without. */
  pattern?: number;
  /** What the legend and the table of values say, where it is not what is drawn: the part of a stacked line that is its own. */
  shown?: (number | null | undefined)[];
}

/** A place on the horizontal axis, with the interval around it. */
export interface ChartMark {
  at: number;
  low: number;
  high: number;
  /** Name of a CSS custom property; grey without. */
  colour?: string;
  /** Written at its foot. */
  words?: string;
}

export interface ChartSpec {
  x: number[];
  /** The ends of the horizontal axis. */
  xRange: [number, number];
  xUnit: string;
  xLabel: string;
  unit: string;
  lines: ChartLine[];
  /** Pairs of line numbers (upper, lower) with an area between them. */
  bands?: [number, number][];
  logarithmic?: boolean;
  /** The largest value that the axis must hold, the same for charts that are to be compared. */
  range?: [number, number];
  height: number;
  /** Charts with the same key share their cursor. */
  sync?: string;
  xTicks?: (low: number, high: number) => { at: number; text: string }[];
  xText?: (value: number) => string;
  marks?: ChartMark[];
  /** Parts of the horizontal axis to hatch, and what that means, in a few words. */
  hatched?: { parts: [number, number][]; words: string };
}

/** Three significant digits, thousands separated. */
export function numberText(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  return Number(value.toPrecision(3)).toString();
}

const FONT = '12px system-ui, -apple-system, "Segoe UI", sans-serif';

function logTicks(low: number, high: number): number[] {
  const make = (steps: number[]): number[] => {
    const ticks: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of steps) {
        const value = Number((step * 10 ** power).toPrecision(6));
        if (value >= low && value <= high) ticks.push(value);
      }
    }
    return ticks;
  };
  const fine = make([1, 2, 5]);
  if (fine.length > 8) {
    const coarse = make([1, 3]);
    return coarse.length > 8 ? make([1]) : coarse;
  }
  return fine.length < 3 ? make([1, 1.5, 2, 3, 4, 5, 7]) : fine;
}

/** Names at the ends of their lines, pushed apart where they would overlap. */
function endLabels(lines: ChartLine[]): uPlot.Plugin {
  return {
    hooks: {
      draw: (u: uPlot) => {
        const ratio = devicePixelRatio;
        const labels: { y: number; x: number; text: string; colour: string }[] = [];
        lines.forEach((line, index) => {
          if (!line.direct || !u.series[index + 1]?.show) return;
          const values = u.data[index + 1] ?? [];
          let last = values.length - 1;
          while (last >= 0 && values[last] == null) last--;
          const value = values[last];
          const at = u.data[0]?.[last];
          if (value == null || at === undefined) return;
          labels.push({ y: u.valToPos(value, "y", true), x: u.valToPos(at, "x", true), text: line.label, colour: colour(line.colour) });
        });
        labels.sort((one, other) => one.y - other.y);
        const step = 14 * ratio;
        labels.forEach((label, index) => {
          const above = labels[index - 1];
          if (above && label.y < above.y + step) label.y = above.y + step;
        });
        u.ctx.save();
        u.ctx.font = FONT.replace("12px", `${12 * ratio}px`);
        u.ctx.textBaseline = "middle";
        u.ctx.textAlign = "left";
        for (const label of labels) {
          u.ctx.fillStyle = label.colour;
          u.ctx.fillText(label.text, label.x + 6 * ratio, label.y);
        }
        u.ctx.restore();
      },
    },
  };
}

/** Places with their intervals, behind the lines. */
function marks(places: ChartMark[]): uPlot.Plugin {
  return {
    hooks: {
      drawClear: (u: uPlot) => {
        u.ctx.save();
        for (const place of places) {
          const [left, at, right] = [place.low, place.at, place.high].map((value) => u.valToPos(value, "x", true)) as [number, number, number];
          u.ctx.fillStyle = faded("--muted", 0.12);
          u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
          u.ctx.strokeStyle = colour(place.colour ?? "--muted");
          u.ctx.lineWidth = devicePixelRatio;
          u.ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
          u.ctx.beginPath();
          u.ctx.moveTo(at, u.bbox.top);
          u.ctx.lineTo(at, u.bbox.top + u.bbox.height);
          u.ctx.stroke();
          if (place.words) {
            u.ctx.fillStyle = colour(place.colour ?? "--muted");
            u.ctx.font = FONT.replace("12px", `${11 * devicePixelRatio}px`);
            u.ctx.textBaseline = "bottom";
            u.ctx.fillText(place.words, at + 4 * devicePixelRatio, u.bbox.top + u.bbox.height - 3 * devicePixelRatio);
          }
        }
        u.ctx.restore();
      },
    },
  };
}

/** Parts of the axis that are hatched, behind everything. */
function hatching(parts: [number, number][], words: string): uPlot.Plugin {
  return {
    hooks: {
      drawClear: (u: uPlot) => {
        u.ctx.save();
        for (const [low, high] of parts) {
          const [left, right] = [u.valToPos(low, "x", true), u.valToPos(high, "x", true)];
          u.ctx.fillStyle = pattern(5, "--doubt", 0.5) ?? faded("--doubt", 0.15);
          u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
        }
        const first = parts[0];
        if (first) {
          u.ctx.fillStyle = colour("--doubt");
          u.ctx.font = FONT.replace("12px", `${12 * devicePixelRatio}px`);
          u.ctx.textBaseline = "top";
          u.ctx.fillText(words, u.valToPos(first[0], "x", true) + 4 * devicePixelRatio, u.bbox.top + 3 * devicePixelRatio);
        }
        u.ctx.restore();
      },
    },
  };
}

/** Moves the cursor and tells the charts that share it: the third argument, which the types leave out, publishes the move. */
function moveCursor(u: uPlot, left: number, top: number): void {
  (u.setCursor as (at: { left: number; top: number }, fire: boolean, publish: boolean) => void)({ left, top }, true, true);
}

/** Arrow keys move the cursor of a focused chart, Home and End go to its ends, Escape takes it away. */
function keyboard(element: HTMLElement, u: uPlot): void {
  element.addEventListener("keydown", (event) => {
    const count = u.data[0]?.length ?? 0;
    if (count === 0) return;
    const now = u.cursor.idx ?? -1;
    const moves: Record<string, number> = { ArrowRight: now + 1, ArrowLeft: now < 0 ? count - 1 : now - 1, Home: 0, End: count - 1 };
    if (event.key === "Escape") {
      moveCursor(u, -10, -10);
      return;
    }
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const at = u.data[0]?.[Math.max(0, Math.min(count - 1, to))];
    if (at !== undefined) moveCursor(u, u.valToPos(at, "x"), u.bbox.height / devicePixelRatio / 2);
  });
}

/** Draws a chart into `element`, which is `across` wide: who draws several reads all their widths first. */
export function draw(element: HTMLElement, spec: ChartSpec, across = element.clientWidth): uPlot {
  const longest = Math.max(0, ...spec.lines.filter((line) => line.direct).map((line) => line.label.length));
  const widthIn = (space: number): number => Math.max(240, space);
  const width = widthIn(across);
  // On a narrow screen the legend names the lines; labels would take the room of the lines.
  const room = 16 + longest * 6.6;
  const right = longest && room <= width * 0.26 ? room : 14;
  const wide = right > 14;
  const xText = spec.xText ?? ((value: number) => `${numberText(value)} ${spec.xUnit}`);
  const axis: Partial<uPlot.Axis> = {
    stroke: () => colour("--muted"),
    grid: { stroke: () => colour("--grid"), width: 1 },
    ticks: { show: false },
    border: { show: true, stroke: () => colour("--line"), width: 1 },
    font: FONT,
  };
  const xTicks = spec.xTicks;
  const options: uPlot.Options = {
    width,
    height: spec.height,
    padding: [10, right, 0, 4],
    cursor: {
      ...(spec.sync ? { sync: { key: spec.sync, scales: ["x", null] } } : {}),
      drag: { x: false, y: false },
      points: { size: 7 },
      y: false,
    },
    legend: { live: true },
    scales: {
      x: { time: false, range: () => spec.xRange },
      y: {
        distr: spec.logarithmic ? 3 : 1,
        range: (_u, low, high) => {
          if (spec.range) return spec.range;
          if (spec.logarithmic) return [low * 0.85, high * 1.15];
          return [0, high > 0 ? high * 1.08 : 1];
        },
      },
    },
    axes: [
      {
        ...axis,
        size: 24,
        gap: 5,
        label: spec.xLabel,
        labelFont: FONT,
        labelSize: 20,
        labelGap: 0,
        ...(xTicks
          ? {
              splits: (u: uPlot) => xTicks(u.scales["x"]?.min ?? 0, u.scales["x"]?.max ?? 1).map((tick) => tick.at),
              values: (u: uPlot) => xTicks(u.scales["x"]?.min ?? 0, u.scales["x"]?.max ?? 1).map((tick) => tick.text),
            }
          : { values: (_u: uPlot, splits: number[]) => splits.map((value) => numberText(value)) }),
      },
      {
        ...axis,
        size: 56,
        gap: 6,
        border: { show: false },
        ...(spec.logarithmic
          ? {
              splits: (u: uPlot) => logTicks(u.scales["y"]?.min ?? 1, u.scales["y"]?.max ?? 10),
              values: (_u: uPlot, splits: number[]) => splits.map((value) => numberText(value)),
              filter: (_u: uPlot, splits: number[]) => splits,
            }
          : { values: (_u: uPlot, splits: number[]) => splits.map((value) => numberText(value)) }),
      },
    ],
    series: [
      { label: spec.xLabel.split(",")[0] ?? "", value: (_u, value) => (value == null ? "" : xText(value)) },
      ...spec.lines.map(
        (line): uPlot.Series => ({
          label: line.label,
          stroke: line.edge ? "transparent" : () => colour(line.colour),
          width: line.edge ? 0 : (line.width ?? 2),
          ...(line.dash ? { dash: line.dash } : {}),
          points: line.sparse && !line.edge ? { show: true, size: 6, fill: () => colour(line.colour) } : { show: false },
          spanGaps: line.sparse ?? false,
          value: (_u, value, _number, index) => {
            const shown = line.shown && index != null ? line.shown[index] : value;
            return shown == null ? "" : `${numberText(shown)} ${spec.unit}`;
          },
          ...(line.edge ? { class: "edge" } : {}),
        }),
      ),
    ],
    bands: (spec.bands ?? []).map(([upper, lower]) => ({
      series: [upper + 1, lower + 1],
      fill: () => {
        const line = spec.lines[upper];
        const tint = faded(line?.colour ?? "--muted", 0.16);
        return line?.pattern === undefined ? tint : ((pattern(line.pattern, line.colour, 0.8) ?? tint) as string);
      },
    })),
    plugins: [
      ...(spec.hatched?.parts.length ? [hatching(spec.hatched.parts, spec.hatched.words)] : []),
      ...(spec.marks?.length ? [marks(spec.marks)] : []),
      ...(wide ? [endLabels(spec.lines)] : []),
      // Patterns are pictures: other than colours they do not change with the theme by themselves.
      ...(spec.lines.some((line) => line.pattern !== undefined) ? [{ hooks: { draw: (u: uPlot) => markKeys(u, spec.lines) } }] : []),
    ],
  };
  const u = new uPlot(options, [spec.x, ...spec.lines.map((line) => line.values)] as uPlot.AlignedData, element);
  markKeys(u, spec.lines);
  keyboard(element, u);
  const resize = new ResizeObserver(() => {
    const now = widthIn(element.clientWidth);
    if (now !== u.width) u.setSize({ width: now, height: spec.height });
  });
  resize.observe(element);
  return u;
}

/** The legend's markers show the line's dash, or the area's pattern, so that the key does not rest on colour. */
function markKeys(u: uPlot, lines: ChartLine[]): void {
  const markers = u.root.querySelectorAll<HTMLElement>(".u-series");
  lines.forEach((line, index) => {
    const marker = markers[index + 1]?.querySelector<HTMLElement>(".u-marker");
    if (!marker) return;
    if (line.pattern !== undefined) {
      marker.classList.add("area");
      marker.style.border = `1px solid var(${line.colour})`;
      marker.style.backgroundImage = `url(${patternPicture(line.pattern, line.colour)})`;
      return;
    }
    const style = !line.dash ? "solid" : (line.dash[0] ?? 0) <= 3 ? "dotted" : "dashed";
    marker.style.border = "0";
    marker.style.borderTop = `2.5px ${style} var(${line.colour})`;
  });
}
