// Patterns for areas, so that what an area stands for does not rest on its colour.

import { colour } from "./theme";

const SIZE = 8;

type Stroke = [fromX: number, fromY: number, toX: number, toY: number];

/** Strokes on a tile of 8 × 8 that repeats; a dot is a stroke of no length. The first is a plain tint. */
const STROKES: Stroke[][] = [
  [],
  [[0, 8, 8, 0], [-2, 2, 2, -2], [6, 10, 10, 6]],
  [[0, 0, 8, 8], [-2, 6, 2, 10], [6, -2, 10, 2]],
  [[0, 4, 8, 4]],
  [[4, 0, 4, 8]],
  [[0, 8, 8, 0], [-2, 2, 2, -2], [6, 10, 10, 6], [0, 0, 8, 8]],
  [[2, 2, 2, 2], [6, 6, 6, 6]],
  [[0, 4, 8, 4], [4, 0, 4, 8]],
  [[4, 4, 4, 4]],
];

function tile(number: number, name: string, opacity: number): HTMLCanvasElement {
  const ratio = devicePixelRatio;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = Math.round(SIZE * ratio);
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  context.scale(canvas.width / SIZE, canvas.height / SIZE);
  context.fillStyle = context.strokeStyle = colour(name);
  context.globalAlpha = opacity * 0.32;
  context.fillRect(0, 0, SIZE, SIZE);
  context.globalAlpha = opacity;
  context.lineWidth = 1.1;
  context.lineCap = "round";
  for (const [fromX, fromY, toX, toY] of STROKES[number % STROKES.length] ?? []) {
    context.beginPath();
    if (fromX === toX && fromY === toY) {
      context.arc(fromX, fromY, 1.1, 0, 2 * Math.PI);
      context.fill();
    } else {
      context.moveTo(fromX, fromY);
      context.lineTo(toX, toY);
      context.stroke();
    }
  }
  return canvas;
}

/** The fill of an area on a canvas: a pattern in the colour that the custom property `name` has now. */
export function pattern(number: number, name: string, opacity: number): CanvasPattern | null {
  const context = document.createElement("canvas").getContext("2d");
  return context?.createPattern(tile(number, name, opacity), "repeat") ?? null;
}

/** The same as a picture, for the legend. */
export function patternPicture(number: number, name: string): string {
  return tile(number, name, 0.8).toDataURL();
}
