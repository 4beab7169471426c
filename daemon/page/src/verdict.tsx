// SPDX-License-Identifier: Apache-2.0
// One verdict of an incident: culprits and waiting ranks side by side, histories, advice, evidence.
import { call, communicator, count, culprit, graph, seconds, step } from "./format";
import type { Call, Incident, Verdict } from "./messages";
import { Table } from "./parts";
import { stackTop } from "./stacks";
import { culpritHosts, culpritRanks, rankWords, waitingRanks } from "./totals";
import { Waits } from "./waits";

function Facts({ facts }: { facts: [string, preact.ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts
        .filter(
          ([, value]) => value !== "" && value !== null && value !== undefined && value !== false,
        )
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function CallCard({
  title,
  who,
  position,
  made,
  code,
  differs,
}: {
  title: string;
  who: string;
  position: string;
  made: Call | undefined;
  code: string;
  differs: string[];
}) {
  const mark = (field: string, value: string) =>
    differs.includes(field) ? <mark>{value}</mark> : value;
  return (
    <div class="card">
      <h3>{title}</h3>
      <p>{who}</p>
      {made !== undefined && made.operation !== "" && (
        <Facts
          facts={[
            ["Call", mark("operation", made.operation)],
            ["Position", count(made.position)],
            ["Data type", made.dtype === "" ? "" : mark("dtype", made.dtype)],
            [
              made.dtype === "" ? "Bytes" : "Count",
              made.dtype === "" && made.count === 0 ? "" : mark("count", count(made.count)),
            ],
            ["For PyTorch", made.logical],
            ["Shape", made.shape],
            ["CUDA graph", graph(made.graph)],
            ["Reduction", made.reduction === "" ? "" : mark("reduction", made.reduction)],
            ["Root", made.root < 0 ? "" : mark("root", String(made.root))],
          ]}
        />
      )}
      {code !== "" && <p class="code">{code}</p>}
      {position !== "" && (
        <p>
          Now in <span class="code">{position}</span>
        </p>
      )}
    </div>
  );
}

const kCulpritsNamed = 6;

// The first culprits in full, and the ranks of all if there are more.
function culpritWords(verdict: Verdict): string {
  const named = verdict.culprits.slice(0, kCulpritsNamed).map(culprit).join("; ");
  const all = culpritRanks(verdict);
  if (all.total <= kCulpritsNamed) return named;
  return `${named}; all: ${rankWords(all, 12)} on ${culpritHosts(verdict, 3)}`;
}

function SideBySide({ verdict, incident }: { verdict: Verdict; incident: Incident }) {
  const first = verdict.culprits[0];
  const culprits = culpritRanks(verdict).total;
  const waiting = waitingRanks(verdict);
  const waited = verdict.waited_seconds > 0 ? `, for ${seconds(verdict.waited_seconds)}` : "";
  return (
    <div class="cards">
      <CallCard
        title={culprits === 1 ? "Culprit" : `Culprits (${count(culprits)})`}
        who={culpritWords(verdict)}
        position={first === undefined ? "" : stackTop(incident, first.rank)}
        made={first?.call}
        code={first?.code ?? ""}
        differs={verdict.mismatched_fields}
      />
      <CallCard
        title={waiting.total === 0 ? "The others" : `Waiting (${count(waiting.total)})`}
        who={waiting.total === 0 ? "" : rankWords(waiting, 12) + waited}
        position=""
        made={verdict.call}
        code={verdict.call?.code ?? ""}
        differs={verdict.mismatched_fields}
      />
    </div>
  );
}

function Histories({ verdict }: { verdict: Verdict }) {
  if (verdict.histories.length === 0) return null;
  const cell = (made: Call | undefined) =>
    made === undefined || made.operation === "" ? (
      <td class="soft">(no such call)</td>
    ) : (
      <td>
        #{count(made.position)} {call(made)}
        {made.code !== "" && <div class="code">{made.code}</div>}
      </td>
    );
  return (
    <>
      <h3>The two histories, call by call</h3>
      <Table label="histories" kind="histories" columns={[[""], ["The others"], ["The culprits"]]}>
        {verdict.histories.map((line, index) => (
          <tr key={index} class={line.differs ? "differs" : ""}>
            <td>{line.differs ? "≠" : "="}</td>
            {cell(line.others)}
            {cell(line.culprits)}
          </tr>
        ))}
      
      </Table>
    </>
  );
}

function List({ title, lines }: { title: string; lines: string[] }) {
  if (lines.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {lines.map((line, index) => (
          <li key={index}>{line}</li>
        ))}
      </ul>
    </>
  );
}

export function VerdictView({
  verdict,
  first,
  incident,
}: {
  verdict: Verdict;
  first: boolean;
  incident: Incident;
}) {
  return (
    <>
      {!first && (
        <h3 class="also">
          {verdict.is_consequence ? "A consequence: " : "Also found: "}
          {verdict.summary}
        </h3>
      )}
      <Facts
        facts={[
          ["Cause", verdict.cause],
          ["Certainty", verdict.certainty],
          ["Communicator", communicator(verdict.communicator)],
          [
            "Call",
            verdict.call !== undefined && verdict.call.operation !== ""
              ? `#${count(verdict.call.position)} ${call(verdict.call)}`
              : "",
          ],
          ["Differs in", verdict.mismatched_fields.join(", ")],
          ["How", verdict.divergence],
          ["Waited", verdict.waited_seconds > 0 ? seconds(verdict.waited_seconds) : ""],
          ["Step", step(verdict)],
        ]}
      />
      <SideBySide verdict={verdict} incident={incident} />
      <Histories verdict={verdict} />
      {verdict.chain.length > 0 && (
        <>
          <h3>Who waits for whom</h3>
          <Waits chain={verdict.chain} total={verdict.chain_total} />
        </>
      )}
      {verdict.advice.length > 0 && (
        <>
          <h3>What to do</h3>
          <ul class="advice">
            {verdict.advice.map((advice) => (
              <li key={advice.id}>
                <b>{advice.id}</b> {advice.text}
              </li>
            ))}
          </ul>
        </>
      )}
      <List title="Evidence" lines={verdict.evidence} />
      <List title="Missing evidence" lines={verdict.missing_evidence} />
    </>
  );
}
