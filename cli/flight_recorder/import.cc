// SPDX-License-Identifier: Apache-2.0
#include "cli/flight_recorder/import.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/flight_recorder/exchanges.h"
#include "cli/flight_recorder/operations.h"
#include "cli/flight_recorder/rooted_lists.h"
#include "cli/flight_recorder/works.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

// A process group as the dumps of some ranks describe it.
struct Group {
  std::string name;
  std::string title;
  std::vector<int32_t> ranks;  // global, ascending
};

uint64_t HashGroup(const std::string& text, const std::vector<int32_t>& ranks) {
  uint64_t hash = segment::kSignatureSeed;
  for (const char c : text) hash = segment::Mix(hash, static_cast<unsigned char>(c));
  for (const int32_t rank : ranks) hash = segment::Mix(hash, static_cast<uint64_t>(rank) + 1000);
  return hash;
}

class Importer {
 public:
  Importer(std::vector<RankedDump> dumps, FlightRecorderInput* input)
      : dumps_(std::move(dumps)), input_(input), table_(ListOperations(dumps_)) {}

  void Run() {
    input_->model.SetOffline();
    for (const std::string& warning : table_.Warnings()) Report(warning);
    CompareVersions();
    FindGroups();
    for (const RankedDump& dump : dumps_) CompareTimes(dump.dump);
    for (const RankedDump& dump : dumps_) ImportRank(dump);
    AddSilentMembers();
    ReportMissingRanks();
  }

 private:
  static std::set<std::string> ListOperations(const std::vector<RankedDump>& dumps) {
    std::set<std::string> names;
    for (const RankedDump& dump : dumps) {
      for (const DumpedCall& call : dump.dump.calls) names.insert(OperationName(call.name));
    }
    return names;
  }

  void Report(const std::string& warning) { AddWarning(warning, &input_->warnings); }

  void CompareVersions() {
    std::map<std::string, std::vector<int32_t>> ranks;
    for (const RankedDump& dump : dumps_) ranks[dump.dump.version].push_back(dump.rank);
    if (ranks.size() < 2) return;
    for (const auto& [version, some] : ranks) {
      Report(absl::StrCat(RanksInWords(some), ": dump version ",
                          version.empty() ? "unknown" : version,
                          "; the ranks ran different versions of PyTorch"));
    }
  }

  void CompareTimes(const Dump& dump) {
    for (const DumpedCall& call : dump.calls) {
      input_->newest_ns =
          std::max({input_->newest_ns, call.created_ns, call.started_ns, call.completed_ns});
      input_->has_start_times |= call.started && (call.started_ns != 0 || !call.completed);
    }
  }

  // Finds the members of each rank's groups: from its dump, else all ranks whose dumps have calls
  // of a group of that name.
  void FindGroups() {
    std::map<std::string, std::set<int32_t>> callers;
    for (const RankedDump& dump : dumps_) {
      for (const DumpedCall& call : dump.dump.calls) callers[call.group].insert(dump.rank);
    }
    for (const RankedDump& dump : dumps_) {
      for (const DumpedCall& call : dump.dump.calls) AddGroup(dump, call, callers[call.group]);
      for (const auto& [name, group] : dump.dump.groups) {
        for (const int32_t rank : group.ranks) world_.insert(rank);
      }
      world_.insert(dump.rank);
    }
    ReportDisagreement();
  }

  void AddGroup(const RankedDump& dump, const DumpedCall& call, const std::set<int32_t>& callers) {
    const auto [at, is_new] = groups_.emplace(std::make_pair(dump.rank, call.group), Group());
    if (!is_new) return;
    Group& group = at->second;
    group.name = call.group;
    const auto config = dump.dump.groups.find(call.group);
    if (config != dump.dump.groups.end()) group.ranks = config->second.ranks;
    if (group.ranks.empty()) group.ranks.assign(callers.begin(), callers.end());
    std::string title = call.description;
    if (title.empty() && config != dump.dump.groups.end()) title = config->second.description;
    group.title = title.empty() || title == "undefined" ? call.group : title;
  }

