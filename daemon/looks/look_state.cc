// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/look_state.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "daemon/agents/children_at_work.h"
#include "daemon/agents/stack_limits.h"
#include "daemon/agents/stack_motion.h"
#include "daemon/agents/standing_sample.h"
#include "daemon/diagnosis/hosts/own_host_facts.h"
#include "daemon/jobs/tick_facts.h"
#include "daemon/loop/start_watch.h"
#include "daemon/report/host_facts_proto.h"
#include "daemon/report/keepers.h"
#include "daemon/report/program_line.h"

namespace rollcall {
namespace {

constexpr int32_t kMostWorld = 1 << 20;
constexpr size_t kMostAbsent = 4096;

class Builder {
 public:
  Builder(const std::vector<v1::HostLook>& looks, const LookGroup& group)
      : looks_(looks), group_(group), model_(group.name) {}

  LookState Build() {
    for (const LookedAt& member : group_.members) {
      state_.now_ns = std::max(state_.now_ns, looks_[member.look].ended_ns());
      updates_.push_back(UpdateOf(member));
    }
    NumberRanks();
    NumberEnded();
    for (size_t i = 0; i < updates_.size(); ++i) {
      state_.of_member.push_back(Apply(looks_[group_.members[i].look].host(), updates_[i]));
      if (state_.of_member[i] >= 0) CountCpu(i);
    }
    for (const v1::ProcessUpdate& absent : absent_) {
      Apply(looks_[group_.members.front().look].host(), absent);
    }
    AddHostFacts();
    for (size_t i = 0; i < updates_.size(); ++i) {
      if (state_.of_member[i] >= 0) AddSamples(group_.members[i], state_.of_member[i]);
    }
    state_.job = model_.state();
    return std::move(state_);
  }

 private:
  const v1::ProcessLook& At(const LookedAt& member) const { return ProcessAt(looks_, member); }

  // As the library has recorded it, if it has.
  v1::ProcessUpdate UpdateOf(const LookedAt& member) {
    const v1::ProcessUpdate& seen = At(member).process();
    v1::ProcessUpdate update = seen;
    for (const v1::ProcessUpdate& recorded : looks_[member.look].recorded().processes()) {
      if (recorded.pid() != seen.pid() || recorded.start_time() != seen.start_time()) continue;
      update = recorded;
      state_.is_recorded = true;
    }
    // Attempts would divide what the looks have grouped.
    v1::Identity* identity = update.mutable_identity();
    identity->set_job(group_.name);
    identity->clear_attempt();
    identity->clear_restarts();
    identity->clear_launch();
    identity->clear_tenant();
    return update;
  }

  std::set<int32_t> RanksSeen() const {
    std::set<int32_t> ranks;
    for (const v1::ProcessUpdate& update : updates_) {
      if (update.identity().global_rank() >= 0) ranks.insert(update.identity().global_rank());
    }
    return ranks;
  }

  bool IsZombie(size_t member) const {
    return At(group_.members[member]).found_by() == kFoundAsZombie;
  }

  // Where no variable gives a rank.
  void NumberRanks() {
    if (!RanksSeen().empty()) return;
    state_.is_numbered = false;
    int32_t next = 0;
    for (size_t i = 0; i < updates_.size(); ++i) {
      if (!IsZombie(i)) updates_[i].mutable_identity()->set_global_rank(next++);
    }
  }

  // 0 if they do not report it, or disagree.
  int32_t WorldSize() const {
    int32_t world = -1;
    for (size_t i = 0; i < updates_.size(); ++i) {
      const int32_t told = updates_[i].identity().world_size();
      if (IsZombie(i) || told == world) continue;
      if (world >= 0) return 0;
      world = told;
    }
    return std::clamp(world, 0, kMostWorld);
  }

  // The kernel shows no environment of a process that has ended: its rank is one that is missing.
  void NumberEnded() {
    if (!IsOfOneHost(looks_, group_)) return;
    const std::set<int32_t> seen = RanksSeen();
    std::vector<int32_t> missing;
    for (int32_t rank = 0; rank < WorldSize(); ++rank) {
      if (seen.count(rank) == 0) missing.push_back(rank);
    }
    size_t next = 0;
    for (size_t i = 0; i < updates_.size() && next < missing.size(); ++i) {
      if (IsZombie(i)) updates_[i].mutable_identity()->set_global_rank(missing[next++]);
    }
    if (!IsWhole()) return;
    for (; next < missing.size() && absent_.size() < kMostAbsent; ++next) AddAbsent(missing[next]);
  }

  // A rank that no agent could read is not one without a process.
  bool IsWhole() const {
    return std::all_of(group_.members.begin(), group_.members.end(),
                       [this](const LookedAt& member) { return looks_[member.look].is_whole(); });
  }

