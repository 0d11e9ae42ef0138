// Saving a chart: its values as CSV, and itself as a picture with its title and sentence.

import type { ChartLine, ChartSpec } from "./chart";
import { painted } from "./paint";
import { pattern } from "./patterns";
import { colour } from "./theme";

const FONT = 'system-ui, -apple-system, "Segoe UI", sans-serif';

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The download has begun by the time the next task runs.
  setTimeout(() => URL.revokeObjectURL(link.href), 0);
}

function fileName(title: string, ending: string): string {
  const plain = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80);
  return `${plain || "chart"}.${ending}`;
}

function cell(value: Cell): string {
  if (value == null) return "";
  if (typeof value === "number") return value.toString();
  // A spreadsheet would take a text that begins so for a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

type Cell = string | number | null | undefined;

function table(rows: Cell[][]): string {
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

/** Every line that is drawn, a column each; one row for each place on the horizontal axis. */
export function csvOf(spec: ChartSpec): string {
  const shown = spec.lines.filter((line) => !(line.edge && line.label === "none"));
  // Axes with ticks of their own hold logarithms: the reader gets what the ticks say.
  const place = (value: number): string | number => (spec.xText ? spec.xText(value).replace(/^([\d,.]+) .*$/, (_all, number: string) => number.replaceAll(",", "")) : value);
  const head = [spec.xLabel.split(",")[0] ?? "", ...shown.map((line) => (spec.unit ? `${line.label} (${spec.unit})` : line.label))];
  return table([head, ...spec.x.map((x, index) => [place(x), ...shown.map((line) => (line.shown ?? line.values)[index])])]);
}

function textOf(element: Element | null | undefined): string {
  return element?.textContent?.replace(/\s+/g, " ").trim() ?? "";
}

/** A number as the page has it, `20,515` or `1.23×` or `3.4 %`, as a number; what is none stays as it is. */
function plain(text: string): Cell {
  const digits = text.replace(/[,×%\s]/g, "");
  return digits && Number.isFinite(Number(digits)) ? Number(digits) : text;
}

/** The rows of a strip, each a mean with its interval and the trials that are drawn beside it. */
function csvOfStrip(strip: Element): string {
  const ticks = [...strip.querySelectorAll(".strip-axis text")].map((tick) => [parseFloat(tick.getAttribute("x") ?? ""), plain(textOf(tick))] as const);
  const [first, last] = [ticks[0], ticks[ticks.length - 1]];
  // Trials are drawn on linear axes alone.
  const valueAt = (percent: number): Cell =>
    first && last && first !== last ? Number((Number(first[1]) + ((percent - first[0]) / (last[0] - first[0])) * (Number(last[1]) - Number(first[1]))).toPrecision(4)) : null;
  const rows = [...strip.querySelectorAll(".strip-name")].flatMap((name): Cell[][] => {
    const plot = name.nextElementSibling;
    const value = plot?.nextElementSibling;
    const [low = "", high = ""] = plot?.querySelector(".whisker") ? textOf(value?.querySelector("span")).split("–") : [];
    const trials = [...(plot?.querySelectorAll(".trial") ?? [])].map((dot) => [textOf(name), "trial", valueAt(parseFloat(dot.getAttribute("cx") ?? "")), null, null]);
    return [[textOf(name), "all", plain(textOf(value?.querySelector("b"))), plain(low), plain(high)], ...trials];
  });
  return table([["of", "what", textOf(strip.querySelector(".strip-unit")), "low", "high"], ...rows]);
}

/** The spots of a plane. */
function csvOfPlane(plane: Element, title: string): string {
  const spots = [...plane.querySelectorAll<SVGElement>(".spot")];
  const of = (spot: Element): Cell[] => {
    const words = spot.nextElementSibling;
    return [textOf(spot.parentElement?.querySelector(".name")), words?.matches("text:not(.name)") ? textOf(words) : ""];
  };
  return table([["stack", "load", "p99 ms", title], ...spots.map((spot) => [...of(spot), Number(spot.dataset["p99"]), Number(spot.dataset["cost"])])]);
}

/** `text` in lines that fit `width`. */
function wrapped(context: CanvasRenderingContext2D, text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    const longer = line ? `${line} ${word}` : word;
    if (line && context.measureText(longer).width > width) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return line ? [...lines, line] : lines;
}

function picture(drawn: HTMLCanvasElement, keys: ChartLine[], title: string, sentence: string, source: string): HTMLCanvasElement {
  const ratio = devicePixelRatio;
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const [pad, step] = [16 * ratio, 19 * ratio];
  const use = (size: number, weight = "400"): void => {
    context.font = `${weight} ${size * ratio}px ${FONT}`;
  };
  use(13);
  const told = wrapped(context, sentence, drawn.width);
  canvas.width = drawn.width + 2 * pad;
  canvas.height = drawn.height + 2 * pad + step * (told.length + keys.length + 3);
  context.fillStyle = colour("--ground");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.textBaseline = "top";
  context.fillStyle = colour("--ink");
  use(15, "600");
  context.fillText(title, pad, pad);
  context.drawImage(drawn, pad, pad + step * 1.5);
  let y = pad + step * 1.5 + drawn.height + step / 2;
  use(12);
  for (const line of keys) {
    if (line.pattern === undefined) {
      context.strokeStyle = colour(line.colour);
      context.lineWidth = 2.5 * ratio;
      context.setLineDash((line.dash ?? []).map((part) => part * ratio));
      context.beginPath();
      context.moveTo(pad, y + 7 * ratio);
      context.lineTo(pad + 26 * ratio, y + 7 * ratio);
      context.stroke();
    } else {
      context.fillStyle = pattern(line.pattern, line.colour, 0.8) ?? colour(line.colour);
      context.fillRect(pad, y, 26 * ratio, 14 * ratio);
    }
    context.fillStyle = colour("--ink");
    context.fillText(line.label, pad + 34 * ratio, y);
    y += step;
  }
  use(13);
  context.fillStyle = colour("--muted");
  for (const line of told) {
    context.fillText(line, pad, y);
    y += step;
  }
  use(11);
  context.fillText(source, pad, y + 3 * ratio);
  return canvas;
}

/** The nearest heading above an element in its section, with the caption of its figure; else what it is called to a screen reader. */
function titleOf(element: Element): string {
  const headings = [...(element.closest("section")?.querySelectorAll("h2, h3") ?? [])];
  const above = headings.filter((heading) => heading.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
  const caption = element.closest("figure")?.querySelector("figcaption");
  const title = [above[above.length - 1], caption].map(textOf).filter(Boolean).join(": ");
  return title || (element.getAttribute("aria-label")?.split(":")[0] ?? "");
}

/** The sentence below an element, or below the group of charts that it is in. */
function sentenceOf(element: Element): string {
  const holder = element.closest(".multiples") ?? element;
  for (let next = holder.nextElementSibling; next; next = next.nextElementSibling) {
    if (next.matches(".note")) return textOf(next);
    if (next.matches("h3, .chart, .multiples, .strip")) return "";
  }
  return "";
}

/** Two buttons below a chart. They stand beside it: a chart is one thing to a screen reader. */
function buttons(chart: Element, title: string, csv: () => string, drawn: () => HTMLCanvasElement, keys: ChartLine[] = []): void {
  const tools = document.createElement("div");
  tools.className = "chart-tools";
  const button = (text: string, act: () => void): void => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", `${text} of ${title}`);
    made.addEventListener("click", act);
    tools.append(made);
  };
  button("PNG", () => {
    const canvas = picture(drawn(), keys, title, sentenceOf(chart), document.title);
    canvas.toBlob((blob) => {
      if (blob) save(blob, fileName(title, "png"));
    });
  });
  button("CSV", () => save(new Blob([csv()], { type: "text/csv" }), fileName(title, "csv")));
  chart.after(tools);
}

/** Those of a chart that is drawn on a canvas. */
export function saveButtons(element: Element, drawn: () => HTMLCanvasElement, spec: ChartSpec): void {
  buttons(element, titleOf(element), () => csvOf(spec), drawn, spec.lines.filter((line) => !line.edge));
}

/** Those of the charts that are part of the page. */
export function saveButtonsOfThePage(): void {
  for (const strip of document.querySelectorAll(".strip")) {
    buttons(strip, titleOf(strip), () => csvOfStrip(strip), () => painted(strip));
  }
  for (const plane of document.querySelectorAll(".plane-frame")) {
    const title = titleOf(plane);
    buttons(plane, title, () => csvOfPlane(plane, title), () => painted(plane));
  }
}
