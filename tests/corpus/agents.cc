// SPDX-License-Identifier: Apache-2.0
#include "agents.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/model/host_clocks.h"
#include "daemon/model/progress.h"
#include "interpose/segment.h"

namespace rollcall::corpus {
namespace {

constexpr int64_t kStart = 1'700'000'000 * kSecond;
constexpr int64_t kSilentAfter = 10 * kSecond;
constexpr uint64_t kRing = 512;
constexpr int64_t kSeenFor = 3 * kSecond;  // after a confirmation
constexpr uint32_t kThreadsOfRank = 16;

// Reads the timeline of one rank on one communicator, forwards in time.
class Reader {
 public:
  Reader(const JobPlan& plan, const Track& track, int rank, uint32_t first_thread,
         const Sight& sight, bool loses)
      : plan_(plan),
        track_(track),
        rank_(plan.RankIn(track.comm, rank)),
        size_(static_cast<int>(CommOf(plan, track).ranks.size())),
        kind_(CommOf(plan, track).kind),
        has_markers_(sight.markers || kind_ == CommKind::kGloo),
        first_thread_(first_thread),
        sight_(sight),
        loses_(loses) {}

  // True if `whole`, or if something has changed since the previous call.
  bool Read(int64_t t, int64_t skew, const RankTimeline& line, bool whole, CommProgress* progress) {
    if (track_.init_entered > t) return false;
    CommProgress p;
    p.id = CommId(track_.comm);
    p.rank = rank_;
    p.size = size_;
    p.kind = kind_;
    const bool has_siblings = sight_.ranks_per_process > 1;
    if (has_siblings) p.device = static_cast<int32_t>(first_thread_ / kThreadsOfRank);
    p.state = StateAt(t);
    p.init_entered_ns = Stamp(track_.init_entered, skew);
    p.async_error = static_cast<uint8_t>(track_.error_at <= t ? track_.error : 0);
    p.has_markers = has_markers_;
    Count(t, whole, skew, &p);
    AddWaits(t, skew, line, &p);
    const bool changed = whole || !p.records.empty() || p.state != reported_.state ||
                         p.finished != reported_.finished || p.started != reported_.started ||
                         p.waiting_since_ns != reported_.waiting_since_ns ||
                         p.host_waits_since_ns != reported_.host_waits_since_ns ||
                         p.host_blocked_since_ns != reported_.host_blocked_since_ns ||
                         p.p2p_started != reported_.p2p_started ||
                         p.p2p_finished != reported_.p2p_finished ||
                         p.async_error != reported_.async_error || !has_reported_;
    has_reported_ = true;
    reported_ = p;
    if (changed) *progress = std::move(p);
    return changed;
  }

 private:
  static const CommPlan& CommOf(const JobPlan& plan, const Track& track) {
    return plan.comms[static_cast<size_t>(track.comm)];
  }
  static int64_t Stamp(int64_t t, int64_t skew) { return t == kNever ? 0 : kStart + t + skew; }

  MemberState StateAt(int64_t t) const {
    if (track_.destroy_returned <= t) return MemberState::kDestroyed;
    if (track_.destroy_entered <= t) return MemberState::kFinalizing;
    return track_.init_returned <= t ? MemberState::kReady : MemberState::kInitializing;
  }

  CallRecord MakeRecord(size_t i, int64_t t, int64_t skew) const {
    const CallTimes& call = track_.calls[i];
    CallRecord record;
    record.index = i;
    record.position = call.position;
    record.args = call.args;
    record.entered_ns = Stamp(call.entered, skew);
    record.returned_ns = call.returned <= t ? Stamp(call.returned, skew) : 0;
    record.group = call.group;
    record.thread = first_thread_ + call.thread;
    return record;
  }

