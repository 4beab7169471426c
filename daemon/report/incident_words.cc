// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/incident_words.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/whole_numbers.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr char kNoCommunicator[] = "0000000000000000";
constexpr size_t kMostCulpritSites = 4;  // on one line
constexpr size_t kMostNamedSites = 8;    // of waiting ranks, on one line
constexpr int kMostCulprits = 64;        // with a line of their own

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

void Add(const std::string& name, const std::string& value, Facts* facts) {
  if (!value.empty()) facts->emplace_back(name, value);
}

template <typename Ranks>
std::string AllInWords(const Ranks& listed, const std::string& ranges) {
  return AllRanks(listed, ranges).InWords();
}

std::string WaitingInWords(const v1::Verdict& v) {
  if (v.waiting_ranks().empty()) return "";
  return absl::StrCat(
      AllInWords(v.waiting_ranks(), v.waiting_rank_ranges()), " (",
      std::max(v.waiting_total(), v.waiting_ranks_size()), ")",
      v.waited_seconds() > 0 ? ", for " : "",
      v.waited_seconds() > 0 ? DurationInWords(NsOfSeconds(v.waited_seconds())) : "");
}

std::string CommunicatorInWords(const v1::CommunicatorRef& comm) {
  const std::string name = comm.name().empty() ? "" : absl::StrCat("\"", comm.name(), "\", ");
  const std::string kind = comm.kind().empty() ? "" : absl::StrCat(comm.kind(), ", ");
  return absl::StrCat(kind, name, comm.id(), ", ", comm.size(), " ranks");
}

// Some ranks are culprits that also wait: in a cycle, or where two threads of a rank call.
bool WaitThere(const v1::Verdict& v, const std::string& at, const std::vector<int32_t>& ranks) {
  return std::any_of(v.waiting_at().begin(), v.waiting_at().end(), [&](const v1::SiteRanks& place) {
    return place.at() == at && std::all_of(ranks.begin(), ranks.end(), [&](int32_t rank) {
             return std::find(place.ranks().begin(), place.ranks().end(), rank) !=
                    place.ranks().end();
           });
  });
}

}  // namespace

std::string TimeInWords(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", ToTime(time), absl::UTCTimeZone());
}

std::string TimeForName(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y%m%dT%H%M%SZ", ToTime(time), absl::UTCTimeZone());
}

std::string SiteInWords(const std::string& at) { return at.substr(at.rfind('/') + 1); }

std::string WaitingSitesInWords(const v1::Verdict& v) {
  std::vector<std::string> places;
  for (const v1::SiteRanks& place : v.waiting_at()) {
    if (places.size() == kMostNamedSites) break;
    places.push_back(absl::StrCat(AllInWords(place.ranks(), place.rank_ranges()), " at ",
                                  SiteInWords(place.at())));
  }
  const size_t all = static_cast<size_t>(std::max(v.waiting_at_total(), v.waiting_at_size()));
  if (all > places.size()) {
    const size_t more = all - places.size();
    places.push_back(CountInWords(more, "more line", "more lines"));
  }
  return absl::StrJoin(places, "; ");
}

std::string SitesInWords(const v1::Verdict& v) {
  std::map<std::string, std::vector<int32_t>> ranks;
  for (const v1::Culprit& culprit : v.culprits()) {
    if (!culprit.at().empty()) ranks[culprit.at()].push_back(culprit.rank());
  }
  std::vector<std::string> places;
  for (const auto& [at, here] : ranks) {
    if (places.size() == kMostCulpritSites) break;
    if (WaitThere(v, at, here)) continue;
    places.push_back(absl::StrCat(RanksInWords(here), " at ", SiteInWords(at)));
  }
  const std::string waiting = WaitingSitesInWords(v);
  if (!waiting.empty()) places.push_back(waiting);
  return absl::StrJoin(places, "; ");
}

// "rank 3", or "rank 3 (rank 1 of job engine)".
std::string RankInWords(const v1::Culprit& culprit) {
  std::string words = absl::StrCat("rank ", culprit.rank());
  if (culprit.job().empty()) return words;
  const std::string rank =
      culprit.has_job_rank() ? absl::StrCat("rank ", culprit.job_rank(), " of ") : "of ";
  const std::string job = ToText(JobKey(culprit.job(), culprit.job_attempt()));
  return absl::StrCat(words, " (", rank, "job ", job, ")");
}

