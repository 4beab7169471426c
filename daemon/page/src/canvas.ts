// SPDX-License-Identifier: Apache-2.0
// Draws on a canvas in the page's own colours.

// Sizes the canvas for the screen's density, clears it, and returns its context.
export function prepare(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D {
  const scale = window.devicePixelRatio || 1;
  const wide = Math.round(width * scale);
  const high = Math.round(height * scale);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// Returns a lookup of the current theme's colours. It reads each colour once for each drawing.
export function colors(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  const known = new Map<string, string>();
  return (name) => {
    let value = known.get(name);
    if (value === undefined) {
      value = style.getPropertyValue(name).trim();
      known.set(name, value);
    }
    return value;
  };
}
