// SPDX-License-Identifier: Apache-2.0
// The addresses of docs/http_api.md, relative to the page's own folder.

function address(path: string, parameters: Record<string, string>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== "");
  const query = new URLSearchParams(given).toString();
  return `api/v1/${path}${query === "" ? "" : `?${query}`}`;
}

export const jobsPath = "api/v1/jobs";
export const jobPath = (job: string) => address("job", { job });
export const callsPath = (job: string, ranks: string, limit: number) =>
  ranks === "" ? "" : address("calls", { job, ranks, limit: String(limit) });
export const processesPath = (job: string, parameters: Record<string, string>) =>
  address("processes", { job, ...parameters });
export const incidentsPath = (parameters: Record<string, string>) => address("incidents", parameters);
export const incidentPath = (id: string) => address("incident", { id });
export const reportPath = (id: string) => `report?${new URLSearchParams({ id, download: "1" }).toString()}`;

export async function takeStacks<T>(job: string, ranks: string): Promise<T> {
  const answer = await fetch(address("stacks", { job, ranks }), {
    method: "POST",
    headers: { "X-Rollcall": "1" },
  });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return (await answer.json()) as T;
}
