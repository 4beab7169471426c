# SPDX-License-Identifier: Apache-2.0
"""Checks README and docs against the programs and the sources: flags, causes, environment
variables, metrics, fields, addresses, and links between the pages."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Subcommands are those of `rollcall`.
PROGRAMS = {
    "rollcall-agent": os.environ["DOCS_TEST_AGENT"],
    "rollcalld": os.environ["DOCS_TEST_ROLLCALLD"],
    "rollcall": os.environ["DOCS_TEST_ROLLCALL"],
}


def read(name):
    return (ROOT / name).read_text()


def without_blocks(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.MULTILINE)


def section(text, heading):
    """The text below a heading, up to the next heading of its level or above."""
    found = re.search(rf"^(#+) {re.escape(heading)}.*\n", text, re.MULTILINE)
    assert found, f"no heading {heading!r}"
    end = re.search(rf"^#{{1,{len(found[1])}}} ", text[found.end():], re.MULTILINE)
    return text[found.end():found.end() + end.start() if end else None]


def rows(text):
    """The cells of each row of the tables in a text, headings left out."""
    table = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in table]
    rules = {i for i, row in enumerate(cells) if all(re.fullmatch(r"-+", cell) for cell in row)}
    return [row for i, row in enumerate(cells) if i not in rules and i + 1 not in rules]


def code(cell):
    """The words in backquotes in a cell."""
    return re.findall(r"`([^`]+)`", cell)


# Flags.

def read_help(program, *arguments):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ROLLCALL")}
    return subprocess.run([PROGRAMS[program], *arguments, "--help"], capture_output=True, text=True,
                          check=True, env=clean, timeout=120).stdout


def parse_flags(text):
    """Name -> (default, environment variable) of the flags in a --help."""
    flags = {}
    for name, rest in re.findall(r"^ +(?:-\w,)?(--[\w-]+)(.*)$", text, re.MULTILINE):
        head = re.split(r" {2,}", rest)[0]
        default = re.search(r"=([^=\s]+)(?: \(|$)", head)
        variable = re.search(r"\(Env:(\w+)\)", head)
        flags[name] = (default[1] if default else "", variable[1] if variable else "")
    flags.pop("--help", None)
    flags.pop("--version", None)
    return flags


def flag_rows(text):
    """The rows of the tables of flags in a text: flag, default, ..."""
    return [row for row in rows(text) if row[0].startswith("`--")]


def documented_flags(table):
    """Name -> default, of rows of flags."""
    found = {}
    for row in table:
        for flag in code(row[0]):
            found[flag.split("=")[0]] = " ".join(code(row[1]))
    return found


def subcommands():
    return re.findall(r"^  ([\w-]+)  +\w", read_help("rollcall").split("Commands:")[1], re.MULTILINE)


# Newer ones print "OPTIONS:", and the defaults in brackets.
same_help = pytest.mark.skipif("\nOptions:" not in read_help("rollcalld"),
                               reason="the docs have the form of --help of Debian 12's CLI11")


@same_help
@pytest.mark.parametrize("program, arguments, page, heading", [
    ("rollcall", ["run"], "commands", "`rollcall run"),
    ("rollcall", ["analyze"], "commands", "`rollcall analyze"),
    ("rollcall", ["diagnose"], "commands", "`rollcall diagnose"),
    ("rollcall", ["pki"], "commands", "`rollcall pki`"),
    ("rollcall", ["token"], "commands", "`rollcall token"),
    ("rollcall", ["install-library"], "commands", "`rollcall install-library"),
    ("rollcall", ["webhook"], "commands", "`rollcall webhook`"),
    ("rollcall-agent", [], "configuration", "`rollcall-agent`"),
    ("rollcalld", [], "configuration", "`rollcalld`"),
])
def test_the_guide_has_the_flags_of_each_program(program, arguments, page, heading):
    flags = parse_flags(read_help(program, *arguments))
    documented = documented_flags(flag_rows(section(read(f"docs/{page}.md"), heading)))
    assert flags
    own = {"/dev/shm/rollcall-" + str(os.geteuid()): "/dev/shm/rollcall-<uid>"}
    assert documented == {name: own.get(default, default) for name, (default, _) in flags.items()}


@same_help
def test_the_guide_has_the_flags_of_the_other_commands():
    table = flag_rows(section(read("docs/commands.md"), "Queries to a daemon"))
    for command in set(subcommands()) - {"run", "analyze", "diagnose", "pki", "token", "install-library", "webhook"}:
        flags = parse_flags(read_help("rollcall", command))
        documented = documented_flags([row for row in table if command in code(row[2])])
        assert set(documented) == set(flags), command
        for name, (default, _) in flags.items():
            assert default in documented[name], (command, name)


def test_the_guide_names_every_command():
    text = read("docs/commands.md")
    assert [name for name in subcommands() if f"rollcall {name}" not in text] == []


def test_the_variable_of_a_flag_follows_from_its_name():
    texts = [read_help("rollcall", name) for name in subcommands()]
    for text in [*texts, read_help("rollcalld"), read_help("rollcall-agent")]:
        for name, (_, variable) in parse_flags(text).items():
            expected = "ROLLCALL_" + name.strip("-").replace("-", "_").upper()
            assert variable in ("", expected), name


# Causes.

def causes():
    found = re.findall(r'X\(k\w+, "(\w+)"\)', read("daemon/model/verdict.h"))
    assert len(found) > 10
    return found


def runbook():
    """Cause -> its row in the table of causes, which people write in the order of the table."""
    return {code(row[0])[0]: row for row in rows(section(read("docs/runbook.md"), "Causes"))}


def test_the_table_of_causes_is_whole():
    assert sorted(runbook()) == sorted(causes())


def test_the_list_of_incidents_offers_every_cause_of_an_incident():
    page = read("daemon/page/src/incidents/history.tsx")
    offered = re.findall(r'"(\w+)"', re.search(r"kCauses = \[(.*?)\]", page, re.S)[1])
    assert sorted(offered) == sorted(set(causes()) - {"straggler"})  # a warning, no incident


def test_the_pages_count_the_causes_right():
    assert len(causes()) == 16, "then change the words below, and in the pages"
    assert "fifteen of the sixteen causes" in read("docs/peers.md")
    assert "one of sixteen" in read("docs/architecture.md")


# The environment.

def test_the_guide_has_every_variable_that_library_and_agent_read_in_a_job():
    sources = "".join(path.read_text() for path in sorted((ROOT / "interpose").rglob("*.[ch]*")))
    read_by_it = set(re.findall(r'(?:getenv|GetSetting)\("(ROLLCALL\w*)"\)', sources))
    read_by_it |= set(re.findall(r'OPTION\(\w+, "(\w+)"', read("interpose/options.h")))
    read_by_it |= {"ROLLCALL_JOB", "ROLLCALL_ATTEMPT"} & set(re.findall(r'"(\w+)"', read("interpose/environment.h")))
    # The agent reads these from the environment of each process.
    agent = read("agent/processes/launch_facts.cc") + read("agent/processes/stacks_switch.h")
    read_by_it |= {"ROLLCALL_STACKS", "ROLLCALL_TENANT"} & set(re.findall(r'"(\w+)"', agent))
    table = rows(section(read("docs/configuration.md"), "In the job's environment"))
    documented = {re.match(r"\w+", name)[0] for row in table for name in code(row[0])[:1]}
    assert len(read_by_it) > 8
    assert {name for name in documented if name.startswith("ROLLCALL")} == read_by_it


def test_the_guide_has_the_variables_of_launchers_in_their_order():
    text = " ".join((read("docs/configuration.md") + read("docs/attempts.md")).split())
    table = read("interpose/environment.h")
    ranks = re.findall(r'\{"(\w+)", "\w+", "\w+",\s*"\w*"\}', table)
    jobs = re.findall(r'"(\w+)"', re.search(r"kJobVariables\[\] = \{(.*?)\}", table, re.S)[1])
    assert len(ranks) > 4 and len(jobs) > 3
    shown = re.search(r"The rank comes from (.*?) in this order", text)[1]
    assert code(shown) == ranks
    shown = re.search(r"the job's name, the same on all of its hosts. Without it: (.*?);", text)[1]
    assert ["ROLLCALL_JOB", *code(shown)] == jobs
    counters = re.findall(r'"(\w+)"', re.search(r"kAttemptVariables\[\] = \{(.*?)\}", table,
                                               re.S)[1])
    shown = re.search(r"The number comes from (.*?), the first of them", text)[1]
    assert code(shown) == counters


# Metrics.

def metrics():
    """Name, kind and help of each, in the order of the source."""
    found = re.findall(r'\b(Gauge|Counter|count|now)\(\s*"(\w+)",\s*((?:"[^"]*"\s*)+)',
                       read("daemon/queries/metrics.cc"))
    kinds = {"Gauge": "gauge", "now": "gauge", "Counter": "counter", "count": "counter"}
    return [(name, kinds[kind], "".join(re.findall(r'"([^"]*)"', words)))
            for kind, name, words in found]


def test_the_reference_can_list_every_metric():
    source = read("daemon/queries/metrics.cc")
    assert {name for name, _, _ in metrics()} == set(re.findall(r'"((?:rollcall|process)_\w+)"', source))


def test_the_limits_name_everything_that_the_daemon_drops():
    source = read("daemon/model/client_limits.h")
    names = re.findall(r'"(\w+)"', re.search(r"kNames\[kDroppedKinds\] = \{(.*?)\};", source, re.S)[1])
    kinds = re.findall(r"^  k\w+,", re.search(r"enum class Dropped .*?\{(.*?)\};", source, re.S)[1],
                       re.MULTILINE)
    assert len(names) == len(kinds) > 20
    limits = {name for row in rows(section(read("docs/limits.md"), "Limits")) for name in code(row[3])}
    assert [name for name in names if name not in limits] == []


RULES = "deploy/prometheus/rollcall.rules.yml"
DASHBOARD = "deploy/grafana/rollcall.json"


@pytest.mark.parametrize("name", [RULES, DASHBOARD])
def test_rules_and_dashboard_query_metrics_that_exist(name):
    queries = "\n".join(re.findall(r'^ *"?expr"?: (.*)$', read(name), re.MULTILINE))
    queried = set(re.findall(r"\b(?:rollcall|process)_\w+", queries))
    assert len(queried) > 5
    assert queried - {metric for metric, _, _ in metrics()} == set()


@pytest.mark.parametrize("name", [RULES, DASHBOARD])
def test_rules_and_dashboard_name_a_job_by_tenant_and_attempt(name):
    lines = [line for line in read(name).splitlines() if re.search(r"\{\{[ $\w.]*job *\}\}", line)]
    assert len(lines) > 3
    for line in lines:
        assert re.search(r"tenant *\}\}.*job *\}\}", line), line
        assert re.search(r"attempt *\}\}", line), line


def test_the_rules_know_how_many_jobs_have_series():
    limit = re.search(r"kMaxJobsMeasured = (\d+);", read("daemon/queries/metrics.h"))[1]
    assert f"expr: rollcall_jobs > {limit}\n" in read(RULES)
    assert f"metrics of {limit} only" in read(RULES)


# Alerts.

def test_the_guide_has_the_kinds_of_alerts_and_what_a_template_fills_in():
    kinds = re.findall(r'\{"(\w+)", AlertKind::', read("daemon/alerts/alert_target.cc"))
    receivers = rows(section(read("docs/alerts.md"), "Receivers"))
    assert len(kinds) > 3
    assert sorted(code(row[0])[0].split("=")[0] for row in receivers) == sorted(kinds)
    values = re.search(r"return \{(\{\"headline\".*?)\};\n\}", read("daemon/alerts/alert_values.cc"),
                       re.S)[1]
    names = re.findall(r'\{"(\w+)", ', values)
    assert len(names) > 8
    assert sorted(re.findall(r"\{\{(\w+)\}\}", read("docs/configuration.md"))) == sorted(names)


# The page's addresses, and the fields of incident.json.

def test_every_address_is_documented():
    names = ("access/questions.def", "web/http_api.cc", "web/http_routes.cc")
    sources = "".join(read(f"daemon/{name}") for name in names)
    served = set(re.findall(r'"(/(?:api/v1/[\w/.]+|report|metrics|healthz(?:/\*)?|login|logout))"', sources))
    documented = {name.split()[1].replace("/JOB", "/*")
                  for row in rows(read("docs/http_api.md")) for name in code(row[0])}
    assert len(served) > 10
    assert documented == served


def fields(message):
    body = re.search(rf"^message {message} \{{(.*?)^\}}", read("proto/rollcall/v1/incident.proto"),
                     re.S | re.MULTILINE)[1]
    return re.findall(r"^ +(?:repeated |optional )?[\w.]+ (\w+) = \d+;", body, re.MULTILINE)


@pytest.mark.parametrize("message", ["Incident", "Verdict"])
def test_every_field_of_incident_json_is_documented(message):
    table = rows(section(read("docs/incident_json.md"), message))
    assert sorted(name for row in table for name in code(row[0])) == sorted(fields(message))


@pytest.mark.parametrize("message", ["Culprit", "Call", "CommunicatorRef", "GraphCall", "Advice",
                                     "SiteRanks", "AlignedCall", "WaitEdge", "HandledException",
                                     "OutsideWait", "ChildAtWork", "SocketWait", "Keeper",
                                     "ProcessStack", "ChildProcess", "FileLock", "OtherEnd",
                                     "ThreadStack", "Frame", "StackTree", "HostFacts", "HostFact",
                                     "GpuDump", "GpuKernel", "GpuPlace",
                                     "HostProbe"])
def test_every_field_within_it_is_named(message):
    names = set(code(without_blocks(read("docs/incident_json.md"))))
    assert [name for name in fields(message) if name not in names] == []


# The runbook: a page for each cause, which alerts and the page lead to.

def test_each_cause_has_a_runbook_and_its_place_in_the_site():
    assert sorted(causes()) == sorted(page.stem for page in (ROOT / "docs" / "runbook").iterdir())
    listed = re.findall(r"^ +- (\w+): docs/runbook/(\w+)\.md$", read("mkdocs.yml"), re.MULTILINE)
    assert listed == [(cause, cause) for cause in runbook()]


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "runbook").iterdir()), ids=lambda page: page.stem)
def test_a_runbook_says_what_to_do_first_and_whether_to_end_the_job(page):
    text = page.read_text()
    assert text.startswith(f"# {page.stem}\n\n")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == [
        "First", "If that does not explain it", "End the job, or wait?", "Afterwards"]
    assert f"causes.md#{page.stem})" in text


# The segment.

def test_the_page_of_the_segment_has_the_layout_of_the_source():
    source, page = read("interpose/segment.h"), read("docs/segment_format.md")
    numbers = {name: int(value) for name, value in
               re.findall(r"constexpr \w+ (k\w+) = (\d+);", source)}
    version = numbers["kLayoutVersion"]
    assert f"{version:02x} 00 00 00               layout version {version}\n" in page
    assert f"segment.h), version {version}. This page" in page
    blocked = 64 * numbers["kBlockedCapacity"]
    header = 4096 + blocked + 64 * numbers["kStackSlots"]
    block = 8192 + 64 * numbers["kRingCapacity"]
    area = header + block * numbers["kCommCapacity"]
    sites = area + numbers["kStackSlots"] * numbers["kStackCopyBytes"]
    shapes = sites + 256 * numbers["kSiteCapacity"]
    network = -(-(shapes + 112 * numbers["kShapeCapacity"]) // 4096) * 4096
    for shown in (f"blocked[{numbers['kBlockedCapacity']}]",
                  f"stack-slots[{numbers['kStackSlots']}]",
                  f"one every {block} bytes", f"lane[{numbers['kMarkerLanes']}]",
                  f"graph-lane[{numbers['kGraphLanes']}]", f"offset {area}\n", f"offset {sites}\n",
                  f"offset {shapes}\n", f"offset {network}\n", f"chunk[{numbers['kNetworkChunks']}]",
                  f"({numbers['kNetworkChunkBytes']} each)", f"site[{numbers['kSiteCapacity']}]",
                  f"shape[{numbers['kShapeCapacity']}]", f"header bytes {header}:",
                  f"comm-block bytes {block}\n",
                  f"Every {numbers['kCheckpointInterval']} positions",
                  f"last {numbers['kCheckpointCapacity']} checkpoints"):
        assert shown in page


# Versions.

def test_the_page_of_versions_has_the_numbers_of_the_sources():
    def number(name, pattern):
        return re.search(pattern, read(name))[1]

    sqlite = "daemon/history/sqlite_history.cc"
    dumps = re.search(r"dump versions (\S+) to (\S+),", read("cli/flight_recorder/dump.h"))
    assert [row[2] for row in rows(section(read("docs/compatibility.md"), "The numbers"))] == [
        number("interpose/segment.h", r"kLayoutVersion = (\d+);"),
        number("agent/link/agent.cc", r"kProtocol = (\d+);"),
        number(sqlite, r"kCompatibleWith = (\d+);"),
        number(sqlite, r"kLayout = (\d+);"),
        number("daemon/history/postgres_layout.h", r"kPostgresLayout = (\d+);"),
        f"{dumps[1]} to {dumps[2]}"]


@pytest.mark.parametrize("name, pattern", [
    ("deploy/kubernetes/rollcall/Chart.yaml", r"^(?:version|appVersion): (.*)$"),
    ("deploy/kubernetes/sidecar.yaml", r"/rollcall:([\d.]+)"),
    ("README.md", r"rollcall-([\d.]+)-py3"),
])
def test_other_files_repeat_the_version_of_the_project(name, pattern):
    version = re.search(r"^project\(rollcall VERSION (\S+)", read("CMakeLists.txt"), re.MULTILINE)[1]
    assert set(re.findall(pattern, read(name), re.MULTILINE)) == {version}


# Links, and names of files.

TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, check=True, stdout=subprocess.PIPE).stdout
TOPS = {name.split("/")[0] for name in TRACKED.splitlines() if "/" in name and name[0] != "."}


def test_the_architecture_names_each_folder_with_a_rule_of_its_own():
    page = read("docs/architecture.md")
    folders = TOPS | {str(path.parent.relative_to(ROOT)) for top in TOPS - {"tests"}
               for path in (ROOT / top).rglob("*.h")}
    assert {folder for folder in folders if f"`{folder}/`" not in page} == set()
    assert "daemon/fleet" in folders and len(folders) > 20


def pages():
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")),
            *sorted((ROOT / "tests").rglob("README.md"))]


def anchors(path):
    """As GitHub makes them of headings."""
    found = re.findall(r"^#+ (.*)$", without_blocks(path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page.read_text())):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), target


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_files_of_the_project_that_a_page_names_are_there(page):
    names = re.findall(rf"`((?:{'|'.join(TOPS)})/[\w./-]*)`", page.read_text())
    missing = [name for name in names
               if not (ROOT / name).exists() and "NAME" not in name]
    assert missing == []


def test_comments_name_pages_that_are_there():
    missing = set()
    for top in TOPS:
        for path in (ROOT / top).rglob("*"):
            if path.suffix in (".cc", ".h", ".cmake", ".txt", ".py", ".sh", ".ts", ".tsx",
                               ".proto"):
                for name in re.findall(r"docs/\w[\w/]*\.md", path.read_text(errors="replace")):
                    if not (ROOT / name).exists():
                        missing.add(f"{path.relative_to(ROOT)}: {name}")
    assert missing == set()
