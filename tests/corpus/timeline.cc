// SPDX-License-Identifier: Apache-2.0
#include "timeline.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "daemon/rules/divergence.h"

namespace rollcall::corpus {
namespace {

constexpr int64_t kCallNs = 5'000;        // from the entry of a call to its return
constexpr int64_t kTransferNs = 400'000;  // of every transfer
constexpr int kGlooStream = 1 << 20;      // of a gloo group: this and its communicator

// A piece of work on a stream: a collective, a group of p2p, or a kernel.
struct Work {
  Step::Kind kind = Step::Kind::kGpuWork;
  int comm = -1;
  size_t first_call = 0, calls = 0;  // in the track
  int64_t enqueued = 0;
  int64_t ns = 0;
  bool stalls = false;
};

struct Stream {
  std::deque<Work> queue;  // unfinished work; the first may have begun
  bool front_begun = false;
  int64_t free_at = 0;  // kNever: the first work never ends
};

struct RankState {
  size_t next = 0;
  int64_t now = 0;
  bool stopped = false;
  bool in_host_call = false;
  std::map<int, Stream> streams;
  std::map<int, size_t> track_of;     // communicator -> index
  std::vector<uint64_t> collectives;  // entered, by track
  uint16_t groups = 0;
};

// The ranks that have reached a collective, an init or a destroy.
struct Meeting {
  std::vector<int> ranks;
  int64_t last = 0;
  CallArgs args;
  bool broken = false;
};

struct End {
  int rank;
  uint64_t bytes;
  int64_t started;
};

struct PairQueue {
  std::vector<End> sends, receives;
};

// True if NCCL detects the difference between two calls.
bool NcclDetects(const CallArgs& a, const CallArgs& b) {
  if (Canonical(a.op) != Canonical(b.op) || a.peer != b.peer) return true;
  return a.count != b.count;  // NCCL detects neither types of equal size nor reductions
}

class Machine {
 public:
  explicit Machine(const JobPlan& plan) : plan_(plan), states_(plan.programs.size()) {
    timeline_.ranks.resize(plan.programs.size());
    for (int rank = 0; rank < plan.ranks; ++rank) Wake(rank);
  }

  Timeline Run() {
    while (!ready_.empty()) {
      const int rank = ready_.front();
      ready_.pop_front();
      Advance(rank);
    }
    Finish();
    return std::move(timeline_);
  }

 private:
  RankState& GetState(int rank) { return states_[static_cast<size_t>(rank)]; }
  RankTimeline& GetTimeline(int rank) { return timeline_.ranks[static_cast<size_t>(rank)]; }
  Track& GetTrack(int rank, int comm) {
    return GetTimeline(rank).tracks[GetState(rank).track_of.at(comm)];
  }
  void Wake(int rank) { ready_.push_back(rank); }
  size_t CommSize(int comm) const { return plan_.comms[static_cast<size_t>(comm)].ranks.size(); }

  void Advance(int rank) {
    RankState& state = GetState(rank);
    const Program& program = *plan_.programs[static_cast<size_t>(rank)];
    while (!state.stopped && state.next < program.size() && Do(rank, program[state.next])) {
      ++state.next;
    }
  }

  // Executes a step. False if the rank cannot continue yet, or never.
  bool Do(int rank, const Step& step) {
    RankState& state = GetState(rank);
    switch (step.kind) {
      case Step::Kind::kCompute:
        if (step.ns == kNever) return !(state.stopped = true);
        state.now += step.ns;
        return true;
      case Step::Kind::kInit:
        return Init(rank, step.comm);
      case Step::Kind::kDestroy:
        return Destroy(rank, step.comm);
      case Step::Kind::kSync:
        return Sync(rank, step.stream);
      case Step::Kind::kExit:
      case Step::Kind::kDie:
        GetTimeline(rank).ended = state.now;
        GetTimeline(rank).died = step.kind == Step::Kind::kDie;
        return !(state.stopped = true);
      default:
        if (plan_.IsGloo(step.comm)) return CallOnHost(rank, step);
        Enqueue(rank, step);
        return true;
    }
  }

  bool CallOnHost(int rank, const Step& step) {
    RankState& state = GetState(rank);
    const int stream_id = kGlooStream + step.comm;
    if (!state.in_host_call) {
      Step call = step;
      call.stream = stream_id;
      state.in_host_call = true;
      Enqueue(rank, call);
      // A message is posted at once, and waited for.
      if (step.kind == Step::Kind::kCall) GetTrack(rank, step.comm).calls.back().returned = kNever;
    }
    const Stream& stream = state.streams[stream_id];
    if (!stream.queue.empty() || stream.free_at == kNever) return false;
    state.in_host_call = false;
    state.now = std::max(state.now, stream.free_at);
    if (step.kind == Step::Kind::kCall) GetTrack(rank, step.comm).calls.back().returned = state.now;
    return true;
  }