  // Fills in counts, signature, checkpoints and new records, as the library does.
  void Count(int64_t t, bool whole, int64_t skew, CommProgress* p) {
    const size_t before = entered_;
    while (entered_ < track_.calls.size() && track_.calls[entered_].entered <= t) {
      const CallTimes& call = track_.calls[entered_];
      if (OpKind(call.args.op) == CallKind::kP2p) {
        ++p2p_;
      } else {
        signature_ = segment::NextSignature(
            signature_, static_cast<uint8_t>(Canonical(call.args.op)), call.args.dtype,
            call.args.reduction, call.args.peer, call.args.count);
        if (++collectives_ % segment::kCheckpointInterval == 0) {
          p->checkpoints.push_back({collectives_, signature_});
        }
      }
      ++entered_;
    }
    while (started_ < entered_ && track_.calls[started_].started <= t) {
      Reach(&started_, &started_collectives_, &started_p2p_);
    }
    while (finished_ < started_ && track_.calls[finished_].finished <= t) {
      finished_at_ = track_.calls[finished_].finished;
      Reach(&finished_, &finished_collectives_, &finished_p2p_);
    }
    p->entered = p->returned = collectives_;
    p->p2p_entered = p->p2p_returned = p2p_;
    if (has_markers_) {
      p->started = started_collectives_;
      p->finished = finished_collectives_;
      p->p2p_started = started_p2p_;
      p->p2p_finished = finished_p2p_;
    }
    // The program is in a call of gloo until it is done.
    if (kind_ == CommKind::kGloo) {
      p->returned = finished_collectives_;
      p->p2p_returned = finished_p2p_;
    }
    p->signature = signature_;
    size_t first = whole ? 0 : before;
    if (entered_ - first > kRing) first = entered_ - kRing;
    // The agent has not read the ring for so long that new records have replaced the old ones.
    if (loses_ && first < entered_ && before == 0) {
      first = std::max(first, std::min(finished_, entered_ - (entered_ + 3) / 4));
    }
    p->records_lost = first > before ? first - before : 0;
    for (size_t i = first; i < entered_; ++i) p->records.push_back(MakeRecord(i, t, skew));
  }

  void Reach(size_t* calls, uint64_t* collectives, uint64_t* p2p) const {
    const bool is_p2p = OpKind(track_.calls[*calls].args.op) == CallKind::kP2p;
    ++*(is_p2p ? p2p : collectives);
    ++*calls;
  }

  void AddWaits(int64_t t, int64_t skew, const RankTimeline& line, CommProgress* p) {
    if (has_markers_) {
      if (finished_ < entered_ && track_.calls[finished_].started <= t) {
        const int64_t since = std::max(track_.calls[finished_].entered, finished_at_);
        const bool is_p2p = OpKind(track_.calls[finished_].args.op) == CallKind::kP2p;
        (is_p2p ? p->p2p_waiting_since_ns : p->waiting_since_ns) = Stamp(since, skew);
      } else if (finished_collectives_ < collectives_) {
        // The GPU has not started the call: the agent still reports since when it is open.
        p->waiting_since_ns = Stamp(std::max(track_.calls[finished_].entered, finished_at_), skew);
      }
      return;
    }
    for (const Span& sync : line.syncs) {
      if (sync.begin > t || sync.end <= t || !IsNewest(line, t)) continue;
      p->host_waits_since_ns = Stamp(sync.begin, skew);
    }
  }

  bool IsNewest(const RankTimeline& line, int64_t t) const {
    int64_t newest = 0, mine = 0;
    for (const Track& track : line.tracks) {
      if (plan_.IsGloo(track.comm)) continue;  // no wait for the GPU is for it
      for (const CallTimes& call : track.calls) {
        if (call.entered > t) break;
        newest = std::max(newest, call.entered);
        if (&track == &track_) mine = std::max(mine, call.entered);
      }
    }
    return mine != 0 && mine == newest;
  }

  const JobPlan& plan_;
  const Track& track_;
  const int rank_, size_;
  const CommKind kind_;
  const bool has_markers_;
  const uint32_t first_thread_;
  const Sight& sight_;
  const bool loses_;
  size_t entered_ = 0, started_ = 0, finished_ = 0;
  uint64_t collectives_ = 0, started_collectives_ = 0, finished_collectives_ = 0;
  uint64_t p2p_ = 0, started_p2p_ = 0, finished_p2p_ = 0;
  int64_t finished_at_ = 0;
  uint64_t signature_ = segment::kSignatureSeed;
  CommProgress reported_;
  bool has_reported_ = false;
};

struct Host {
  std::vector<int> ranks;
  int64_t skew = 0;
  int64_t begins = 0;
  int64_t falls_silent = kNever;
  bool has_reported = false;
};

class Watcher {
 public:
  Watcher(const JobPlan& plan, const Timeline& timeline, const Sight& sight)
      : plan_(plan),
        timeline_(timeline),
        sight_(sight),
        random_(sight.seed),
        model_("corpus"),
        life_("corpus"),
        limits_(CorpusLimits()) {
    MakeHosts();
    MakeReaders();
  }

