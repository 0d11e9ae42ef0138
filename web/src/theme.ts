// Light or dark: as the system says, or as the reader chose. Canvases cannot use CSS, so they ask here for resolved colours.

type Theme = "light" | "dark" | "system";
const ORDER: Theme[] = ["system", "light", "dark"];
const NAMES: Record<Theme, string> = { system: "as the system", light: "light", dark: "dark" };

const probe = document.createElement("span");
const resolved = new Map<string, string>();

/** The colour that the custom property `name` has now, as rgb(): the property itself reads as `light-dark(...)`. */
export function colour(name: string): string {
  let value = resolved.get(name);
  if (value === undefined) {
    if (!probe.isConnected) {
      probe.hidden = true;
      document.body.append(probe);
    }
    probe.style.color = `var(${name})`;
    value = getComputedStyle(probe).color;
    resolved.set(name, value);
  }
  return value;
}

/** `colour` with an opacity between 0 and 1. */
export function faded(name: string, opacity: number): string {
  return colour(name).replace(/^rgb\(([^)]+)\)$/, `rgb($1 / ${opacity})`).replaceAll(",", "");
}

/** Wire up the toggle, the system's setting and printing; `redraw` is called whenever colours have changed. */
export function followTheme(redraw: () => void): void {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  let chosen: Theme = "system";

  const apply = (theme: Theme): void => {
    if (theme === "system") {
      delete root.dataset["theme"];
    } else {
      root.dataset["theme"] = theme;
    }
    resolved.clear();
    redraw();
  };
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      chosen = ORDER[(ORDER.indexOf(chosen) + 1) % ORDER.length] ?? "system";
      button.textContent = `Theme: ${NAMES[chosen]}`;
      apply(chosen);
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(chosen));
  // Paper is white: canvases are redrawn for it, the rest follows from the stylesheet.
  addEventListener("beforeprint", () => apply("light"));
  addEventListener("afterprint", () => apply(chosen));
}
