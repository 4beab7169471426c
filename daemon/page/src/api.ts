// SPDX-License-Identifier: Apache-2.0
// The addresses of docs/http_api.md, relative to the page's own folder.

function address(path: string, parameters: Record<string, string>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== "");
  const query = new URLSearchParams(given).toString();
  return `api/v1/${path}${query === "" ? "" : `?${query}`}`;
}

// A job, or one attempt of it; empty means the default tenant's job, else that of another tenant;
// the newest attempt. A type, so that it is a Record.
export type JobAddress = { job: string; tenant: string; attempt: string };

// `host`: only jobs with a process on it; empty means all.
export const jobsPath = (offset: number, limit: number, host = "") =>
  address("jobs", { host, offset: String(offset), limit: String(limit) });
// `at`: the newest state of this time or before; empty means now.
export const jobPath = (of: JobAddress, at = "") => address("job", { ...of, at });
export const communicatorPath = (of: JobAddress, id: string, offset: number, limit: number) =>
  address("communicator", { ...of, id, offset: String(offset), limit: String(limit) });
export const callsPath = (of: JobAddress, ranks: string, limit: number) =>
  ranks === "" ? "" : address("calls", { ...of, ranks, limit: String(limit) });
// Gives viewers of traces the calls between two moments, in milliseconds since the Unix epoch.
export const tracePath = (of: JobAddress, ranks: string, from: number, until: number) =>
  address("trace", {
    ...of,
    ranks,
    limit: "1024",
    from: new Date(Math.floor(from)).toISOString(),
    until: new Date(Math.ceil(until)).toISOString(),
  });
export const processesPath = (of: JobAddress, parameters: Record<string, string>) =>
  address("processes", { ...of, ...parameters });
export const incidentsPath = (parameters: Record<string, string>) =>
  address("incidents", parameters);
export const questionsPath = (parameters: Record<string, string>) =>
  address("questions", parameters);
export const incidentPath = (id: string) => address("incident", { id });
export const reportPath = (id: string) =>
  `report?${new URLSearchParams({ id, download: "1" }).toString()}`;

export const silencesPath = "api/v1/silences";
export const whoamiPath = "api/v1/whoami";

export async function logOut(): Promise<void> {
  const response = await fetch("logout", { method: "POST", headers: { "X-Rollcall": "1" } });
  if (!response.ok) throw new Error((await response.text()).trim());
}

// What an operator does: "incident/note", "incident/acknowledge", "silence", "silence/end".
export async function act(path: string, of: Record<string, string>): Promise<void> {
  const response = await fetch(address(path, of), {
    method: "POST",
    headers: { "X-Rollcall": "1" },
  });
  if (!response.ok) throw new Error((await response.text()).trim());
}

export async function takeStacks<T>(of: JobAddress, ranks: string): Promise<T> {
  const response = await fetch(address("stacks", { ...of, ranks }), {
    method: "POST",
    headers: { "X-Rollcall": "1" },
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  return (await response.json()) as T;
}

// Looks at a job that is not recorded. Takes some seconds.
export async function diagnose<T>(job: string, tenant: string): Promise<T> {
  const response = await fetch(address("diagnose", { job, tenant }), {
    method: "POST",
    headers: { "X-Rollcall": "1" },
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  return (await response.json()) as T;
}
