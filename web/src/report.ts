// The report's charts. The page itself is complete without this script; it adds what needs a canvas, the theme and the copy button.

import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./report.css";
import { type ChartSpec, draw } from "./chart";
import { readData } from "./data";
import { saveButtons, saveButtonsOfThePage } from "./save";
import { specOf } from "./specs";
import { followTheme } from "./theme";

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

/** So many charts are drawn at once; further ones when they come near the window: a run of a hundred points has a thousand. */
const AT_ONCE = 30;

class Charts {
  private readonly waiting = new Map<HTMLElement, ChartSpec>();
  private readonly drawn = new Map<HTMLElement, uPlot>();
  private readonly seen = new IntersectionObserver(
    (entries) => this.drawEach(entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target as HTMLElement)),
    { rootMargin: "100% 0px" },
  );

  add(element: HTMLElement, spec: ChartSpec): void {
    this.waiting.set(element, spec);
    saveButtons(element, () => this.drawNow(element).ctx.canvas, spec);
  }

  /** Draws the first ones, and the others when they come near. */
  begin(): void {
    const elements = [...this.waiting.keys()];
    for (const element of elements.slice(AT_ONCE)) {
      // The room that it will take, so that the page does not jump.
      element.style.minHeight = `${(this.waiting.get(element)?.height ?? 0) + 30}px`;
      this.seen.observe(element);
    }
    this.drawEach(elements.slice(0, AT_ONCE));
  }

  drawAll(): void {
    this.drawEach([...this.waiting.keys()]);
  }

  redraw(): void {
    for (const chart of this.drawn.values()) chart.redraw();
  }

  /** All widths are read before anything is drawn: behind each chart the browser would lay out the whole page anew to tell the next one. */
  private drawEach(elements: HTMLElement[]): void {
    const widths = elements.map((element) => element.clientWidth);
    elements.forEach((element, index) => this.drawNow(element, widths[index]));
  }

  private drawNow(element: HTMLElement, width = element.clientWidth): uPlot {
    const before = this.drawn.get(element);
    if (before) return before;
    const spec = this.waiting.get(element) as ChartSpec;
    this.seen.unobserve(element);
    this.waiting.delete(element);
    const chart = draw(element, spec, width);
    this.drawn.set(element, chart);
    return chart;
  }
}

const { points, curves = [] } = readData();
const charts = new Charts();
// Before the theme's own listener, which redraws what there is for paper.
addEventListener("beforeprint", () => charts.drawAll());
for (const element of document.querySelectorAll<HTMLElement>(".chart")) {
  const spec = specOf(element, points, curves);
  if (!spec) continue;
  if (spec.lines.some((line) => !line.edge && line.values.some((value) => value != null))) {
    charts.add(element, spec);
  } else {
    element.textContent = "Nothing was measured here.";
    element.classList.add("empty");
  }
}
charts.begin();
saveButtonsOfThePage();
followTheme(() => charts.redraw());
copyButton();
// uPlot paints its canvases in microtasks: those of the charts that were just made come before this one.
queueMicrotask(() => {
  performance.mark("drawn");
  document.documentElement.dataset["ready"] = "true";
});