std::string CulpritInWords(const v1::Culprit& culprit) {
  std::vector<std::string> parts = {RankInWords(culprit)};
  if (!culprit.host().empty()) parts.push_back(culprit.host());
  if (!culprit.node().empty() && culprit.node() != culprit.host()) {
    parts.push_back(absl::StrCat("node ", culprit.node()));
  }
  if (!culprit.pod().empty()) parts.push_back(absl::StrCat("pod ", culprit.pod()));
  if (culprit.pid() != 0) parts.push_back(absl::StrCat("pid ", culprit.pid()));
  if (culprit.device() >= 0) parts.push_back(absl::StrCat("GPU ", culprit.device()));
  if (culprit.has_step()) {
    parts.push_back(StepInWords(WholeNumber(culprit.step()), culprit.phase()));
  }
  if (culprit.has_call()) parts.push_back(absl::StrCat("called ", CallInWords(culprit.call())));
  if (!culprit.error().empty()) {
    parts.push_back(absl::StrCat("failed with ", culprit.error()));
  } else if (!culprit.at().empty()) {
    parts.push_back(absl::StrCat("at ", SiteInWords(culprit.at())));
  }
  return absl::StrJoin(parts, ", ");
}

RankRanges InvolvedRanks(const v1::Verdict& v) {
  std::vector<int32_t> culprits;
  for (const v1::Culprit& culprit : v.culprits()) culprits.push_back(culprit.rank());
  return RankRanges(absl::StrCat(AllRanks(culprits, v.culprit_ranks()).List(), ",",
                                 AllRanks(v.waiting_ranks(), v.waiting_rank_ranges()).List()));
}

std::vector<std::string> CulpritLines(const v1::Verdict& v) {
  std::vector<std::string> lines;
  const int named = std::min(v.culprits_size(), kMostCulprits);
  for (int i = 0; i < named; ++i) lines.push_back(CulpritInWords(v.culprits(i)));
  const int all = std::max(v.culprits_total(), v.culprits_size());
  if (all == named) return lines;
  std::string rest = absl::StrCat("and ", all - named, " more");
  if (!v.culprit_ranks().empty()) {
    absl::StrAppend(&rest, "; all together: ", RankRanges(v.culprit_ranks()).InWords(), " on ",
                    CountInWords(static_cast<uint64_t>(v.culprit_hosts_total()), "host", "hosts"));
  }
  lines.push_back(std::move(rest));
  return lines;
}

std::string CallInWords(const v1::Call& call) {
  std::vector<std::string> args;
  if (!call.dtype().empty()) {
    const std::string told = absl::StrCat(
        call.logical(), call.logical().empty() || call.shape().empty() ? "" : " ", call.shape());
    args.push_back(absl::StrFormat("%s x %.0f%s%s", call.dtype(), call.count(),
                                   told.empty() ? "" : " as ", told));
  } else if (call.count() > 0) {
    args.push_back(absl::StrFormat("%.0f bytes", call.count()));  // MPI's
  }
  if (!call.reduction().empty()) args.push_back(call.reduction());
  if (call.root() >= 0) args.push_back(absl::StrCat("root ", call.root()));
  const std::string name = call.operation().empty() ? "a call" : call.operation();
  return args.empty() ? name : absl::StrCat(name, "(", absl::StrJoin(args, ", "), ")");
}

namespace {

// "4120 "python", 4131".
std::string OtherEndsInWords(const v1::OtherEnd& end) {
  std::vector<std::string> pids;
  for (int i = 0; i < end.pids_size(); ++i) {
    pids.push_back(absl::StrCat(end.pids(i)));
    const bool has_name = i < end.names_size() && !end.names(i).empty();
    if (has_name) absl::StrAppend(&pids.back(), " \"", end.names(i), "\"");
  }
  return absl::StrJoin(pids, ", ");
}

}  // namespace

std::string CallSiteInWords(const v1::Call& call) { return SiteInWords(call.code()); }

std::string StackTitle(const v1::ProcessStack& stack) {
  std::vector<std::string> parts = {absl::StrCat("rank ", stack.rank())};
  if (!stack.host().empty()) parts.push_back(stack.host());
  parts.push_back(absl::StrCat("pid ", stack.pid()));
  if (stack.culprit()) parts.push_back("culprit");
  const std::string time = TimeInWords(stack.taken_at());
  if (!time.empty()) parts.push_back(absl::StrCat("taken ", time));
  if (stack.cpu_seconds() > 0) {
    parts.push_back(absl::StrFormat("%.2f s of CPU time by then", stack.cpu_seconds()));
  }
  return absl::StrJoin(parts, ", ");
}