  bool Init(int rank, int comm) {
    RankState& state = GetState(rank);
    if (state.track_of.count(comm) == 0) {
      state.track_of[comm] = GetTimeline(rank).tracks.size();
      state.collectives.push_back(0);
      GetTimeline(rank).tracks.emplace_back();
      GetTimeline(rank).tracks.back().comm = comm;
      GetTrack(rank, comm).init_entered = state.now;
      Meeting& meeting = inits_[comm];
      meeting.ranks.push_back(rank);
      meeting.last = std::max(meeting.last, state.now);
      if (meeting.ranks.size() == CommSize(comm)) {
        for (const int other : meeting.ranks) {
          GetTrack(other, comm).init_returned = meeting.last + kTransferNs;
          if (other != rank) Wake(other);
        }
      }
    }
    const int64_t returned = GetTrack(rank, comm).init_returned;
    if (returned == kNever) return false;
    state.now = std::max(state.now, returned);
    return true;
  }

  // The rank waits for its own work, then for the other ranks of its host.
  bool Destroy(int rank, int comm) {
    RankState& state = GetState(rank);
    Track& track = GetTrack(rank, comm);
    if (track.destroy_entered == kNever) track.destroy_entered = state.now;
    int64_t done = state.now;
    for (const CallTimes& call : track.calls) {
      if (call.finished == kNever) return false;
      done = std::max(done, call.finished);
    }
    if (plan_.IsGloo(comm)) {  // waits for no other rank
      track.destroy_returned = state.now = done;
      return true;
    }
    Meeting& meeting = destroys_[{comm, plan_.HostIndex(rank)}];
    if (std::find(meeting.ranks.begin(), meeting.ranks.end(), rank) == meeting.ranks.end()) {
      meeting.ranks.push_back(rank);
      meeting.last = std::max(meeting.last, done);
      if (meeting.ranks.size() == OnHost(comm, plan_.HostIndex(rank))) {
        for (const int other : meeting.ranks) {
          GetTrack(other, comm).destroy_returned = meeting.last + kTransferNs;
          if (other != rank) Wake(other);
        }
      }
    }
    if (track.destroy_returned == kNever) return false;
    state.now = std::max(state.now, track.destroy_returned);
    return true;
  }

  size_t OnHost(int comm, int host) const {
    const std::vector<int>& ranks = plan_.comms[static_cast<size_t>(comm)].ranks;
    return static_cast<size_t>(std::count_if(
        ranks.begin(), ranks.end(), [&](int rank) { return plan_.HostIndex(rank) == host; }));
  }

  bool Sync(int rank, int stream_id) {
    RankState& state = GetState(rank);
    std::vector<Span>& syncs = GetTimeline(rank).syncs;
    const Stream& stream = state.streams[stream_id];
    const bool begun = !syncs.empty() && syncs.back().end == kNever;
    if (!begun) syncs.push_back({state.now, kNever});
    if (!stream.queue.empty() || stream.free_at == kNever) return false;
    state.now = std::max(state.now, stream.free_at);
    syncs.back().end = state.now;
    return true;
  }

  void Enqueue(int rank, const Step& step) {
    RankState& state = GetState(rank);
    Work work;
    work.kind = step.kind;
    work.comm = step.comm;
    work.ns = step.ns;
    work.stalls = step.stalls;
    if (step.kind != Step::Kind::kGpuWork) {
      const size_t at = state.track_of.at(step.comm);
      Track& track = GetTimeline(rank).tracks[at];
      work.first_call = track.calls.size();
      const bool grouped = step.p2p.size() > 1;
      if (grouped) ++state.groups;
      if (step.kind == Step::Kind::kCall) {
        RecordCall(step.args, state.collectives[at]++, 0, step.thread, &state, &track);
      }
      for (const CallArgs& args : step.p2p) {
        RecordCall(args, state.collectives[at], grouped ? state.groups : uint16_t{0}, step.thread,
                   &state, &track);
      }
      work.calls = track.calls.size() - work.first_call;
      if (step.error != 0) {
        track.error = step.error;
        track.error_at = state.now;
      }
    }
    work.enqueued = state.now;
    state.streams[step.stream].queue.push_back(work);
    StartNext(rank, step.stream);
  }

  static void RecordCall(const CallArgs& args, uint64_t position, uint16_t group, uint32_t thread,
                         RankState* state, Track* track) {
    CallTimes call;
    call.args = args;
    call.position = position;
    call.group = group;
    call.thread = thread;
    call.entered = state->now;
    // A second thread enters the call before the first thread returns.
    state->now += kCallNs;
    call.returned = state->now + (thread != 1 ? 4 * kCallNs : 0);
    track->calls.push_back(call);
  }

  // Starts the first work of the stream, if it can start.
  void StartNext(int rank, int stream_id) {
    Stream& stream = GetState(rank).streams[stream_id];
    while (!stream.queue.empty() && !stream.front_begun && stream.free_at != kNever) {
      const Work work = stream.queue.front();
      const int64_t start = std::max(stream.free_at, work.enqueued);
      stream.front_begun = true;
      if (work.kind == Step::Kind::kGpuWork) {
        EndFront(rank, stream_id, work.ns == kNever ? kNever : start + work.ns);
        continue;
      }
      Track& track = GetTrack(rank, work.comm);
      for (size_t i = 0; i < work.calls; ++i) track.calls[work.first_call + i].started = start;
      if (work.kind == Step::Kind::kCall) {
        Arrive(rank, stream_id, work, start);
      } else {
        ArriveP2p(rank, stream_id, work, start);
      }
      return;  // the end of that work starts the next
    }
  }

