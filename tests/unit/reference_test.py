# SPDX-License-Identifier: Apache-2.0
"""The pages below docs/reference/ are what the programs and the sources say: flags, causes,
metrics, API. ROLLCALL_WRITE_DOCS=1 writes them anew."""
import ast
import os
import re

import docs_test
import pytest
from docs_test import ROOT, code, read, read_help, rows, section

PAGES = ROOT / "docs" / "reference"
HOW = ("*This page is generated from {}: `ROLLCALL_WRITE_DOCS=1 ctest --preset release -R reference`.*\n")


def whole_page(title, purpose, parts, source):
    """A page opens with what it is for, and ends with how it is made."""
    return f"# {title}\n\n{purpose}\n\n{parts.rstrip()}\n\n{HOW.format(source)}"


def cell(text):
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def table(head, lines):
    """A table; `lines`: the cells of each row. Nothing without rows."""
    if not lines:
        return ""
    body = "".join("| " + " | ".join(cell(text) for text in line) + " |\n" for line in lines)
    whole = "| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|\n" + body + "\n"
    return re.sub(r"\|  (?=\|)", "| ", whole)


# Flags.

def parse_help(text):
    """The description, the usage with its examples, the positionals and the flags of a --help. A flag:
    name, value, default, variable, whether it may be repeated, words."""
    head, _, rest = text.partition("Usage: ")
    rest, _, examples = rest.partition("\nExamples:\n")
    usage = "\n".join([rest.splitlines()[0], *commented(examples)])
    entries = re.findall(r"^  (?! )((?:\S| (?! ))+)((?:\n? {3,}.*)*)", rest, re.MULTILINE)
    positionals, flags = [], []
    for start, words in entries:
        words = " ".join(words.split())
        if start.startswith("-"):
            flags.append(parse_flag(start, words))
        else:
            name = start.split()[0]
            positionals.append((name, words))
    own = [flag for flag in flags if flag[0] not in ("--help", "--version")]
    return " ".join(head.split()), usage, positionals, own


def commented(examples):
    """Each example behind what it does, which stands below it in a --help."""
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    return [text for line, what in zip(lines[::2], lines[1::2]) for text in ("", f"# {what}", line)]


def parse_flag(start, words):
    name = re.search(r"--[\w-]+", start)[0]
    variable = re.search(r"\(Env:(\w+)\)", start)
    start = re.sub(r" *\(Env:\w+\)", "", start)
    start = re.sub(r" (Excludes|Needs): .*", "", start)
    start, _, default = start.partition("=")
    kind = re.search(r"(?:TEXT|INT|UINT|FLOAT)(?::(.*))?", start.split(name, 1)[1])
    value = ""
    if kind:
        value = re.sub(r" REQUIRED| \.\.\.", "", kind[1] or "").strip("{}")
        value = "" if value in ("NONNEGATIVE", "POSITIVE") or value == default else value
        value = value.replace(",", "|") if re.fullmatch(r"[a-z-]+(,[a-z-]+)+", value) else value
        value = re.sub(r"INT in \[(\S+) - (\S+)\]", r"\1 to \2", value)
    own = f"/dev/shm/rollcall-{os.geteuid()}"
    default = "/dev/shm/rollcall-<uid>" if default == own else default
    if "REQUIRED" in start:
        words += " (required)"
    if "..." in start:
        words += " (may be repeated)"
    if "|" in default:  # a list of what is possible, with the default behind it
        value, _, default = default.rpartition("=")
    return (name, value, default, variable[1] if variable else "", words)


def flag_row(flag):
    name, value, default, variable, words = flag
    ticked = [f"`{text}`" if text else "" for text in (name, value, default, variable)]
    return (*ticked, words)


FLAG_HEAD = ("flag", "value", "default", "variable", "")


def commands():
    """Heading -> the parsed help, for each program and subcommand."""
    found = {f"rollcall {name}": parse_help(read_help("rollcall", name))
             for name in docs_test.subcommands()}
    found["rollcall-agent"] = parse_help(read_help("rollcall-agent"))
    found["rollcalld"] = parse_help(read_help("rollcalld"))
    return found


def shared_flags(every):
    """The flags that at least five commands have with the same words."""
    counts = {}
    for _, _, _, flags in every.values():
        for flag in flags:
            counts[flag] = counts.get(flag, 0) + 1
    return [flag for flag, count in counts.items() if count >= 5]


def reaches_a_daemon(flags):
    return any(name == "--daemon" for name, *_ in flags)


