// SPDX-License-Identifier: Apache-2.0
// The keys of the page's parts: "?" lists them. The browser keeps the focus inside the open dialog,
// closes it by Esc, and returns the focus.
import { useEffect, useRef } from "preact/hooks";

const parts: [where: string, keys: [key: string, what: string][]][] = [
  [
    "Everywhere",
    [
      ["?", "this list"],
      ["Esc", "closes it"],
    ],
  ],
  [
    "Map of ranks",
    [
      ["← → ↑ ↓", "to another rank or host"],
      ["n, p", "to the next and previous problem"],
      ["Enter", "shows the rank's calls"],
      ["o", "opens the rank's page"],
    ],
  ],
  [
    "Timeline",
    [
      ["+, −", "zoom in and out"],
      ["← →", "earlier, later"],
      ["↑ ↓", "to another lane"],
      ["n, p", "to the next and previous call"],
      ["m", "shows the job as of that moment"],
      ["0, Esc", "shows all, and follows the job again"],
    ],
  ],
  [
    "Merged stacks",
    [
      ["Tab", "to the next frame"],
      ["Enter", "zooms into the frame, and out again"],
    ],
  ],
];
const kOfReports = ["Everywhere", "Merged stacks"];

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement ||
    target instanceof HTMLSelectElement ||
    target instanceof HTMLTextAreaElement
  );
}

// `isReport`: only the parts that a report has.
export function KeyboardHelp({ isReport }: { isReport: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = (): void => {
    if (dialog.current?.open === false) dialog.current.showModal();
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "?" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event.target)) return;
      event.preventDefault();
      open();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const shown = parts.filter(([where]) => !isReport || kOfReports.includes(where));
  return (
    <>
      <button type="button" class="keys-button" aria-label="Keys" title="Keys (?)" onClick={open}>
        ?
      </button>
      <dialog ref={dialog} class="keys" aria-labelledby="keys-title">
        <div class="section-head">
          <h2 id="keys-title">Keys</h2>
          <button type="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
        {shown.map(([where, keys]) => (
          <div key={where}>
            <h3>{where}</h3>
            <dl>
              {keys.map(([key, what]) => (
                <div key={key} class="keys-row">
                  <dt>{key}</dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </div>
        ))}
      </dialog>
    </>
  );
}
