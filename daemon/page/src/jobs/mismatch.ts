// SPDX-License-Identifier: Apache-2.0
// The call in which ranks of a communicator differ, from the verdict of the job's open incident. Pure.
import { call, count } from "../format";
import type { Call, CommunicatorCalls, CommunicatorRef, Culprit, Incident } from "../messages";
import { hasRank } from "../ranks";

export interface Mismatch {
  communicator: CommunicatorRef;
  ranks: string; // of the job, that made another call: "0,4-7"
  culprits: Culprit[]; // the first of them, with their calls
  made: Call; // by the first culprit
  others: Call | undefined; // what the others called instead
}

const kCauses = ["operation_mismatch", "argument_mismatch"];

export function isMismatch(cause: string | undefined): boolean {
  return kCauses.includes(cause ?? "");
}

// undefined if the incident is over, or is about something else.
export function mismatchOf(incident: Incident | undefined): Mismatch | undefined {
  const verdict = incident?.closed_at === undefined ? incident?.verdicts[0] : undefined;
  const made = verdict?.culprits[0]?.call;
  if (verdict === undefined || made === undefined || verdict.communicator === undefined)
    return undefined;
  if (!isMismatch(verdict.cause) || verdict.ranks_of_communicator) return undefined;
  const { communicator, culprits, culprit_ranks: ranks, call: others } = verdict;
  return { communicator, ranks, culprits, made, others };
}

export function madeAnother(mismatch: Mismatch | undefined, id: string, rank: number): boolean {
  return mismatch !== undefined && mismatch.communicator.id === id && hasRank(mismatch.ranks, rank);
}

// Whether this is the call of the rank that differs from that of the others.
export function differs(
  mismatch: Mismatch | undefined,
  rank: number,
  comm: CommunicatorCalls,
  made: Call,
): boolean {
  if (mismatch === undefined || !madeAnother(mismatch, comm.communicator.id, rank)) return false;
  const own = mismatch.culprits.find((one) => one.rank === rank)?.call ?? mismatch.made;
  return own.position === made.position && own.operation === made.operation;
}

// "called Broadcast(...) #5 where the others called AllReduce(...) #5"
export function inWords({ made, others }: Mismatch): string {
  const name = (one: Call) => `${call(one)} #${count(one.position)}`;
  return others === undefined || others.operation === ""
    ? `called ${name(made)}, unlike the others`
    : `called ${name(made)} where the others called ${name(others)}`;
}
