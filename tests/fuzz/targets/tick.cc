// SPDX-License-Identifier: Apache-2.0
// Messages of agents, applied to the daemon's jobs: routing, model, rules, the life of incidents,
// views and reports. The input is a Story. What gRPC does before and what a disk does after is not
// here.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/access/clean_message.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/diagnosis/post_mortem.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/tick_facts.h"
#include "daemon/report/calls_view.h"
#include "daemon/report/host_facts_proto.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/job_view.h"
#include "daemon/report/json.h"
#include "daemon/report/processes_view.h"
#include "daemon/report/report_text.h"
#include "daemon/report/state_table.h"
#include "daemon/report/status_view.h"
#include "fuzz_target.h"
#include "proto_mutator.h"
#include "rollcall/v1/agent.pb.h"
#include "story.pb.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr int64_t kStartNs = 1'800'000'000'000'000'000;
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSilentAfterNs = 10'000'000'000;
constexpr int kMostSteps = 24;
constexpr uint32_t kAgents = 4;

class Listener {
 public:
  explicit Listener(bool is_offline) : is_offline_(is_offline), store_("job", SmallLimits()) {}

  void Take(const Step& step) {
    now_ns_ += step.later_ms() * kMillisecond;
    AgentName& agent = agents_[step.agent() % kAgents];
    if (agent.host.empty()) agent = NameOf(step.agent() % kAgents);
    v1::AgentMessage message = step.message();
    CleanStrings(&message);
    if (message.has_hello()) Greet(message.hello(), &agent);
    if (message.has_tick()) Apply(message.mutable_tick(), agent);
    if (message.has_host_facts()) SetFacts(message.host_facts(), agent);
    if (step.disconnects()) (void)store_.agents()->Disconnected(agent);
    (void)store_.agents()->MarkSilent(now_ns_, kSilentAfterNs);
    for (const JobKey& key : store_.jobs().Keys()) Look(key);
  }

  // What the page and `rollcall status` show.
  void Show() const {
    for (const JobKey& key : store_.jobs().Keys()) {
      store_.Read(key, [this](const JobState& state) { ShowJob(state); });
    }
  }

 private:
  struct Watch {
    explicit Watch(const JobKey& key) : life(key) {}
    Diagnoser diagnoser;
    IncidentLife life;
    std::set<uint64_t> judged;
  };

  static JobStoreLimits SmallLimits() {
    JobStoreLimits limits;
    limits.jobs = 8;
    limits.processes = 64;
    limits.record_bytes = 1 << 20;
    return limits;
  }

  static AgentName NameOf(uint32_t number) {
    return {absl::StrCat("host-", number), absl::StrCat("from host-", number), 0, number == 0};
  }

  void Greet(const v1::Hello& hello, AgentName* agent) {
    agent->tick_ns = hello.tick_ns();
    store_.agents()->Connected(*agent);
    store_.agents()->Welcomed(agent->id, now_ns_);
  }

  void Apply(v1::Tick* tick, const AgentName& agent) {
    ClampTimes(tick);
    (void)store_.Apply(agent, *tick, is_offline_ ? 0 : now_ns_);
  }

  void SetFacts(const v1::HostFactsReply& reply, const AgentName& agent) {
    const HostFacts facts = FromProto(reply.facts(), now_ns_);
    v1::Incident incident;
    AddToIncident(WorthALook(agent.host, facts, now_ns_), &incident);
    (void)HostFactLines(incident);
    for (const JobKey& key : store_.jobs().Keys())
      store_.Change(key, [&](JobModel* model) { model->SetHostFacts(agent.host, facts); });
  }

  void Look(const JobKey& key) {
    store_.UpdateHeard(key, 0);
    Watch& watch = watches_.try_emplace(key, key).first->second;
    store_.Read(key, [&](const JobState& state) {
      const std::vector<Verdict> verdicts = watch.diagnoser.Run(state, now_ns_, limits_);
      for (const Verdict& verdict : JudgeTheEnd(state, &watch.judged)) (void)ToProto(verdict);
      for (const IncidentEvent& event : watch.life.Update(state, verdicts, now_ns_, limits_)) {
        Report(event.incident);
      }
    });
  }

  static void Report(const Incident& incident) {
    const v1::Incident message = ToProto(incident);
    Promise(!ToText(message).empty(), "a report has text");
    (void)ToJson(message);
  }

  void ShowJob(const JobState& state) const {
    v1::JobView view;
    FillJobStatus(state, now_ns_, true, view.mutable_status());
    KeepWorstCommunicators(kMaxCommunicatorsShown, view.mutable_status());
    FillRankMaps(state, &view);
    v1::CallsResponse calls;
    FillCalls(state, {0, 1, 2}, kUsualCalls, &calls);
    v1::ProcessesResponse processes;
    FillProcesses(state, now_ns_, {}, &processes);
    (void)StateTable(state);
    Promise(view.ByteSizeLong() < (size_t{64} << 20), "a view has a limit");
  }

  const bool is_offline_;
  const Limits limits_;
  JobStore store_;
  std::map<uint32_t, AgentName> agents_;
  std::map<JobKey, Watch> watches_;
  int64_t now_ns_ = kStartNs;
};

void Run(Input input) {
  const std::string_view bytes = input.TakeRest();
  Story story;
  if (!story.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  Listener listener(story.is_offline());
  for (int i = 0; i < std::min(story.steps_size(), kMostSteps); ++i) {
    listener.Take(story.steps(i));
  }
  listener.Show();
}

const Registered kTarget({"tick", 8192, &Run, &MutateAs<Story>});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