  Outcome Run() {
    Outcome outcome;
    const int64_t end = timeline_.last_event +
                        (timeline_.all_ended ? kSecond : limits_.hang_after_ns) + kSilentAfter +
                        20 * kSecond;
    for (int64_t t = 0; t < end; t += sight_.tick_ns) {
      Tick(t);
      const std::vector<Verdict> all = diagnoser_.Run(model_.state(), kStart + t, limits_);
      std::vector<Verdict> verdicts;
      std::vector<Verdict> warnings;
      for (const Verdict& v : all) (IsWarning(v.cause) ? warnings : verdicts).push_back(v);
      if (!warnings.empty()) outcome.warnings = warnings;
      for (const IncidentEvent& event :
           life_.Update(model_.state(), verdicts, kStart + t, limits_)) {
        if (event.kind == IncidentEvent::Kind::kOpened) ++outcome.suspected;
        if (event.kind != IncidentEvent::Kind::kConfirmed) continue;
        outcome.confirmed = true;
        outcome.confirmed_ns = t;
        outcome.at_first = event.incident.verdicts;
      }
      if (!outcome.confirmed) continue;
      // A live incident changes: ranks that join the wait later add evidence.
      if (life_.live()) outcome.verdicts = life_.live()->verdicts;
      if (outcome.verdicts.empty()) outcome.verdicts = outcome.at_first;
      if (!life_.live() || t >= outcome.confirmed_ns + kSeenFor) return outcome;
    }
    return outcome;
  }

 private:
  void MakeHosts() {
    hosts_.resize(static_cast<size_t>(plan_.HostIndex(plan_.ranks - 1)) + 1);
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      hosts_[static_cast<size_t>(plan_.HostIndex(rank))].ranks.push_back(rank);
    }
    for (Host& host : hosts_) {
      if (sight_.most_skew_ns != 0) {
        const auto range = static_cast<uint64_t>(2 * sight_.most_skew_ns);
        host.skew = static_cast<int64_t>(Below(random_, range)) - sight_.most_skew_ns;
      }
      if (Chance(random_, sight_.late_hosts_percent)) {
        host.begins = static_cast<int64_t>(Below(random_, 3)) * kSecond;
      }
      order_.push_back(&host);
    }
    for (const int lost : plan_.hosts_lost) {
      Host& host = hosts_[static_cast<size_t>(lost)];
      for (const int rank : host.ranks) {
        host.falls_silent =
            std::min(host.falls_silent, timeline_.ranks[static_cast<size_t>(rank)].ended);
      }
    }
    for (const int blind : sight_.blind_hosts) hosts_[static_cast<size_t>(blind)].begins = kNever;
    if (sight_.shuffle_hosts) std::shuffle(order_.begin(), order_.end(), random_);
  }

  void MakeReaders() {
    readers_.resize(static_cast<size_t>(plan_.ranks));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (const Track& track : timeline_.ranks[static_cast<size_t>(rank)].tracks) {
        const bool loses = Chance(random_, sight_.lost_records_percent);
        readers_[static_cast<size_t>(rank)].emplace_back(plan_, track, rank, FirstThread(rank),
                                                         sight_, loses);
      }
    }
  }

