// SPDX-License-Identifier: Apache-2.0
// The runbook of a cause: its page below docs/runbook/, which the build puts into this one. It needs no network
// but the daemon's, so an alert may lead to it at any hour.
import type { ComponentChildren } from "preact";
import { formatAddress } from "../address";

// Code in backquotes; a link to another page of the docs is its words.
function inline(text: string): ComponentChildren[] {
  return text
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .split("`")
    .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}

const isItem = (line: string) => /^(- |\d+\. )/.test(line);

// The items of a list: a line that begins none continues the one before.
function items(lines: string[]): string[] {
  return lines
    .join("\n")
    .split(/\n(?=- |\d+\. )/)
    .map((item) => item.replace(/^(- |\d+\. )/, "").replace(/\s*\n\s*/g, " "));
}

function Block({ text }: { text: string }) {
  const lines = text.split("\n");
  const first = lines[0] ?? "";
  if (first.startsWith("# ")) return <h1>Runbook: {first.slice(2)}</h1>;
  if (first.startsWith("## ")) return <h2>{first.slice(3)}</h2>;
  if (first.startsWith("### ")) return <h3>{first.slice(4)}</h3>;
  if (!isItem(first)) return <p>{inline(lines.join(" "))}</p>;
  const all = items(lines).map((item, index) => <li key={index}>{inline(item)}</li>);
  return first.startsWith("- ") ? <ul>{all}</ul> : <ol>{all}</ol>;
}

export function RunbookLink({ cause }: { cause: string }) {
  if (RUNBOOKS[cause] === undefined) return null;
  return <a href={formatAddress(["runbook", cause])}>Runbook of {cause}</a>;
}

export function Runbook({ cause }: { cause: string }) {
  const text = RUNBOOKS[cause];
  if (text === undefined)
    return (
      <main>
        <h1>Runbook: {cause}</h1>
        <p>Unknown cause.</p>
      </main>
    );
  return (
    <main class="runbook">
      {text
        .trim()
        .split(/\n\n+/)
        .map((block, index) => (
          <Block key={index} text={block} />
        ))}
      <p>
        <a href={formatAddress(["history"], { cause })}>Incidents of this cause</a>
      </p>
    </main>
  );
}
