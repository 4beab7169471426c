// SPDX-License-Identifier: Apache-2.0
// Of a job that waits for another one: which one, and its incident's summary.

import { Sentence } from "../links";
import type { WaitedJob } from "../messages";
import { IncidentLink, JobLink } from "../parts";

export function Referral({ to }: { to: WaitedJob }) {
  const address = { job: to.job, tenant: to.tenant, attempt: String(to.attempt) };
  return (
    <>
      Waits for job <JobLink job={to.job} tenant={to.tenant} />
      {to.attempt > 0 && ` attempt ${to.attempt}`}
      {to.incident === "" ? (
        `: ${to.summary}`
      ) : (
        <>
          {" "}
          (<IncidentLink id={to.incident} />
          ): <Sentence job={address} text={to.summary} />
        </>
      )}
    </>
  );
}
