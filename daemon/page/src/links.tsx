// SPDX-License-Identifier: Apache-2.0
// Links to the pages of one rank, one communicator and one host. Every view names them by these.
// A report that is read from a disk has no other pages: there the names are only text.
import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import { formatAddress } from "./address";
import type { JobAddress } from "./api";
import { communicator as communicatorWords, count } from "./format";
import { inWords, type Mismatch } from "./jobs/mismatch";
import type { CommunicatorRef, Verdict } from "./messages";
import { shortenRanks } from "./ranks";
import type { RankSet } from "./totals";

// Whether the view has other pages to link to.
export const HasPages = createContext(true);

// The default tenant's jobs and the newest attempts have the shortest addresses.
function ofJob(job: JobAddress): Record<string, string> {
  return { tenant: job.tenant === "default" ? "" : job.tenant, attempt: job.attempt };
}

export const jobAddress = (job: JobAddress) => formatAddress(["job", job.job], ofJob(job));
export const rankAddress = (job: JobAddress, rank: number) =>
  formatAddress(["job", job.job, "rank", String(rank)], ofJob(job));
export const communicatorAddress = (job: JobAddress, id: string) =>
  formatAddress(["job", job.job, "communicator", id], ofJob(job));
export const hostAddress = (host: string) => formatAddress(["host", host]);

function Link({ to, children }: { to: string; children: ComponentChildren }) {
  return useContext(HasPages) ? <a href={to}>{children}</a> : children;
}

export function RankLink({
  job,
  rank,
  children,
}: {
  job: JobAddress;
  rank: number;
  children?: ComponentChildren;
}) {
  return rank < 0 ? null : <Link to={rankAddress(job, rank)}>{children ?? rank}</Link>;
}

export function HostLink({ host }: { host: string }) {
  return host === "" ? null : <Link to={hostAddress(host)}>{host}</Link>;
}

export function CommunicatorLink({
  job,
  id,
  children,
}: {
  job: JobAddress;
  id: string;
  children?: ComponentChildren;
}) {
  return <Link to={communicatorAddress(job, id)}>{children ?? id}</Link>;
}

// `"dp" (4 ranks)`
export function CommunicatorWords({
  job,
  of,
}: {
  job: JobAddress;
  of: CommunicatorRef | undefined;
}) {
  const words = communicatorWords(of);
  if (of === undefined || of.id === "") return <>{words}</>;
  return (
    <CommunicatorLink job={job} id={of.id}>
      {words}
    </CommunicatorLink>
  );
}

// A list like "0-2,4,…": each number is a link to the rank's page. "-1" is an unknown rank.
export function RankLinks({ job, ranks }: { job: JobAddress; ranks: string }) {
  if (ranks.startsWith("-")) return <>{ranks}</>;
  return (
    <>
      {ranks
        .split(/(\d+)/)
        .map((part, index) =>
          /^\d/.test(part) ? <RankLink key={index} job={job} rank={Number(part)} /> : part,
        )}
    </>
  );
}

// "rank 3", "ranks 0-2,4 (4)"; nothing for an empty set.
export function RankSetLinks({ job, set, most }: { job: JobAddress; set: RankSet; most: number }) {
  if (set.total === 0) return null;
  return (
    <>
      {set.total === 1 ? "rank " : "ranks "}
      <RankLinks job={job} ranks={shortenRanks(set.ranks, most)} />
      {set.total > 1 && ` (${count(set.total)})`}
    </>
  );
}

export function HostLinks({ hosts }: { hosts: string[] }) {
  return (
    <>
      {hosts.map((host, index) => (
        <span key={host}>
          {index > 0 && ", "}
          <HostLink host={host} />
        </span>
      ))}
    </>
  );
}

// The hosts of a verdict's culprits: "node-1, node-2, …, 2,500 in all"
export function CulpritHosts({ verdict, most }: { verdict: Verdict; most: number }) {
  const hosts = [...new Set(verdict.culprits.map((one) => one.host).filter((host) => host !== ""))];
  const total = Math.max(verdict.culprit_hosts_total, hosts.length);
  return (
    <>
      <HostLinks hosts={hosts.slice(0, most)} />
      {total > most && `, …, ${count(total)} in all`}
    </>
  );
}

// A sentence of the daemon's, in which "rank 3" is a link. "rank 3 of communicator ..." is not a
// rank of the job, and neither is a number in a name, as in "all ranks 3b1b35f3".
export function Sentence({ job, text }: { job: JobAddress; text: string }) {
  const pattern = /\b(ranks? \d+(?:[-,]\d+)*)(?![,-]?\d)(?!\w)(?! of (?:the )?communicator)/g;
  return (
    <>
      {text.split(pattern).map((part, index) => {
        if (index % 2 === 0) return part;
        const space = part.indexOf(" ");
        const ranks = part.slice(space + 1);
        return (
          <span key={index}>
            {part.slice(0, space + 1)}
            <RankLinks job={job} ranks={ranks} />
          </span>
        );
      })}
    </>
  );
}

// "≠ rank 0 called Broadcast(...) #5 where the others called AllReduce(...) #5"
export function MismatchWords({ job, mismatch }: { job: JobAddress; mismatch: Mismatch }) {
  return (
    <div>
      <b>≠</b> {/[-,]/.test(mismatch.ranks) ? "ranks " : "rank "}
      <RankLinks job={job} ranks={shortenRanks(mismatch.ranks, 6)} /> {inWords(mismatch)}
    </div>
  );
}

// The pages of some ranks of a list.
export function RankPages({ job, ranks }: { job: JobAddress; ranks: number[] }) {
  if (ranks.length === 0) return null;
  return (
    <p class="soft">
      {ranks.length === 1 ? "Page of rank " : "Pages of ranks "}
      <RankLinks job={job} ranks={ranks.join(", ")} />
    </p>
  );
}
