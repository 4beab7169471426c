// SPDX-License-Identifier: Apache-2.0
// Light or dark: the reader's choice, else the setting of the operating system; always light on
// paper. <html data-theme> contains the current theme, so that the style defines each set of
// colours once.
import { useEffect, useState } from "preact/hooks";

const kKey = "rollcall-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const changed = new EventTarget();
let chosen = "";
try {
  chosen = localStorage.getItem(kKey) ?? "";
} catch {
  /* the choice lasts as long as the page */
}

function show(theme: string): void {
  document.documentElement.dataset.theme = theme;
  changed.dispatchEvent(new Event("change"));
}

function showUsual(): void {
  show(chosen !== "" ? chosen : system.matches ? "dark" : "light");
}

export function startTheme(): void {
  showUsual();
  system.addEventListener("change", showUsual);
  addEventListener("beforeprint", () => show("light"));
  addEventListener("afterprint", showUsual);
}

// "" follows the operating system.
export function chooseTheme(theme: string): void {
  chosen = theme;
  try {
    localStorage.setItem(kKey, theme);
  } catch {
    /* the choice lasts as long as the page */
  }
  showUsual();
}

export function chosenTheme(): string {
  return chosen;
}

// Redraws when the theme changes; returns the current theme.
export function useTheme(): string {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((n) => n + 1);
    changed.addEventListener("change", listener);
    return () => changed.removeEventListener("change", listener);
  }, []);
  return document.documentElement.dataset.theme ?? "";
}