  void ReportDisagreement() {
    std::map<std::string, std::map<std::vector<int32_t>, std::vector<int32_t>>> variants;
    for (const auto& [key, group] : groups_) variants[group.name][group.ranks].push_back(key.first);
    for (const auto& [name, members] : variants) {
      std::set<int32_t> seen;
      bool overlap = false;
      for (const auto& [ranks, reporters] : members) {
        for (const int32_t rank : ranks) overlap |= !seen.insert(rank).second;
      }
      if (!overlap) continue;
      for (const auto& [ranks, reporters] : members) {
        Report(absl::StrCat("group \"", name, "\" has the members ", RankList(ranks),
                            " in the dumps of ", RanksInWords(reporters),
                            ": the ranks disagree, so Rollcall treats them as different groups"));
      }
    }
  }

  void ImportRank(const RankedDump& dump) {
    const int32_t process =
        input_->model.AddProcess(dump.host, 0, static_cast<uint64_t>(dump.rank) + 1);
    ProcessIdentity identity;
    identity.host = dump.host;
    identity.global_rank = dump.rank;
    identity.world_size = static_cast<int32_t>(world_.size());
    identity.has_segment = true;
    input_->model.SetIdentity(process, identity);
    std::map<std::string, std::vector<const DumpedCall*>> calls;
    for (const DumpedCall& call : dump.dump.calls) calls[call.group].push_back(&call);
    process_of_[dump.rank] = process;
    std::map<std::string, std::vector<Work>> works;
    begun_ = nullptr;
    for (const auto& [name, some] : calls) {
      works[name] = MakeWorks(some, FindStatus(dump, some));
      for (const Work& work : works[name]) {
        const bool older = begun_ == nullptr || work.last().record_id < begun_->record_id;
        if (!work.completed && older && !input_->has_start_times) begun_ = &work.last();
      }
    }
    static const auto* const kNothing = new DumpedCall();
    if (begun_ == nullptr && !input_->has_start_times) begun_ = kNothing;
    for (auto& [name, some] : works)
      ImportGroup(dump, process, name, FindStatus(dump, calls[name]), &some);
  }

  static DumpedStatus FindStatus(const RankedDump& dump,
                                 const std::vector<const DumpedCall*>& calls) {
    const auto at = dump.dump.status.find(calls.front()->group_id);
    return at == dump.dump.status.end() ? DumpedStatus() : at->second;
  }

  // Adds an unknown rank to the model if the rank has no dump.
  int32_t ProcessOfRank(int32_t rank) {
    const auto known = process_of_.find(rank);
    if (known != process_of_.end()) return known->second;
    const int32_t process = input_->model.AddProcess("", 0, static_cast<uint64_t>(rank) + 1);
    ProcessIdentity identity;
    identity.global_rank = rank;
    identity.world_size = static_cast<int32_t>(world_.size());
    input_->model.SetIdentity(process, identity);
    return process;
  }

  // Adds members whose dump has no call on the communicator: they made none.
  void AddSilentMembers() {
    for (const auto& [id, communicator] : communicators_) {
      const std::vector<int32_t>& ranks = communicator.ranks;
      std::vector<int32_t> seats;
      for (const int32_t rank : ranks) seats.push_back(ProcessOfRank(rank));
      input_->model.SetSeats(id, seats);
      for (size_t i = 0; i < ranks.size(); ++i) {
        const auto process = process_of_.find(ranks[i]);
        if (process == process_of_.end() || communicator.callers.count(ranks[i]) != 0) continue;
        CommProgress none;
        none.id = id;
        none.name = communicator.name;
        none.rank = static_cast<int32_t>(i);
        none.size = static_cast<int32_t>(ranks.size());
        none.state = MemberState::kReady;
        none.has_markers = true;
        none.signature = segment::kSignatureSeed;
        SetProgress(process->second, none);
      }
    }
  }

