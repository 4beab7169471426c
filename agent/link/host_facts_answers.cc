// SPDX-License-Identifier: Apache-2.0
#include "agent/link/host_facts_answers.h"

#include <utility>
#include <vector>

#include "agent/link/stack_queue.h"

namespace rollcall {
namespace {

constexpr size_t kMostRequests = 4;  // that wait

}  // namespace

HostFactsAnswers::HostFactsAnswers(HostFactsOptions options, const ServedSegments* served,
                                   const UnrecordedList* listed, UplinkInbox* inbox)
    : inbox_(inbox),
      service_(std::move(options),
               [served, listed](ProcessId process) {
                 return served->Has(process) || listed->Has(process);
               }),
      worker_(kMostRequests) {}

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

void HostFactsAnswers::Stop() { worker_.Finish(SteadyTime::max(), Worker::Waiting::kDrop); }

void HostFactsAnswers::Send(uint64_t stream, uint64_t request, v1::HostFacts facts) {
  v1::AgentMessage answer;
  answer.mutable_host_facts()->set_request(request);
  *answer.mutable_host_facts()->mutable_facts() = std::move(facts);
  inbox_->Put(stream, std::move(answer));
}

}  // namespace rollcall