  void Tick(int64_t t) {
    for (Host* host : order_) {
      if (host->begins > t) continue;
      if (host->falls_silent <= t) {
        if (t - host->falls_silent >= kSilentAfter) Silence(*host);
        continue;
      }
      const int64_t delay =
          sight_.most_delay_ns == 0
              ? 0
              : static_cast<int64_t>(Below(random_, static_cast<uint64_t>(sight_.most_delay_ns)));
      const int64_t offset =
          clocks_.Update(HostName(*host), kStart + t + host->skew, kStart + t + delay);
      const bool whole = !host->has_reported || Chance(random_, sight_.reconnects_percent);
      for (const int rank : host->ranks) Report(rank, t, host->skew + offset, whole);
      host->has_reported = true;
    }
    ReportNeighbours(t);
  }

  std::string HostName(const Host& host) const {
    return absl::StrCat("node-", &host - hosts_.data());
  }

  void Silence(const Host& host) {
    for (const int rank : host.ranks) model_.SetSilent(FindProcess(rank), 0);
  }

  int32_t FindProcess(int rank) {
    const Host& host = hosts_[static_cast<size_t>(plan_.HostIndex(rank))];
    return model_.AddProcess(HostName(host), kFirstPid + rank / sight_.ranks_per_process, 1);
  }

  // The ranks of this rank's process, [first, end).
  int FirstSibling(int rank) const { return rank - rank % sight_.ranks_per_process; }
  int EndOfSiblings(int rank) const {
    return std::min(FirstSibling(rank) + sight_.ranks_per_process, plan_.ranks);
  }
  uint32_t FirstThread(int rank) const {
    return kThreadsOfRank * static_cast<uint32_t>(rank - FirstSibling(rank));
  }
  const RankTimeline& LineOf(int rank) const { return timeline_.ranks[static_cast<size_t>(rank)]; }

  ProcessIdentity IdentityAt(int rank, int64_t t) const {
    ProcessIdentity identity;
    identity.world_size = plan_.ranks;
    identity.global_rank =
        sight_.renumber.empty() ? rank : sight_.renumber[static_cast<size_t>(rank)];
    const int held = sight_.ranks_per_process;
    if (held > 1) {
      identity.global_rank = sight_.numbers_processes ? rank / held : -1;
      identity.world_size = sight_.numbers_processes ? (plan_.ranks + held - 1) / held : 0;
    }
    const RankTimeline& line = LineOf(rank);
    identity.has_segment = !line.tracks.empty() && line.tracks[0].init_entered <= t;
    return identity;
  }

  void ReportProcess(int first, int64_t t, int64_t skew, bool whole) {
    const int32_t process = FindProcess(first);
    if (whole) model_.SetIdentity(process, IdentityAt(first, t));
    model_.SetEvidence(process, EvidenceAt(first, t, skew));
  }

  void Report(int rank, int64_t t, int64_t skew, bool whole) {
    if (rank == FirstSibling(rank)) ReportProcess(rank, t, skew, whole);
    const RankTimeline& line = LineOf(rank);
    const int32_t process = FindProcess(rank);
    const int64_t seen = line.died || line.ended <= t ? std::min(t, line.ended) : t;
    auto& readers = readers_[static_cast<size_t>(rank)];
    uint32_t index = 0;
    for (int other = FirstSibling(rank); other < rank; ++other) {
      index += static_cast<uint32_t>(readers_[static_cast<size_t>(other)].size());
    }
    for (size_t i = 0; i < readers.size(); ++i, ++index) {
      CommProgress progress;
      if (!readers[i].Read(seen, skew, line, whole, &progress)) continue;
      progress.index = index;
      progress.name = plan_.comms[static_cast<size_t>(line.tracks[i].comm)].name;
      model_.SetProgress(process, progress, kStart + t);
      if (Chance(random_, sight_.resent_percent)) model_.SetProgress(process, progress, kStart + t);
    }
  }

  // The rank of the process that ends last.
  int LastSibling(int first) const {
    int last = first;
    for (int rank = first; rank < EndOfSiblings(first); ++rank) {
      if (LineOf(rank).ended > LineOf(last).ended) last = rank;
    }
    return last;
  }