def flags_page():
    every = commands()
    shared = shared_flags(every)
    text = ("## To reach a daemon\n\n"
            "These flags mean the same in " + ", ".join(
        f"`{name}`" for name, (_, _, _, flags) in every.items() if reaches_a_daemon(flags)) +
        ". The tables below leave them out.\n\n" + table(FLAG_HEAD, map_rows(shared)))
    for name, (words, usage, positionals, flags) in every.items():
        text += f"## {name}\n\n{words}\n\n```\n{usage}\n```\n\n"
        text += table(("argument", ""), [(f"`{word}`", meaning) for word, meaning in positionals])
        left_out = shared if reaches_a_daemon(flags) else []
        text += table(FLAG_HEAD, map_rows(flag for flag in flags if flag not in left_out))
    return whole_page(
        "Flags", "Look up a flag here: each program and command, with the flag's value, default and "
        "environment variable. [commands.md](../commands.md) and [configuration.md](../configuration.md) "
        "explain flags that need more than a line, and list the exit codes.\n\nA flag on the command "
        "line wins over its variable. `rollcall man COMMAND` and `rollcall completion bash` show the "
        "same flags.", text, "the `--help` of the programs")


def map_rows(flags):
    return [flag_row(flag) for flag in flags]


# Causes.

def sentences():
    """Cause -> the sentences that the test of sentences expects for it."""
    names = dict(re.findall(r'X\((k\w+), "(\w+)"\)', read("daemon/model/verdict.h")))
    found = {}
    source = read("tests/unit/daemon/words/sentences_test.cc")
    for name, sentence in re.findall(r'VerdictBuilder\(C::(k\w+).*?R"\((.*?)\)"\}', source, re.S):
        found.setdefault(names[name], []).append(sentence)
    return found


def examples(known, count=3):
    """Those that lead with a line of the program first."""
    return sorted(known, key=lambda text: " is in `" not in text)[:count]


def general_advice():
    """Cause -> id, reason and advice of the entry for it."""
    text = section(read("docs/advice.md"), "In general")
    found = re.findall(r"^### ([\w-]+)\n+\*Seen:\* (\w+)\.\n+(.*?)\n+\*\*(.*?)\*\*", text,
                       re.S | re.MULTILINE)
    return {cause: (name, why, what) for name, cause, why, what in found}


def confirmed(cause):
    header = read("daemon/model/verdict.h")
    names = {text: name for name, text in re.findall(r'X\((k\w+), "(\w+)"\)', header)}

    def says(predicate):
        body = re.search(rf"bool {predicate}\(Cause cause\) \{{(.*?)\}}", header, re.S)[1]
        return f"Cause::{names[cause]}" in body
    if says("IsWarning"):
        return "never: a warning, which opens no incident"
    if says("IsContradiction"):
        return "at once, without a timeout"
    return "after `--hang-after`, or after 5 s where the others wait for a rank that is gone for good"


def stand_shapes():
    """The words of Standstill.shape, and what each means."""
    shapes = re.findall(r'^STAND_SHAPE\(\w+, "(\w+)",\s*((?:"[^"]*"\s*)+)\)',
                        read("daemon/model/stand_shapes.def"), re.MULTILINE)
    assert shapes
    return [(f"`{word}`", "".join(re.findall(r'"([^"]*)"', meaning))) for word, meaning in shapes]


def network_faults():
    """The words of NetworkWalk.fault, what each means, its advice and its place in the runbook."""
    rows = [re.findall(r'"([^"]*)"', row)
            for row in read("proto/network_faults.def").split("\nNETWORK_FAULT(")[1:]]
    assert rows and all(len(row) == 8 for row in rows)
    return [(f"`{row[0]}`", row[1], f"[{row[6]}](../advice.md#{row[6]})",
             f"[{row[7]}](../runbook/stalled_in_flight.md#{row[7]})") for row in rows]


