// SPDX-License-Identifier: Apache-2.0
// Facts about hosts as sentences. The build reads the phrases from proto/host_facts.def; the daemon's
// sentences (daemon/words/host_fact_words.cc) use the same.
import type { HostFact } from "../messages";

declare const HOST_FACTS: Record<string, string>; // build.mjs
const kUnknown = "$s: $t"; // of an agent that is newer than this page

export function hostFactWords(fact: HostFact): string {
  const phrase = HOST_FACTS[fact.kind] ?? kUnknown;
  const words: Record<string, string> = {
    $s: fact.subject === "" ? "a device" : fact.subject,
    $v: String(fact.value),
    $t: fact.text,
    "pid $p": fact.pid === 0 ? "a process" : `pid ${fact.pid}`,
  };
  return phrase.replace(/pid \$p|\$[svt]/g, (name) => words[name]!).replace(" ()", "");
}