  ProcessEvidence EvidenceAt(int first, int64_t t, int64_t skew) const {
    ProcessEvidence evidence;
    evidence.state = 'S';
    const RankTimeline& line = LineOf(LastSibling(first));
    if (line.ended <= t) {
      const bool status_known = !line.died || sight_.sees_exit_status;
      evidence.liveness = !status_known ? Liveness::kEnded
                          : line.died   ? Liveness::kDied
                                        : Liveness::kExited;
      evidence.exit_signal = line.died && status_known ? 9 : 0;
      evidence.ended_ns = kStart + line.ended + skew;
      return evidence;
    }
    evidence.liveness = Liveness::kAlive;
    for (int rank = first; rank < EndOfSiblings(first); ++rank) {
      AddBlockedCalls(rank, t, skew, &evidence);
    }
    return evidence;
  }

  void AddBlockedCalls(int rank, int64_t t, int64_t skew, ProcessEvidence* evidence) const {
    const uint32_t thread = FirstThread(rank) + 1;
    const auto add = [&](Op op, uint64_t communicator, int64_t since) {
      evidence->blocked.push_back({thread, op, communicator, kStart + since + skew});
    };
    const RankTimeline& line = LineOf(rank);
    for (const Span& sync : line.syncs) {
      if (sync.begin <= t && sync.end > t) add(Op::kcudaStreamSynchronize, 0, sync.begin);
    }
    for (const Track& track : line.tracks) {
      const bool is_gloo = plan_.IsGloo(track.comm);
      if (track.init_entered <= t && track.init_returned > t) {
        add(is_gloo ? Op::kProcessGroupGloo : Op::kCommInitRank, CommId(track.comm),
            track.init_entered);
      }
      if (is_gloo) {
        AddCallOnHost(track, t, add);
        continue;
      }
      if (track.destroy_entered <= t && track.destroy_returned > t) {
        add(Op::kCommDestroy, CommId(track.comm), track.destroy_entered);
      }
    }
  }

  // The call of gloo that the rank's thread is in, or the first message that it waits for.
  template <typename Add>
  static void AddCallOnHost(const Track& track, int64_t t, const Add& add) {
    for (const CallTimes& call : track.calls) {
      const bool is_message = OpKind(call.args.op) == CallKind::kP2p;
      if (call.entered > t || (is_message ? call.finished : call.returned) <= t) continue;
      return add(call.args.op, CommId(track.comm), call.entered);
    }
  }

  // Communicators of other processes, whose ranks all make one call in each tick.
  void ReportNeighbours(int64_t t) {
    for (int n = 0; n < sight_.healthy_neighbours; ++n) {
      for (int rank = 0; rank < 4; ++rank) {
        const int32_t process = model_.AddProcess("neighbour", 9000 + n * 4 + rank, 1);
        ProcessEvidence evidence;
        evidence.liveness = Liveness::kAlive;
        evidence.state = 'R';
        model_.SetEvidence(process, evidence);
        CommProgress progress;
        progress.id = CommId(100'000 + n);
        progress.rank = rank;
        progress.size = 4;
        progress.state = MemberState::kReady;
        progress.has_markers = true;
        progress.entered = progress.returned = progress.started = progress.finished =
            static_cast<uint64_t>(t / sight_.tick_ns);
        progress.signature = segment::Mix(progress.id, progress.entered);
        model_.SetProgress(process, progress, kStart + t);
      }
    }
  }

  const JobPlan& plan_;
  const Timeline& timeline_;
  const Sight& sight_;
  Random random_;
  JobModel model_;
  HostClocks clocks_;
  Diagnoser diagnoser_;
  IncidentLife life_;
  const Limits limits_;
  std::vector<Host> hosts_;
  std::vector<Host*> order_;
  std::vector<std::vector<Reader>> readers_;
};

}  // namespace

uint64_t CommId(int comm) {
  return segment::Mix(segment::kSignatureSeed, 1000 + static_cast<uint64_t>(comm));
}

Limits CorpusLimits() {
  Limits limits;
  limits.hang_after_ns = 30 * kSecond;
  limits.suspect_after_ns = 15 * kSecond;
  limits.suspect_floor_ns = 5 * kSecond;
  limits.absent_for_good_ns = 5 * kSecond;
  return limits;
}

Outcome Watch(const JobPlan& plan, const Timeline& timeline, const Sight& sight) {
  return Watcher(plan, timeline, sight).Run();
}

}  // namespace rollcall::corpus