  void AddAbsent(int32_t rank) {
    v1::ProcessUpdate absent;
    absent.mutable_identity()->set_job(group_.name);
    absent.mutable_identity()->set_global_rank(rank);
    absent.mutable_identity()->set_world_size(-1);
    absent.set_start_time(static_cast<uint64_t>(rank) + 1);
    absent.mutable_evidence()->set_liveness(v1::Evidence::ENDED);
    absent.mutable_evidence()->set_exit_code(-1);
    absent_.push_back(std::move(absent));
  }

  // Without the store of a daemon, which would part them into attempts. -1 if there are too many.
  int32_t Apply(const std::string& host, const v1::ProcessUpdate& update) {
    const AgentTimes times({}, 0);
    const int32_t process = model_.AddProcess(host, update.pid(), update.start_time());
    if (process < 0) return process;
    model_.SetIdentity(process, ToIdentity(update.identity(), nullptr));
    model_.SetEvidence(process, ToEvidence(update.evidence(), times, nullptr));
    model_.AddSites(process, update.first_site(), ToSites(update, nullptr));
    for (const v1::CommUpdate& comm : update.communicators()) {
      model_.SetProgress(process, ToProgress(comm, times, &shapes_, nullptr), state_.now_ns);
    }
    return process;
  }

  // Of the job's hosts, and without other jobs' processes.
  void AddHostFacts() {
    std::set<size_t> of_job;
    for (const LookedAt& member : group_.members) of_job.insert(member.look);
    for (const size_t at : of_job) {
      const v1::HostLook& look = looks_[at];
      if (!look.has_host_facts()) continue;
      HostFacts facts = FromProto(look.host_facts(), state_.now_ns);
      KeepOwnHostFacts(model_.state(), look.host(), &facts);
      model_.SetHostFacts(look.host(), std::move(facts));
    }
  }

  // On one clock: the looks end together.
  int64_t TakenNs(const LookedAt& member, const v1::StackSample& sample) const {
    return sample.taken_ns() - looks_[member.look].ended_ns() + state_.now_ns;
  }

  // So that the rules have the time since when it has used no CPU time.
  void CountCpu(size_t member) {
    ProcessEvidence evidence = ToEvidence(updates_[member].evidence(), AgentTimes({}, 0), nullptr);
    for (const v1::StackSample& sample : At(group_.members[member]).samples()) {
      evidence.cpu_seconds = sample.stack().cpu_seconds();
      model_.SetEvidence(state_.of_member[member], evidence,
                         TakenNs(group_.members[member], sample));
    }
  }

  void AddSamples(const LookedAt& member, int32_t process) {
    std::shared_ptr<const Standing> standing;
    const v1::ProcessStack* before = nullptr;
    std::vector<v1::ProcessStack> stacks;
    stacks.reserve(static_cast<size_t>(At(member).samples_size()));
    for (const v1::StackSample& sample : At(member).samples()) {
      stacks.push_back(sample.stack());
      v1::ProcessStack& stack = stacks.back();
      LimitStack(&stack);
      RemoveRanks(OtherRanks(member), &stack);
      const int64_t taken_ns = TakenNs(member, sample);
      // One that could not be taken shows nothing.
      if (auto row = AddToRow(standing, stack, taken_ns, true)) standing = std::move(row);
      model_.SetStacks(process, FactsOf(before, stack, taken_ns, standing));
      before = &stack;
    }
  }

  std::set<int32_t> OtherRanks(const LookedAt& of) const {
    std::set<int32_t> pids;
    for (const LookedAt& member : group_.members) {
      if (member.look == of.look && !(member == of)) pids.insert(At(member).process().pid());
    }
    return pids;
  }

  static StackFacts FactsOf(const v1::ProcessStack* before, const v1::ProcessStack& stack,
                            int64_t taken_ns, std::shared_ptr<const Standing> standing) {
    StackFacts facts;
    facts.motion = before == nullptr ? Motion::kUnknown : MotionBetween(*before, stack);
    facts.words = FunctionNames(stack);
    facts.place = FindPlace(stack);
    facts.waits_outside = WaitsForOthers(stack);
    facts.now_ns = taken_ns;
    facts.awaited_tids = FindAwaitedTids(stack);
    facts.threads = FindThreadPlaces(stack);
    facts.keepers = FindKeepers(stack);
    if (before != nullptr) {
      facts.children_at_work = FindChildrenAtWork(*before, stack);
      KeepAwaited(stack, &*facts.children_at_work);
      facts.receives = facts.waits_outside ? 0 : BytesReceivedASecond(*before, stack);
    }
    facts.standing = std::move(standing);
    return facts;
  }

  const std::vector<v1::HostLook>& looks_;
  const LookGroup& group_;
  JobModel model_;
  ShapeShare shapes_;
  std::vector<v1::ProcessUpdate> updates_;  // by member
  std::vector<v1::ProcessUpdate> absent_;
  LookState state_;
};

}  // namespace

LookState MakeLookState(const std::vector<v1::HostLook>& looks, const LookGroup& group) {
  return Builder(looks, group).Build();
}

}  // namespace rollcall
