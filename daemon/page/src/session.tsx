// SPDX-License-Identifier: Apache-2.0
// Who the viewer is, by the daemon's answer, and the way to the login page and back.
import { useEffect, useState } from "preact/hooks";
import { logOut, whoamiPath } from "./api";

export interface Visitor {
  name: string;
  roles: string[];
  may_act: boolean;
  has_session: boolean;
  insecure: boolean; // of --insecure
}

// The view, which the address names behind the "#", comes back after the login.
export function goToLogin(): void {
  location.assign(`login${location.hash}`);
}

// An event stream that fails does not report why. Goes to the login page if the session has ended.
export async function checkSession(): Promise<Visitor | undefined> {
  try {
    const response = await fetch(whoamiPath);
    if (response.status === 401) goToLogin();
    return response.ok ? ((await response.json()) as Visitor) : undefined;
  } catch {
    return undefined; // the daemon does not respond; the page shows it elsewhere
  }
}

// Whether the viewer is an operator; false until the daemon has answered.
export function useMayAct(): boolean {
  const [mayAct, setMayAct] = useState(false);
  useEffect(() => void checkSession().then((visitor) => setMayAct(visitor?.may_act ?? false)), []);
  return mayAct;
}

// Undefined until the daemon has answered.
export function useVisitor(): Visitor | undefined {
  const [visitor, setVisitor] = useState<Visitor>();
  useEffect(() => void checkSession().then(setVisitor), []);
  return visitor;
}

export function Insecure({ visitor }: { visitor: Visitor | undefined }) {
  if (visitor === undefined || !visitor.insecure) return null;
  return (
    <p class="problem insecure" role="alert">
      This daemon runs with --insecure: every client that reaches it may read and act
    </p>
  );
}

export function Session({ visitor }: { visitor: Visitor | undefined }) {
  const [problem, setProblem] = useState("");
  const leave = async (): Promise<void> => {
    try {
      await logOut();
      goToLogin();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  if (visitor === undefined || !visitor.has_session) return null;
  return (
    <span class="session">
      <span class="soft" title={`roles: ${visitor.roles.join(", ")}`}>
        {visitor.name}
      </span>{" "}
      <button type="button" onClick={() => void leave()}>
        Log out
      </button>
      {problem !== "" && (
        <span class="warning" role="alert">
          {problem}
        </span>
      )}
    </span>
  );
}