std::string ChildrenTitle(const v1::ProcessStack& stack) {
  std::vector<std::string> parts;
  for (const v1::ChildProcess& child : stack.children()) {
    parts.push_back(absl::StrFormat("%d \"%s\" (state %s, %.2f s of CPU time)", child.pid(),
                                    child.name(), child.state(), child.cpu_seconds()));
  }
  return parts.empty() ? "" : absl::StrCat("has started ", absl::StrJoin(parts, ", "));
}

std::string ChildTitle(const v1::ChildProcess& child) {
  return absl::StrFormat("process %d \"%s\", which it has started", child.pid(), child.name());
}

// Whether the thread waits at a barrier of JAX's coordination service.
bool WaitsAtABarrier(const v1::ThreadStack& thread) {
  return std::any_of(thread.frames().begin(), thread.frames().end(), [](const v1::Frame& frame) {
    return absl::StrContains(frame.function(), "WaitAtBarrier");
  });
}

std::string ThreadTitle(const v1::ThreadStack& thread) {
  std::string title = absl::StrCat("thread ", thread.tid());
  if (!thread.name().empty()) absl::StrAppend(&title, " \"", thread.name(), "\"");
  if (!thread.state().empty()) absl::StrAppend(&title, ", state ", thread.state());
  if (!thread.wait_channel().empty()) absl::StrAppend(&title, ", in ", thread.wait_channel());
  if (!thread.python_lock().empty()) {
    absl::StrAppend(&title, ", ", thread.python_lock(),
                    thread.python_lock() == "waits" ? " for" : "", " Python's lock (GIL)");
  }
  if (thread.keeps_process()) absl::StrAppend(&title, ", no daemon");
  if (thread.has_handles()) {
    const v1::PythonException& exception = thread.handles();
    absl::StrAppend(&title, ", handles ", exception.type(), exception.text().empty() ? "" : ": ",
                    exception.text(), exception.at().empty() ? "" : ", raised at ", exception.at());
  }
  if (!thread.awaited_key().empty()) {
    const bool is_barrier = WaitsAtABarrier(thread);
    absl::StrAppend(&title, is_barrier ? ", waits at barrier \"" : ", waits for key \"",
                    thread.awaited_key(), is_barrier ? "\"" : "\" of the store");
  }
  if (thread.has_other_end()) {
    absl::StrAppend(&title, ", waits at a ", thread.other_end().kind(), " for pid ",
                    OtherEndsInWords(thread.other_end()));
  }
  return title;
}

std::string FrameInWords(const v1::Frame& frame, int number) {
  std::string text = absl::StrFormat("#%-2d %s", number,
                                     frame.function().empty() ? frame.address() : frame.function());
  if (!frame.file().empty()) {
    absl::StrAppend(&text, "  ", frame.file());
    if (frame.line() > 0) absl::StrAppend(&text, ":", frame.line());
  }
  if (frame.python()) absl::StrAppend(&text, "  [Python]");
  if (!frame.module().empty()) absl::StrAppend(&text, "  (", frame.module(), ")");
  return text;
}

std::vector<const v1::ProcessStack*> StacksInOrder(const v1::Incident& incident) {
  std::vector<const v1::ProcessStack*> stacks;
  for (const v1::ProcessStack& stack : incident.stacks()) stacks.push_back(&stack);
  std::stable_sort(stacks.begin(), stacks.end(),
                   [](const v1::ProcessStack* a, const v1::ProcessStack* b) {
                     return a->culprit() > b->culprit();
                   });
  return stacks;
}

Facts VerdictFacts(const v1::Verdict& v) {
  Facts facts;
  Add("cause", v.cause(), &facts);
  Add("certainty", v.certainty(), &facts);
  // Before the first NCCL call there is neither communicator nor call.
  if (v.communicator().id() != kNoCommunicator) {
    Add("communicator", CommunicatorInWords(v.communicator()), &facts);
    Add("call", absl::StrFormat("#%.0f, %s", v.call().position(), CallInWords(v.call())), &facts);
  }
  Add("differs in", absl::StrJoin(v.mismatched_fields(), ", "), &facts);
  Add("waiting", WaitingInWords(v), &facts);
  Add("where", WaitingSitesInWords(v), &facts);
  return facts;
}

