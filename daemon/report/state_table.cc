// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/state_table.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "daemon/model/progress.h"
#include "daemon/report/wrap.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostCommunicators = 32;
constexpr size_t kMostRows = 24;  // of one communicator
constexpr size_t kRanksWidth = 12;
constexpr size_t kLongestList = 512;  // of ranks, bytes
constexpr size_t kCallWidth = 40;

constexpr const char* kStateNames[] = {"being created", "",        "finalizing", "finalized",
                                       "destroyed",     "aborted", "revoked",    "failed"};

struct Row {
  std::vector<int32_t> ranks;  // public
  std::string call;
  std::vector<std::string> numbers;  // entered, returned, started, finished
  int64_t since_ns = 0;
  bool waits = false;
};

std::string Cut(std::string text, size_t width) {
  if (text.size() <= width) return text;
  text.resize(width - 2);
  return text + "..";
}

const CallRecord* NewestRecord(const Member& member) {
  return member.records.empty() ? nullptr : &member.records.back();
}

std::string LastCall(const Member& member) {
  const size_t state = static_cast<size_t>(member.state);
  const std::string name = kStateNames[state];
  const CallRecord* record = NewestRecord(member);
  std::string call = "no call";
  if (record != nullptr) {
    const bool p2p = OpKind(record->args.op) == CallKind::kP2p;
    call =
        absl::StrCat(p2p ? "" : absl::StrCat("#", record->position, " "), CallInWords(record->args),
                     IsAccepted(*record) ? "" : " " + ResultInWords(record->result));
  } else if (member.entered != 0) {
    call = absl::StrCat("#", member.entered - 1, " (record lost)");
  }
  return name.empty() ? call : absl::StrCat(name, "; ", call);
}

std::vector<std::string> CallNumbers(const Member& m) {
  const auto with_p2p = [&](uint64_t collectives, uint64_t p2p) {
    return m.p2p_entered == 0 ? absl::StrCat(collectives) : absl::StrCat(collectives, "+", p2p);
  };
  std::vector<std::string> numbers = {with_p2p(m.entered, m.p2p_entered),
                                      with_p2p(m.returned, m.p2p_returned)};
  numbers.push_back(m.has_markers ? with_p2p(m.started, m.p2p_started) : "-");
  numbers.push_back(m.has_markers ? with_p2p(m.finished, m.p2p_finished) : "-");
  return numbers;
}

std::vector<Row> MakeRows(const JobState& job, const Communicator& comm) {
  std::map<std::tuple<std::string, std::vector<std::string>, bool>, Row> rows;
  for (const auto& [rank, member] : comm.members) {
    const bool waits = WaitsSince(member) != 0;
    const std::string call = LastCall(member);
    const std::vector<std::string> numbers = CallNumbers(member);
    Row& row = rows[{call, numbers, waits}];
    row.ranks.push_back(PublicRank(job, member.process, rank));
    row.call = call;
    row.numbers = numbers;
    row.waits = waits;
    const CallRecord* newest = NewestRecord(member);
    const int64_t since = waits ? WaitsSince(member) : newest == nullptr ? 0 : newest->entered_ns;
    if (since != 0 && (row.since_ns == 0 || since < row.since_ns)) row.since_ns = since;
  }
  std::vector<Row> result;
  for (auto& [key, row] : rows) result.push_back(std::move(row));
  std::sort(result.begin(), result.end(),
            [](const Row& a, const Row& b) { return a.ranks.front() < b.ranks.front(); });
  return result;
}

std::string TimeOfDay(int64_t ns) {
  if (ns == 0) return "";
  return absl::FormatTime("%H:%M:%S", absl::FromUnixNanos(ns), absl::UTCTimeZone());
}

void AddRow(const Row& row, std::string* text) {
  std::string ranks = RankList(row.ranks);
  if (ranks.size() > kLongestList) ranks = RanksInWords(row.ranks);
  if (ranks.size() > kRanksWidth) {
    *text += Wrap("  ", "  ", ranks);
    ranks.clear();
  }
  absl::StrAppendFormat(text, "  %-12s %-40s %8s %8s %8s %8s %s%s\n", ranks,
                        Cut(row.call, kCallWidth), row.numbers[0], row.numbers[1], row.numbers[2],
                        row.numbers[3], TimeOfDay(row.since_ns), row.waits ? "*" : "");
}

void AddCommunicator(const JobState& job, const Communicator& comm, std::string* text) {
  std::string title = absl::StrCat("communicator ", IdInHex(comm.id));
  const std::string name = NameForPeople(job, comm);
  if (!name.empty()) absl::StrAppend(&title, " \"", name, "\"");
  absl::StrAppend(&title, ", ", comm.size, " ranks");
  const size_t unknown = RankRanges(UnknownRanks(comm)).size();
  if (unknown != 0) absl::StrAppend(&title, ", ", unknown, " of them without a report");
  if (comm.other_size != 0) {
    absl::StrAppend(&title, "; some of them passed ", comm.other_size, " ranks");
  }
  *text += "\n" + Wrap("", "  ", title);
  absl::StrAppendFormat(text, "  %-12s %-40s %8s %8s %8s %8s %s\n", "ranks", "last call", "entered",
                        "returned", "started", "finished", "since");
  const std::vector<Row> rows = MakeRows(job, comm);
  for (size_t i = 0; i < rows.size() && i < kMostRows; ++i) AddRow(rows[i], text);
  if (rows.size() > kMostRows) {
    absl::StrAppend(text, "  ... and ", rows.size() - kMostRows, " more lines\n");
  }
}

}  // namespace

std::string StateTable(const JobState& job) {
  std::vector<const Communicator*> order;
  for (const auto& [id, comm] : job.communicators) order.push_back(&comm);
  const auto waits = [](const Communicator* comm) {
    return std::any_of(comm->members.begin(), comm->members.end(),
                       [](const auto& entry) { return WaitsSince(entry.second) != 0; });
  };
  std::stable_partition(order.begin(), order.end(), waits);
  std::string text;
  for (size_t i = 0; i < order.size() && i < kMostCommunicators; ++i) {
    AddCommunicator(job, *order[i], &text);
  }
  if (order.size() > kMostCommunicators) {
    absl::StrAppend(&text, "\n... and ", order.size() - kMostCommunicators,
                    " more communicators\n");
  }
  if (!text.empty()) text += "\n  * waiting since then; n+m: collectives + sends and receives\n";
  return text;
}

}  // namespace rollcall