def causes_page():
    spoken, advice = sentences(), general_advice()
    text = ""
    for cause, row in docs_test.runbook().items():
        _, meaning, blamed, todo = (move_links(words) for words in row)
        name, why, _ = advice[cause]
        text += (f"## {cause}\n\n**When:** {meaning}.\n\n**Culprit:** {blamed}.\n\n"
                 f"**Confirmed:** {confirmed(cause)}.\n\n**Why:** {why}\n\n"
                 f"**Next:** {todo}. Advice: [{name}](../advice.md#{name}).\n\n"
                 "Sentences such as:\n\n")
        text += "".join(f"> {sentence}\n\n" for sentence in examples(spoken[cause]))
        if cause == "stalled_in_flight":
            text += ("The field `fault` of `network` in `incident.json` says what holds the transfers over "
                     "the network up. `rank` is the culprit, `peer` the other end:\n\n" +
                     table(("Fault", "Why", "Advice", "Runbook"), network_faults()) +
                     "A walk over the transfers is `likely`. Only a second witness makes it `certain`: a GPU marker "
                     "that shows that the culprit's GPU has not started the call, or an error that NCCL has "
                     "reported on the culprit or, of a link, at one of its ends. A port or link of these hosts "
                     "that is down is evidence and never such a witness: NCCL does not say which NIC it uses, and the "
                     "port may be one that the job does not use.\n\n")
        if cause == "standstill":
            text += ("The field `shape` of `incident.json` says why the culprits (\"they\") are these:\n\n" +
                     table(("Shape", "Why"), stand_shapes()))
    return whole_page(
        "Causes", "Look up what a cause means, whom Rollcall blames for it, and when it is confirmed. "
        "Each verdict has one of these causes. The causes that people meet first come first. In a "
        "hang, begin with [A job hangs: now what](../runbook.md). `rollcall incidents --cause=CAUSE` "
        "lists the incidents of a cause.", text,
        "the table in [runbook.md](../runbook.md#causes), the tables of advice, of shapes and of network "
        "faults, and the sentences that a test expects")


def move_links(words):
    """Links of runbook.md, for a page one folder further down."""
    return re.sub(r"\]\((\w+\.md)", r"](../\1", words)


# Metrics.

def metrics_page():
    text, groups = "", {}
    for name, kind, words in docs_test.metrics():
        parts = name.split("_")
        about = {"job": "A job", "communicator": "A communicator", "incident": "Incidents",
                 "incidents": "Incidents", "process": "The daemon's process"}
        key = about.get(parts[0] if parts[0] == "process" else parts[1], "The daemon")
        groups.setdefault(key, []).append((f"`{name}`", kind, words))
    for key, lines in groups.items():
        text += f"## {key}\n\n" + table(("metric", "kind", ""), lines)
    return whole_page(
        "Metrics", "Look up a metric for an alert or a dashboard. The daemon serves them to Prometheus at "
        "`/metrics` of its page; [running.md](../running.md#metrics) has labels, ready-made alerting rules "
        "and a dashboard.", text, "`daemon/queries/metrics.cc`")


# API.

def c_functions():
    found = re.findall(r"/\* ([^/]*?) \*/\nstatic inline void (\w+\([^)]*\))",
                       read("interpose/rollcall.h"), re.S)
    assert len(found) > 3
    return [(f"`{call}`", re.sub(r"\n \* ?", " ", words)) for words, call in found]


