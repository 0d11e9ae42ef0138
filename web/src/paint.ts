// Charts that are part of the page, as SVG and text, on a canvas: with the places, colours and fonts that the browser gave them.

/** Room for what reaches over the edges: the numbers below an axis. */
const MARGIN = 24;

type Pen = CanvasRenderingContext2D;

function stroke(pen: Pen, style: CSSStyleDeclaration): void {
  if (style.stroke === "none") return;
  pen.strokeStyle = style.stroke;
  pen.lineWidth = parseFloat(style.strokeWidth);
  pen.lineCap = style.strokeLinecap as CanvasLineCap;
  pen.setLineDash(style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(/[\s,]+/).map(parseFloat));
  pen.stroke();
}

function shape(pen: Pen, element: SVGGraphicsElement, style: CSSStyleDeclaration): void {
  const { e: left = 0, f: top = 0 } = element.getScreenCTM() ?? {};
  pen.beginPath();
  if (element instanceof SVGLineElement) {
    pen.moveTo(left + element.x1.baseVal.value, top + element.y1.baseVal.value);
    pen.lineTo(left + element.x2.baseVal.value, top + element.y2.baseVal.value);
    stroke(pen, style);
  } else if (element instanceof SVGCircleElement) {
    // Its centre and radius may come from the stylesheet, which its attributes do not say.
    const box = element.getBBox();
    pen.arc(left + box.x + box.width / 2, top + box.y + box.height / 2, box.width / 2, 0, 2 * Math.PI);
    if (style.fill !== "none") {
      pen.fillStyle = style.fill;
      pen.fill();
    }
    stroke(pen, style);
  } else if (element instanceof SVGTextElement && element.getNumberOfChars() > 0) {
    const start = element.getStartPositionOfChar(0);
    pen.textBaseline = "alphabetic";
    pen.fillStyle = style.fill;
    pen.fillText(element.textContent ?? "", left + start.x, top + start.y);
  }
}

/** Words one by one, each in its place: lines break where the browser broke them. */
function words(pen: Pen, node: Text, style: CSSStyleDeclaration): void {
  pen.textBaseline = "middle";
  pen.fillStyle = style.color;
  for (const found of node.data.matchAll(/\S+/g)) {
    const range = document.createRange();
    range.setStart(node, found.index);
    range.setEnd(node, found.index + found[0].length);
    const box = range.getBoundingClientRect();
    pen.fillText(found[0], box.left, box.top + box.height / 2);
  }
}

function paint(pen: Pen, element: Element): void {
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  pen.save();
  pen.globalAlpha = parseFloat(style.opacity);
  pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  if (element instanceof SVGGraphicsElement && !(element instanceof SVGSVGElement)) {
    shape(pen, element, style);
  } else {
    pen.fillStyle = style.backgroundColor;
    pen.fillRect(box.left, box.top, box.width, box.height);
    pen.fillStyle = style.borderLeftColor;
    pen.fillRect(box.left, box.top, parseFloat(style.borderLeftWidth), box.height);
    pen.fillStyle = style.borderBottomColor;
    pen.fillRect(box.left, box.bottom, box.width, -parseFloat(style.borderBottomWidth));
    for (const node of element.childNodes) if (node instanceof Text) words(pen, node, style);
  }
  pen.restore();
  for (const child of element.children) paint(pen, child);
}

/** An element and everything in it, as it stands on the page. */
export function painted(element: Element): HTMLCanvasElement {
  const ratio = devicePixelRatio;
  const box = element.getBoundingClientRect();
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil((box.width + 2 * MARGIN) * ratio);
  canvas.height = Math.ceil((box.height + 2 * MARGIN) * ratio);
  const pen = canvas.getContext("2d");
  if (!pen) return canvas;
  pen.scale(ratio, ratio);
  pen.translate(MARGIN - box.left, MARGIN - box.top);
  paint(pen, element);
  return canvas;
}