  void ImportGroup(const RankedDump& dump, int32_t process, const std::string& name,
                   const DumpedStatus& status, std::vector<Work>* works) {
    const Group& group = groups_.at({dump.rank, name});
    const auto me = std::lower_bound(group.ranks.begin(), group.ranks.end(), dump.rank);
    if (me == group.ranks.end() || *me != dump.rank) {
      Report(absl::StrCat(dump.path, ": group \"", name, "\" left out: rank ", dump.rank,
                          " is not one of its members ", RankList(group.ranks)));
      return;
    }
    const auto my_rank = static_cast<int32_t>(me - group.ranks.begin());
    CommProgress own;
    own.id = HashGroup(name, group.ranks);
    own.name = group.title;
    own.rank = my_rank;
    own.size = static_cast<int32_t>(group.ranks.size());
    ProgressWriter writer(table_, begun_, &own);
    std::map<int32_t, std::vector<Work>> singles;
    for (Work& work : *works) {
      ReportTimeout(dump, group, work);
      const int32_t peer = ParsePeer(work.last().name);
      if (work.is_p2p && !IsCoalesced(work) && peer >= 0) {
        singles[peer].push_back(std::move(work));
      } else {
        SetBlockedCall(process, own.id, work);
        writer.Add(work);
      }
    }
    writer.Finish(status);
    if (own.entered + own.p2p_entered > 0) AddProgress(dump.rank, process, group.ranks, own);
    for (const auto& [peer, works] : singles) ImportPair(process, group, my_rank, peer, works);
  }

  // Sends and receives outside of a group use a communicator of the two ranks.
  void ImportPair(int32_t process, const Group& group, int32_t me, int32_t peer,
                  const std::vector<Work>& works) {
    if (static_cast<size_t>(peer) >= group.ranks.size() || peer == me) {
      Report(absl::StrCat("group \"", group.name, "\": a send or receive with rank ", peer,
                          ", which is not a member"));
      return;
    }
    const std::vector<int32_t> ranks = {group.ranks[static_cast<size_t>(std::min(me, peer))],
                                        group.ranks[static_cast<size_t>(std::max(me, peer))]};
    CommProgress pair;
    pair.id = HashGroup(absl::StrCat(group.name, " pair"), ranks);
    pair.name = absl::StrCat(group.title, " ", ranks[0], "-", ranks[1]);
    pair.rank = me < peer ? 0 : 1;
    pair.size = 2;
    ProgressWriter writer(table_, begun_, &pair);
    for (const Work& work : works) writer.AddSingle(work, 1 - pair.rank);
    writer.Finish({});
    AddProgress(ranks[static_cast<size_t>(pair.rank)], process, ranks, pair);
  }

  void AddProgress(int32_t caller, int32_t process, const std::vector<int32_t>& ranks,
                   const CommProgress& progress) {
    Communicator& communicator = communicators_[progress.id];
    communicator.name = progress.name;
    communicator.ranks = ranks;
    communicator.callers.insert(caller);
    SetProgress(process, progress);
  }

  void SetProgress(int32_t process, CommProgress progress) {
    progress.index = next_index_++;
    input_->model.SetProgress(process, progress, input_->newest_ns);
  }

  void ReportTimeout(const RankedDump& dump, const Group& group, const Work& work) {
    if (!work.last().retired || work.completed || work.is_p2p) return;
    if (!timed_out_.insert({dump.rank, group.name}).second) return;
    Report(
        absl::StrCat("rank ", dump.rank, ": PyTorch gave up waiting for ", work.last().name, " #",
                     work.last().collective_seq - std::min<uint64_t>(1, work.last().collective_seq),
                     " on \"", group.title, "\" (timeout)"));
  }

  void SetBlockedCall(int32_t process, uint64_t communicator, const Work& work) {
    if (work.is_p2p || work.last().where.empty() || work.last().collective_seq == 0) return;
    input_->where[{process, communicator, work.last().collective_seq - 1}] = work.last().where;
  }

  void ReportMissingRanks() {
    std::vector<int32_t> missing;
    for (const int32_t rank : world_) {
      const bool there = std::any_of(dumps_.begin(), dumps_.end(),
                                     [rank](const RankedDump& dump) { return dump.rank == rank; });
      if (!there) missing.push_back(rank);
    }
    if (missing.empty()) return;
    Report(absl::StrCat("no dump of ", RanksInWords(missing), " of ", world_.size(),
                        ": their calls are unknown"));
  }

  // A communicator of the model.
  struct Communicator {
    std::string name;
    std::vector<int32_t> ranks;  // global, in the order of the ranks in the communicator
    std::set<int32_t> callers;   // global
  };

  const std::vector<RankedDump> dumps_;
  FlightRecorderInput* const input_;
  const OperationTable table_;
  std::map<std::pair<int32_t, std::string>, Group> groups_;  // by rank and name
  std::set<int32_t> world_;
  const DumpedCall* begun_ = nullptr;      // of the rank in ImportRank(): see ProgressWriter
  std::map<int32_t, int32_t> process_of_;  // by rank
  std::map<uint64_t, Communicator> communicators_;  // by id
  uint32_t next_index_ = 0;
  std::set<std::pair<int32_t, std::string>> timed_out_;
};