def python_functions(name):
    tree = ast.parse(read(f"python/rollcall/{name}.py"))
    if name != "__init__":
        words = ast.get_docstring(tree).splitlines()[0]
        return [(f"`rollcall.{name}.{node.name}`", words) for node in tree.body
                if isinstance(node, ast.ClassDef)]
    public = next(ast.literal_eval(node.value) for node in tree.body
                  if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    return [(f"`rollcall.{node.name}({ast.unparse(node.args)})`",
             ast.get_docstring(node).splitlines()[0])
            for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in public]


def addresses():
    """Method, path and role of each address that scripts use."""
    roles = {"kAnybody": "everybody", "Role::kViewer": "viewer", "Role::kOperator": "operator"}
    found = [(method, path, roles[role]) for method, path, role in
             re.findall(r'\{"(GET|POST)", "([^"]+)", ([\w:]+)', read("daemon/web/http_routes.cc"))]
    acts = [(path, kind == "ACT") for kind, path in
            re.findall(r'^(QUESTION|ACT)\w*\(\w+,[^()]*?"(/api/v1/[\w/]+)"',
                       read("daemon/access/questions.def"), re.MULTILINE)]
    acts += [(path, answer == "nullptr") for path, answer in
             re.findall(r'\{"(/api/v1/[\w/.]+)", (&\w+|nullptr)', read("daemon/web/http_api.cc"))]
    assert len(acts) > 15
    found += [("POST", path, "operator") if is_act else ("GET", path, "viewer")
              for path, is_act in sorted(acts)]
    names = {name.split()[1]: row[2] for row in rows(read("docs/http_api.md"))
             for name in code(row[0]) if name.startswith(("GET", "POST")) and len(row) > 2}
    return [(f"`{method} {path}`", role, message_of(names[path]))
            for method, path, role in found if path in names]


def message_of(words):
    """The message with which an answer begins, as a link to its table; "": none."""
    found = re.match(r"`([A-Z]\w+)`", words)
    return f"[{found[1]}](#{found[1].lower()})" if found else ""


def messages(name):
    """Message -> its comment, its fields: name, type, words."""
    source = read(f"proto/rollcall/v1/{name}.proto")
    found = {}
    for comment, message, body in re.findall(
            r"((?:^//[^\n]*\n)*)^message (\w+) \{(?:\}$|(.*?)^\}$)", source, re.S | re.MULTILINE):
        found[message] = (uncommented(comment), fields_of(body))
    assert len(found) >= 3
    return found


def fields_of(body):
    fields, before = [], []
    for line in body.splitlines():
        comment = re.match(r" *// ?(.*)", line)
        field = re.match(r" *((?:repeated |optional )?[\w.]+) (\w+) = \d+;(?: *// ?(.*))?", line)
        if comment:
            before.append(comment[1])
        elif field:
            words = " ".join([*before, field[3] or ""]).strip()
            fields.append((f"`{field[2]}`", f"`{field[1].replace('google.protobuf.', '')}`", words))
            before = []
    return fields


def uncommented(comment):
    return " ".join(re.sub(r"^// ?", "", line) for line in comment.splitlines())


def calls():
    """The RPCs of Query: name, request, answer, comment."""
    body = re.search(r"^service Query \{(.*?)^\}", read("proto/rollcall/v1/query.proto"),
                     re.S | re.MULTILINE)[1]
    return [(f"`{name}`", f"[{asked}](#{asked.lower()})",
             f"{stream or ''}[{answer}](#{answer.lower()})",
             uncommented(re.sub(r"^ +", "", comment, flags=re.MULTILINE)))
            for comment, name, asked, stream, answer in re.findall(
                r"((?:^ +//[^\n]*\n)*)^ +rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\)", body,
                re.MULTILINE)]


def api_page():
    text = "## From a training program, in C\n\n" + table(("function", ""), c_functions())
    python = [row for name in ("__init__", "lightning", "transformers")
              for row in python_functions(name)]
    text += "## From a training program, in Python\n\n" + table(("function", ""), python)
    text += "## Addresses\n\n" + table(("address", "role", "answer"), addresses())
    text += "## Calls of the service Query (gRPC)\n\n" + table(("call", "request", "answer", ""),
                                                                calls())
    for title, name in (("Messages of the service", "query"), ("Messages of incidents", "incident"),
                        ("Messages of looks at jobs that are not recorded", "look")):
        text += f"## {title}\n\n"
        for message, (words, fields) in messages(name).items():
            text += f"### {message}\n\n" + (f"{words}\n\n" if words else "")
            text += table(("field", "type", ""), fields)
    return whole_page(
        "API", "Look up what programs can call: functions for training programs, HTTP addresses, the gRPC "
        "service, and all messages. [http_api.md](../http_api.md) explains parameters, errors and limits "
        "of the addresses, [incident_json.md](../incident_json.md) the fields of an incident, and "
        "[security.md](../security.md) the roles. Fields are only ever added.", text,
        "`proto/`, `daemon/queries/`, `interpose/rollcall.h` and `python/rollcall/`")


@pytest.mark.parametrize("name, page", [
    pytest.param("flags", flags_page, marks=docs_test.same_help), ("causes", causes_page),
    ("metrics", metrics_page), ("api", api_page)])
def test_the_reference_is_what_programs_and_sources_say(name, page):
    path = PAGES / f"{name}.md"
    text = page()
    assert len(text.splitlines()) > 30
    if os.environ.get("ROLLCALL_WRITE_DOCS"):
        path.write_text(text)
    assert path.read_text() == text, "ROLLCALL_WRITE_DOCS=1 ctest --preset release -R reference"


def test_the_reference_of_flags_has_every_flag():
    text = read("docs/reference/flags.md")
    names = {name for program, *arguments in
             [("rollcall-agent",), ("rollcalld",),
              *(("rollcall", command) for command in docs_test.subcommands())]
             for name in docs_test.parse_flags(read_help(program, *arguments))}
    assert len(names) > 50
    assert [name for name in sorted(names) if f"| `{name}` |" not in text] == []
