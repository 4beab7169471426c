// SPDX-License-Identifier: Apache-2.0
#include "agent/link/host_facts_answers.h"

#include <utility>
#include <vector>

#include "agent/link/stack_queue.h"

namespace rollcall {
namespace {

constexpr size_t kMostRequests = 4;  // that wait

}  // namespace

HostFactsAnswers::HostFactsAnswers(HostFactsOptions options, LookServiceOptions looks,
                                   const ServedSegments* served, const UnrecordedList* listed,
                                   UplinkInbox* inbox)
    : inbox_(inbox),
      service_(std::move(options),
               [served, listed](ProcessId process) {
                 return served->Has(process) || listed->Has(process);
               }),
      worker_(kMostRequests),
      looks_(std::move(looks), [listed](ProcessId process) { return listed->Has(process); }),
      looks_worker_(kMostRequests) {}

// A daemon asks once for each incident, so it misses nothing by an answer without facts.
void HostFactsAnswers::TakeIn(uint64_t stream, const v1::GatherHostFacts& asked) {
  const uint64_t request = asked.request();
  std::vector<ProcessId> processes = ProcessesIn(asked.processes());
  const auto gather = [this, stream, request, processes = std::move(processes)] {
    Send(stream, request, service_.Take(processes));
  };
  if (worker_.Post(gather)) return;
  Send(stream, request,
       service_.Refuse("the agent of this host has too many requests for facts, or no thread"));
}

// A look goes on without an answer to this.
void HostFactsAnswers::TakeIn(uint64_t stream, const v1::LookAtRanks& asked) {
  std::vector<ProcessId> processes = ProcessesIn(asked.processes());
  looks_worker_.Post([this, stream, asked, processes = std::move(processes)] {
    v1::AgentMessage answer;
    *answer.mutable_ranks() = looks_.Look(asked, processes);
    inbox_->Put(stream, std::move(answer));
  });
}

void HostFactsAnswers::DropWaiting() {
  worker_.DropWaiting();
  looks_worker_.DropWaiting();
}

void HostFactsAnswers::Cancel() {
  service_.Cancel();
  looks_.Cancel();
}

void HostFactsAnswers::Stop() {
  worker_.Finish(SteadyTime::max(), Worker::Waiting::kDrop);
  looks_worker_.Finish(SteadyTime::max(), Worker::Waiting::kDrop);
}

void HostFactsAnswers::Send(uint64_t stream, uint64_t request, v1::HostFacts facts) {
  v1::AgentMessage answer;
  answer.mutable_host_facts()->set_request(request);
  *answer.mutable_host_facts()->mutable_facts() = std::move(facts);
  inbox_->Put(stream, std::move(answer));
}

}  // namespace rollcall
