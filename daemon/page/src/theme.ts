// SPDX-License-Identifier: Apache-2.0
// Light or dark: the reader's choice, else the setting of the operating system; on paper always
// light. <html data-theme> holds the current theme, so that the style has each set of colours once.
import { useEffect, useState } from "preact/hooks";

const kKey = "rollcall-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const changed = new EventTarget();
let chosen = "";
try { chosen = localStorage.getItem(kKey) ?? ""; } catch { /* it lasts as long as the page */ }

function show(theme: string): void {
  document.documentElement.dataset["theme"] = theme;
  changed.dispatchEvent(new Event("change"));
}

function showUsual(): void { show(chosen !== "" ? chosen : system.matches ? "dark" : "light"); }

export function startTheme(): void {
  showUsual();
  system.addEventListener("change", showUsual);
  addEventListener("beforeprint", () => show("light"));
  addEventListener("afterprint", showUsual);
}

// "": follow the operating system.
export function chooseTheme(theme: string): void {
  chosen = theme;
  try { localStorage.setItem(kKey, theme); } catch { /* it lasts as long as the page */ }
  showUsual();
}

export function chosenTheme(): string { return chosen; }

// Draws anew whenever the colours change; returns the theme that is shown.
export function useTheme(): string {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((n) => n + 1);
    changed.addEventListener("change", listener);
    return () => changed.removeEventListener("change", listener);
  }, []);
  return document.documentElement.dataset["theme"] ?? "";
}