void AddLine(const FlightRecorderInput& input, int32_t process, uint64_t communicator,
             uint64_t position, const std::string& who, Verdict* verdict) {
  const auto line = input.where.find({process, communicator, position});
  if (line == input.where.end()) return;
  verdict->evidence.push_back(
      absl::StrCat(who, ": call #", position, " was made at ", line->second));
}

void AddLines(const FlightRecorderInput& input, Verdict* verdict) {
  constexpr size_t kMostLines = 4;
  for (size_t i = 0; i < std::min(kMostLines, verdict->culprits.size()); ++i) {
    const Culprit& culprit = verdict->culprits[i];
    const uint64_t newest = culprit.entered == 0 ? 0 : culprit.entered - 1;
    AddLine(input, culprit.process, verdict->communicator, std::min(verdict->position, newest),
            RanksInWords({culprit.rank}), verdict);
  }
  if (verdict->waiting_processes.empty()) return;
  AddLine(input, verdict->waiting_processes[0], verdict->communicator, verdict->position,
          RanksInWords({verdict->waiting_ranks[0]}), verdict);
}

// The ranks of a gather or scatter may well have different numbers, as its root expects them.
void WeighUnlisted(const FlightRecorderInput& input, Verdict* verdict) {
  if (verdict->cause != Cause::kArgumentMismatch) return;
  if (input.unlisted.count({verdict->communicator, verdict->position}) == 0) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(
      "how many elements of each rank the root expects: no dump has its list");
}

void AddExchange(const FlightRecorderInput& input, Verdict* verdict) {
  const auto at = input.exchanges.find({verdict->communicator, verdict->position});
  if (at != input.exchanges.end()) verdict->evidence.push_back(at->second);
}

}  // namespace

FlightRecorderInput ImportDumps(std::vector<RankedDump> dumps, std::vector<std::string> warnings) {
  FlightRecorderInput input;
  for (UnequalExchange& exchange : FindUnequalExchanges(&dumps)) {
    const uint64_t id = HashGroup(exchange.group, exchange.members);
    input.exchanges[{id, exchange.position}] = std::move(exchange.words);
  }
  for (const UnlistedCall& call : CompareWithRoots(&dumps)) {
    input.unlisted.emplace(HashGroup(call.group, call.members), call.position);
  }
  input.warnings = std::move(warnings);
  input.files = static_cast<int>(dumps.size());
  Importer(std::move(dumps), &input).Run();
  return input;
}

absl::StatusOr<FlightRecorderInput> ImportFlightRecorder(const std::vector<std::string>& paths) {
  std::vector<std::string> warnings;
  absl::StatusOr<DumpFiles> read = ReadDumps(paths, &warnings);
  if (!read.ok()) return read.status();
  if (!read->dumps.empty()) {
    FlightRecorderInput input = ImportDumps(std::move(read->dumps), std::move(warnings));
    input.damaged = read->damaged;
    return input;
  }
  std::string text =
      "found no readable Flight Recorder dump: the name of a dump must end in its rank, like "
      "nccl_trace_rank_3";
  for (const std::string& warning : warnings) absl::StrAppend(&text, "\n  ", warning);
  return absl::InvalidArgumentError(text);
}

void AddDumpEvidence(const FlightRecorderInput& input, std::vector<Verdict>* verdicts) {
  for (Verdict& verdict : *verdicts) {
    for (std::string& line : verdict.evidence) {
      absl::StrReplaceAll({{kShownByMarkersOrHost, "shown by the states in the dumps"}}, &line);
    }
    AddLines(input, &verdict);
    AddExchange(input, &verdict);
    WeighUnlisted(input, &verdict);
    if (verdict.cause != Cause::kStalledInFlight || input.has_start_times) continue;
    verdict.certainty = std::min(verdict.certainty, Certainty::kLikely);
    verdict.missing_evidence.push_back(
        "the dumps hold no start times (TORCH_NCCL_ENABLE_TIMING=1 records them): a GPU that has "
        "not started the call looks the same");
  }
}

}  // namespace rollcall