namespace {

// "2.27.3"; where ranks differ: "2.26.2 (ranks 0-6), 2.27.3 (rank 7)".
std::map<std::string, std::string> VersionsByComponent(const v1::Incident& incident) {
  std::map<std::string, int> count;
  for (const v1::VersionInUse& version : incident.versions()) ++count[version.component()];
  std::map<std::string, std::string> all;
  for (const v1::VersionInUse& version : incident.versions()) {
    std::string& text = all[version.component()];
    const bool one = version.ranks().find_first_of(",-") == std::string::npos;
    absl::StrAppend(&text, text.empty() ? "" : ", ", version.version());
    if (count[version.component()] == 1) continue;
    absl::StrAppend(&text, one ? " (rank " : " (ranks ", version.ranks(), ")");
  }
  return all;
}

// Why alerts of it are held back, or will be; empty if they are not.
std::string AlertInWords(const v1::Incident& incident) {
  if (incident.has_silenced()) {
    return absl::StrCat("silenced until ", TimeInWords(incident.silenced().until()), " by ",
                        incident.silenced().who(), " (", incident.silenced().id(), ")");
  }
  return incident.alert_held_back() ? "held back: the job has reached --alerts-per-hour" : "";
}

}  // namespace

Facts IncidentFacts(const v1::Incident& incident) {
  Facts facts;
  Add("incident", incident.id(), &facts);
  Add("job", incident.job(), &facts);
  Add("state", incident.state(), &facts);
  Add("opened", TimeInWords(incident.opened_at()), &facts);
  Add("confirmed", TimeInWords(incident.confirmed_at()), &facts);
  Add("closed", TimeInWords(incident.closed_at()), &facts);
  Add("report", incident.report_path(), &facts);
  Add(incident.report_path().empty() ? "report" : "note", incident.report_note(), &facts);
  Add("alert", AlertInWords(incident), &facts);
  if (incident.has_acknowledged()) {
    const v1::Acknowledgement& one = incident.acknowledged();
    Add("acknowledged", absl::StrCat("by ", one.who(), ", ", TimeInWords(one.at())), &facts);
  }
  for (const v1::Note& note : incident.notes()) {
    Add("note", absl::StrCat(note.text(), " (", note.who(), ", ", TimeInWords(note.at()), ")"),
        &facts);
  }
  Add("again", incident.recurrence().sentence(), &facts);
  Add("rollcall", incident.rollcall_version(), &facts);
  for (const auto& [component, versions] : VersionsByComponent(incident)) {
    Add(component, versions, &facts);
  }
  return facts;
}

std::vector<std::string> HistoryLines(const v1::Verdict& verdict) {
  std::vector<std::string> lines;
  const auto side = [](bool has, const v1::Call& call) {
    return has ? absl::StrFormat("#%.0f %s", call.position(), CallInWords(call)) : "-";
  };
  for (const v1::AlignedCall& line : verdict.histories()) {
    lines.push_back(absl::StrFormat("%s %-44s %s", line.differs() ? ">" : " ",
                                    side(line.has_others(), line.others()),
                                    side(line.has_culprits(), line.culprits())));
    const std::string others = CallSiteInWords(line.others());
    const std::string culprits = CallSiteInWords(line.culprits());
    if (others.empty() && culprits.empty()) continue;
    lines.push_back(absl::StrFormat("    %-44s   %s", others, culprits));
  }
  return lines;
}

std::vector<std::string> ChainLines(const v1::Verdict& verdict) {
  std::vector<std::string> lines;
  for (const v1::WaitEdge& edge : verdict.chain()) {
    const bool nobody = edge.to().empty();
    lines.push_back(absl::StrCat(
        AllInWords(edge.from(), edge.from_ranges()), edge.from_size() == 1 ? " waits" : " wait",
        " in ", absl::StrFormat("#%.0f %s", edge.call().position(), CallInWords(edge.call())),
        " on ", CommunicatorInWords(edge.communicator()),
        nobody ? "" : " for " + AllInWords(edge.to(), edge.to_ranges())));
  }
  if (verdict.chain_total() > verdict.chain_size()) {
    const auto more = static_cast<uint64_t>(verdict.chain_total() - verdict.chain_size());
    lines.push_back(absl::StrCat("and ", CountInWords(more, "more wait", "more waits")));
  }
  return lines;
}

std::string Headline(const v1::Incident& incident) {
  if (incident.verdicts().empty()) return "no verdict";
  return incident.verdicts(0).summary();
}

}  // namespace rollcall
