// Saving a chart: its values as CSV, and itself as a picture with its title and sentence.

import type uPlot from "uplot";
import type { ChartSpec } from "./chart";
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

function cell(value: string | number | null | undefined): string {
  if (value == null) return "";
  if (typeof value === "number") return value.toString();
  // A spreadsheet would take a text that begins so for a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Every line that is drawn, a column each; one row for each place on the horizontal axis. */
export function csvOf(spec: ChartSpec): string {
  const shown = spec.lines.filter((line) => !(line.edge && line.label === "none"));
  // Axes with ticks of their own hold logarithms: the reader gets what the ticks say.
  const place = (value: number): string | number => (spec.xText ? spec.xText(value).replace(/^([\d,.]+) .*$/, (_all, number: string) => number.replaceAll(",", "")) : value);
  const head = [spec.xLabel.split(",")[0] ?? "", ...shown.map((line) => (spec.unit ? `${line.label} (${spec.unit})` : line.label))];
  const rows = spec.x.map((x, index) => [place(x), ...shown.map((line) => (line.shown ?? line.values)[index])]);
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
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

function picture(u: uPlot, spec: ChartSpec, title: string, sentence: string, source: string): HTMLCanvasElement {
  const ratio = devicePixelRatio;
  const drawn = u.ctx.canvas;
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const [pad, step] = [16 * ratio, 19 * ratio];
  const use = (size: number, weight = "400"): void => {
    context.font = `${weight} ${size * ratio}px ${FONT}`;
  };
  use(13);
  const told = wrapped(context, sentence, drawn.width);
  const names = spec.lines.filter((line) => !line.edge);
  canvas.width = drawn.width + 2 * pad;
  canvas.height = drawn.height + 2 * pad + step * (told.length + names.length + 3);
  context.fillStyle = colour("--ground");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.textBaseline = "top";
  context.fillStyle = colour("--ink");
  use(15, "600");
  context.fillText(title, pad, pad);
  context.drawImage(drawn, pad, pad + step * 1.5);
  let y = pad + step * 1.5 + drawn.height + step / 2;
  use(12);
  for (const line of names) {
    context.strokeStyle = colour(line.colour);
    context.lineWidth = 2.5 * ratio;
    context.setLineDash((line.dash ?? []).map((part) => part * ratio));
    context.beginPath();
    context.moveTo(pad, y + 7 * ratio);
    context.lineTo(pad + 26 * ratio, y + 7 * ratio);
    context.stroke();
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

/** The nearest heading above an element in its section, with the caption of its figure. */
function titleOf(element: HTMLElement): string {
  const headings = [...(element.closest("section")?.querySelectorAll<HTMLElement>("h2, h3") ?? [])];
  const above = headings.filter((heading) => heading.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
  const caption = element.closest("figure")?.querySelector("figcaption")?.textContent ?? "";
  return [above[above.length - 1]?.textContent ?? "", caption].map((text) => text.replace(/\s+/g, " ").trim()).filter(Boolean).join(": ");
}

/** The sentence below an element, or below the group of charts that it is in. */
function sentenceOf(element: HTMLElement): string {
  const holder = element.closest(".multiples") ?? element;
  for (let next = holder.nextElementSibling; next; next = next.nextElementSibling) {
    if (next.matches(".note")) return next.textContent?.replace(/\s+/g, " ").trim() ?? "";
    if (next.matches("h3, .chart, .multiples")) return "";
  }
  return "";
}

/** Two buttons below a chart. They stand beside it: a chart is one thing to a screen reader. */
export function saveButtons(element: HTMLElement, u: () => uPlot, spec: ChartSpec): void {
  const tools = document.createElement("div");
  tools.className = "chart-tools";
  const title = titleOf(element);
  const button = (text: string, act: () => void): void => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", `${text} of ${title}`);
    made.addEventListener("click", act);
    tools.append(made);
  };
  button("PNG", () => {
    const canvas = picture(u(), spec, title, sentenceOf(element), document.title);
    canvas.toBlob((blob) => {
      if (blob) save(blob, fileName(title, "png"));
    });
  });
  button("CSV", () => save(new Blob([csvOf(spec)], { type: "text/csv" }), fileName(title, "csv")));
  element.after(tools);
}