  // Ends the first work of the stream at this time; kNever: it never ends.
  void EndFront(int rank, int stream_id, int64_t at) {
    Stream& stream = GetState(rank).streams[stream_id];
    const Work& work = stream.queue.front();
    if (at == kNever) {
      stream.free_at = kNever;
      return;
    }
    if (work.kind != Step::Kind::kGpuWork) {
      Track& track = GetTrack(rank, work.comm);
      for (size_t i = 0; i < work.calls; ++i) track.calls[work.first_call + i].finished = at;
    }
    stream.free_at = at;
    stream.queue.pop_front();
    stream.front_begun = false;
  }

  void EndAndGoOn(int rank, int stream_id, int64_t at) {
    EndFront(rank, stream_id, at);
    StartNext(rank, stream_id);
    Wake(rank);
  }

  void Arrive(int rank, int stream_id, const Work& work, int64_t start) {
    const CallTimes& call = GetTrack(rank, work.comm).calls[work.first_call];
    Meeting& meeting = collectives_[{work.comm, call.position}];
    if (meeting.ranks.empty()) meeting.args = call.args;
    meeting.broken = meeting.broken || work.stalls || NcclDetects(meeting.args, call.args);
    meeting.ranks.push_back(rank);
    meeting.last = std::max(meeting.last, start);
    stream_of_[{rank, work.comm}] = stream_id;
    if (meeting.ranks.size() < CommSize(work.comm) || meeting.broken) return;
    for (const int other : meeting.ranks) {
      EndAndGoOn(other, stream_of_.at({other, work.comm}), meeting.last + kTransferNs);
    }
  }

  // Each operation of the group that finds its other end may end another rank's group.
  void ArriveP2p(int rank, int stream_id, const Work& work, int64_t start) {
    const int me = plan_.RankIn(work.comm, rank);
    stream_of_[{rank, work.comm}] = stream_id;
    std::vector<int> touched = {rank};
    for (size_t i = 0; i < work.calls; ++i) {
      const CallArgs args = GetTrack(rank, work.comm).calls[work.first_call + i].args;
      const bool sends = args.op == Op::kSend;
      PairQueue& pair = pairs_[{work.comm, sends ? me : args.peer, sends ? args.peer : me}];
      std::vector<End>& mine = sends ? pair.sends : pair.receives;
      const std::vector<End>& theirs = sends ? pair.receives : pair.sends;
      mine.push_back({rank, args.count, start});
      open_[{rank, work.comm}].push_back({&pair, mine.size() - 1});
      if (theirs.size() >= mine.size()) touched.push_back(theirs[mine.size() - 1].rank);
    }
    for (const int other : touched) EndP2pIfMatched(other, work.comm);
  }

  void EndP2pIfMatched(int rank, int comm) {
    auto& open = open_[{rank, comm}];
    if (open.empty()) return;
    int64_t last = 0;
    for (const auto& [pair, n] : open) {
      if (pair->sends.size() <= n || pair->receives.size() <= n) return;
      if (pair->sends[n].bytes != pair->receives[n].bytes) return;
      last = std::max({last, pair->sends[n].started, pair->receives[n].started});
    }
    open.clear();
    EndAndGoOn(rank, stream_of_.at({rank, comm}), last + kTransferNs);
  }

  void Finish() {
    timeline_.all_ended = true;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      timeline_.last_event = std::max(timeline_.last_event, GetState(rank).now);
      if (GetTimeline(rank).ended == kNever) timeline_.all_ended = false;
      for (const Track& track : GetTimeline(rank).tracks) {
        for (const CallTimes& call : track.calls) {
          if (call.started != kNever) {
            timeline_.last_event = std::max(timeline_.last_event, call.started);
          }
        }
      }
    }
  }

  const JobPlan& plan_;
  Timeline timeline_;
  std::vector<RankState> states_;
  std::deque<int> ready_;
  std::map<int, Meeting> inits_;
  std::map<std::pair<int, int>, Meeting> destroys_;
  std::map<std::pair<int, uint64_t>, Meeting> collectives_;
  std::map<std::tuple<int, int, int>, PairQueue> pairs_;
  std::map<std::pair<int, int>, int> stream_of_;
  std::map<std::pair<int, int>, std::vector<std::pair<PairQueue*, size_t>>> open_;
};

}  // namespace

const Track* RankTimeline::OnComm(int comm) const {
  for (const Track& track : tracks) {
    if (track.comm == comm) return &track;
  }
  return nullptr;
}

Timeline Run(const JobPlan& plan) { return Machine(plan).Run(); }

}  // namespace rollcall::corpus
