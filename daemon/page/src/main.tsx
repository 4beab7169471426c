// SPDX-License-Identifier: Apache-2.0
// The page's frame: the choice of the view, the state of the connection, the theme.
import "./style.css";
import "uplot/dist/uPlot.min.css";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type Address, formatAddress, titleOf, useAddress } from "./address";
import { AllHosts } from "./hosts/all_hosts";
import { Host } from "./hosts/host_page";
import { Compare } from "./incidents/compare";
import { History, kCauses } from "./incidents/history";
import { Incident, IncidentView } from "./incidents/incident";
import { Questions } from "./incidents/questions";
import { Runbook } from "./incidents/runbook";
import { Communicator } from "./jobs/communicator_page";
import { Job } from "./jobs/job";
import { Jobs } from "./jobs/jobs";
import { Rank } from "./jobs/rank_page";
import { KeyboardHelp } from "./keyboard";
import { HasPages } from "./links";
import { startLive, useClock, useLink } from "./live";
import type { Incident as IncidentMessage } from "./messages";
import { Insecure, Session, useVisitor } from "./session";
import { chooseTheme, chosenTheme, startTheme, useTheme } from "./theme";
import { ZoneSwitch } from "./zone";

const themes = ["", "light", "dark"];
const themeNames = ["system", "light", "dark"];

function Theme() {
  useTheme();
  return (
    <label class="theme">
      <span class="hidden">Theme</span>
      <select value={chosenTheme()} onChange={(event) => chooseTheme(event.currentTarget.value)}>
        {themes.map((value, index) => (
          <option key={value} value={value}>
            {themeNames[index]}
          </option>
        ))}
      </select>
    </label>
  );
}

function LinkState() {
  const link = useLink();
  const now = useClock(link.state !== "live");
  if (link.state === "live")
    return (
      <span class="link" role="status">
        <span aria-hidden="true">●</span> Live
      </span>
    );
  if (link.heardAt === 0)
    return (
      <span class="link" role="status">
        Connecting …
      </span>
    );
  return (
    <span class="link link-lost" role="alert">
      <span aria-hidden="true">○</span> Connection lost{" "}
      {Math.max(0, Math.round((now - link.heardAt) / 1000))} s ago; reconnecting
    </span>
  );
}

// What a view has read and what was chosen in it belong to one job, tenant and attempt.
function keyOf(name: string, query: URLSearchParams): string {
  return JSON.stringify([query.get("tenant"), name, query.get("attempt")]);
}

function View({ path, query }: Address) {
  const [view, first, second, third] = path;
  if (view === "job" && first !== undefined && second === "rank" && /^\d+$/.test(third ?? ""))
    return <Rank key={path.join("/") + keyOf(first, query)} name={first} rank={Number(third)} />;
  if (view === "job" && first !== undefined && second === "communicator" && third !== undefined)
    return <Communicator key={path.join("/") + keyOf(first, query)} name={first} id={third} />;
  if (view === "host" && first !== undefined) return <Host key={first} host={first} />;
  if (view === "job" && first !== undefined && second === undefined)
    return <Job key={keyOf(first, query)} name={first} />;
  if (view === "incident" && first !== undefined) return <Incident key={first} id={first} />;
  if (view === "hosts") return <AllHosts />;
  if (view === "history") return <History />;
  if (view === "questions") return <Questions causes={kCauses} />;
  if (view === "compare" && first !== undefined && second !== undefined)
    return <Compare ids={[first, second]} />;
  if (view === "runbook" && first !== undefined) return <Runbook cause={first} />;
  if (view === undefined) return <Jobs />;
  return (
    <main>
      <h1>Page not found</h1>
      <p>
        <a href={formatAddress([])}>All jobs</a>
      </p>
    </main>
  );
}

// Keys and screen readers go on from the top of the view.
function focusMain(): void {
  const main = document.querySelector("main");
  main?.setAttribute("tabindex", "-1");
  main?.focus({ preventScroll: true });
}

function Page() {
  const { path, query } = useAddress();
  const link = useLink();
  const visitor = useVisitor();
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = titleOf(path);
    scrollTo(0, 0);
    if (!isFirst.current) focusMain();
    isFirst.current = false;
  }, [path.join("/")]);
  return (
    <div class={link.state === "lost" ? "page old" : "page"}>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          focusMain();
        }}
      >
        Skip to the content
      </a>
      <header>
        <a class="brand" href={formatAddress([])}>
          Rollcall
        </a>
        <nav aria-label="views">
          <a href={formatAddress([])} aria-current={path.length === 0 ? "page" : undefined}>
            Jobs
          </a>
          <a
            href={formatAddress(["history"])}
            aria-current={["history", "questions"].includes(path[0] ?? "") ? "page" : undefined}
          >
            Incidents
          </a>
          <a
            href={formatAddress(["hosts"])}
            aria-current={["hosts", "host"].includes(path[0] ?? "") ? "page" : undefined}
          >
            Hosts
          </a>
        </nav>
        <LinkState />
        <Session visitor={visitor} />
        <ZoneSwitch />
        <Theme />
        <KeyboardHelp isReport={false} />
      </header>
      <Insecure visitor={visitor} />
      <View path={path} query={query} />
    </div>
  );
}

// A report contains the incident, and shows the same view without a daemon.
function frozen(): IncidentMessage | undefined {
  const text = document.getElementById("rollcall-incident")?.textContent;
  return text === undefined || text === null ? undefined : (JSON.parse(text) as IncidentMessage);
}

startTheme();
const incident = frozen();
if (incident !== undefined) {
  document.querySelector("main")?.remove();
  render(
    <main class="report">
      <div class="report-tools">
        <ZoneSwitch />
        <KeyboardHelp isReport />
      </div>
      <HasPages.Provider value={false}>
        <IncidentView incident={incident} frozen />
      </HasPages.Provider>
    </main>,
    document.body,
  );
} else {
  startLive();
  render(<Page />, document.getElementById("app")!);
}
