// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/html.h"

#include "absl/strings/str_cat.h"
#include "daemon/report/escape.h"
#include "daemon/report/frozen_view.h"
#include "daemon/report/gpu/gpu_dumps.h"
#include "daemon/report/host_facts_proto.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/stack_merge.h"
#include "daemon/report/stack_picture.h"

namespace rollcall {
namespace {

constexpr int kMostNodes = 4000;   // limit for the merged stacks
constexpr int kMostFrames = 8000;  // limit for stacks that are shown whole

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --text: #1d2129; --soft: #5c6573; --back: #fff; --card: #f5f6f8;
  --line: #d9dde3; --mark: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7ec; --soft: #9aa4b2; --back: #14171c; --card: #1d2229; --line: #333a45;
    --mark: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.35rem; line-height: 1.35; border-left: .3rem solid var(--mark);
  padding-left: .8rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
h3 { font-size: .95rem; margin: 1.2rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { width: 9rem; font-weight: 500; color: var(--soft); }
li { margin: .2rem 0; overflow-wrap: anywhere; }
.advice li { background: var(--card); padding: .5rem .8rem; margin: .4rem 0; list-style: none; }
.advice { padding: 0; }
.advice b { color: var(--mark); margin-right: .4rem; }
details { background: var(--card); margin: .4rem 0; padding: .4rem .8rem; }
pre { overflow-x: auto; font-size: .8rem; line-height: 1.35; margin: .2rem 0 .8rem; }
)";

void AddFacts(const Facts& facts, std::string* html) {
  *html += "<table>\n";
  for (const auto& [name, value] : facts) {
    absl::StrAppend(html, "<tr><th scope=\"row\">", EscapeHtml(name), "</th><td>",
                    EscapeHtml(value), "</td></tr>\n");
  }
  *html += "</table>\n";
}

template <typename Lines>
void AddList(const char* title, const Lines& lines, std::string* html) {
  if (lines.empty()) return;
  absl::StrAppend(html, "<h3>", title, "</h3>\n<ul>\n");
  for (const auto& line : lines) absl::StrAppend(html, "<li>", EscapeHtml(line), "</li>\n");
  *html += "</ul>\n";
}

void AddAdvice(const v1::Verdict& verdict, std::string* html) {
  if (verdict.advice().empty()) return;
  *html += "<h3>What to do</h3>\n<ul class=\"advice\">\n";
  for (const v1::Advice& advice : verdict.advice()) {
    absl::StrAppend(html, "<li><b>", EscapeHtml(advice.id()), "</b>", EscapeHtml(advice.text()),
                    "</li>\n");
  }
  *html += "</ul>\n";
}

void AddHistories(const v1::Verdict& verdict, std::string* html) {
  if (verdict.histories().empty()) return;
  *html += "<h3>Calls of the others and of the culprits</h3>\n<pre>";
  for (const std::string& line : HistoryLines(verdict)) {
    absl::StrAppend(html, EscapeHtml(line), "\n");
  }
  *html += "</pre>\n";
}

void AddVerdict(const v1::Verdict& verdict, bool is_first, std::string* html) {
  if (!is_first) {
    absl::StrAppend(html, "<h2>", verdict.is_consequence() ? "A consequence: " : "Also found: ",
                    EscapeHtml(verdict.summary()), "</h2>\n");
  }
  AddFacts(VerdictFacts(verdict), html);
  AddList("Culprits", CulpritLines(verdict), html);
  AddHistories(verdict, html);
  AddList("Which rank waits for which", ChainLines(verdict), html);
  AddAdvice(verdict, html);
  AddList("Evidence", verdict.evidence(), html);
  AddList("Missing evidence", verdict.missing_evidence(), html);
}

void AddThread(const v1::ThreadStack& thread, std::string* html) {
  absl::StrAppend(html, "<h3>", EscapeHtml(ThreadTitle(thread)), "</h3>\n");
  if (!thread.note().empty()) absl::StrAppend(html, "<p>", EscapeHtml(thread.note()), "</p>\n");
  *html += "<pre>";
  int number = 0;
  for (const v1::Frame& frame : thread.frames()) {
    absl::StrAppend(html, EscapeHtml(FrameInWords(frame, number++)), "\n");
  }
  *html += "</pre>\n";
}

void AddStack(const v1::ProcessStack& stack, std::string* html) {
  absl::StrAppend(html, "<details", stack.culprit() ? " open" : "", "><summary>",
                  EscapeHtml(StackTitle(stack)), "</summary>\n");
  if (!stack.error().empty()) {
    absl::StrAppend(html, "<p>no stack: ", EscapeHtml(stack.error()), "</p>\n");
  }
  const std::string children = ChildrenTitle(stack);
  if (!children.empty()) absl::StrAppend(html, "<p>", EscapeHtml(children), "</p>\n");
  for (const v1::ThreadStack& thread : stack.threads()) AddThread(thread, html);
  for (const v1::ChildProcess& child : stack.children()) {
    if (!child.threads().empty()) {
      absl::StrAppend(html, "<h3>", EscapeHtml(ChildTitle(child)), "</h3>\n");
    }
    for (const v1::ThreadStack& thread : child.threads()) AddThread(thread, html);
  }
  *html += "</details>\n";
}

// Cuts the incident for a file that people open on a phone: keeps the differences and the culprits'
// stacks. stacks.txt has everything.
v1::Incident CutForHtml(const v1::Incident& incident, int* left_out) {
  v1::Incident cut = incident;
  if (cut.stack_tree().nodes_size() > kMostNodes) {
    const bool was_cut = cut.stack_tree().cut();
    *cut.mutable_stack_tree() = ToProto(FromProto(incident.stack_tree()), kMostNodes);
    cut.mutable_stack_tree()->set_cut(cut.stack_tree().cut() || was_cut);
  }
  cut.clear_stacks();
  int frames = 0;
  for (const v1::ProcessStack* stack : StacksInOrder(incident)) {
    for (const v1::ThreadStack& thread : stack->threads()) frames += thread.frames_size();
    for (const v1::ChildProcess& child : stack->children()) {
      for (const v1::ThreadStack& thread : child.threads()) frames += thread.frames_size();
    }
    if (frames > kMostFrames && !cut.stacks().empty()) {
      ++*left_out;
    } else {
      *cut.add_stacks() = *stack;
    }
  }
  return cut;
}

}  // namespace

std::string ToHtml(const v1::Incident& whole, bool with_view) {
  int left_out = 0;
  const v1::Incident incident = CutForHtml(whole, &left_out);
  const std::string headline = EscapeHtml(Headline(incident));
  std::string html = absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"",
      ReportPolicy(), "\">\n<title>", headline, "</title>\n<style>", kStyle,
      "</style>\n</head>\n<body>\n<main>\n<h1>", headline, "</h1>\n");
  bool is_first = true;
  for (const v1::Verdict& verdict : incident.verdicts()) {
    AddVerdict(verdict, is_first, &html);
    is_first = false;
  }
  html += "<h2>Incident</h2>\n";
  AddFacts(IncidentFacts(incident), &html);
  AddList("What the hosts show", HostFactLines(incident), &html);
  AddList("What the GPUs did", GpuDumpLines(incident), &html);
  if (!incident.stacks().empty()) html += "<h2>Stacks</h2>\n";
  const std::string picture = StackPicture(incident.stack_tree());
  if (!picture.empty()) {
    html += "<p>All threads of " + std::to_string(incident.stack_tree().nodes(0).rank_count()) +
            " ranks, merged. Frames of few ranks have warm colours and are on the left.</p>\n"
            "<div style=\"overflow-x:auto\">" +
            picture + "</div>\n";
  }
  for (const v1::ProcessStack* stack : StacksInOrder(incident)) AddStack(*stack, &html);
  if (left_out > 0) {
    absl::StrAppend(&html, "<p>", left_out, " more stacks are in stacks.txt.</p>\n");
  }
  html += "</main>\n" + (with_view ? FrozenView(incident) : "") + "</body>\n</html>\n";
  return html;
}

}  // namespace rollcall
