// SPDX-License-Identifier: Apache-2.0
// The list of the jobs of all daemons on one database.
//
// Every daemon gives the beginning of its list in brief, up to the end of the page; that decides
// which jobs are on the page. Only these are then asked for with their communicators.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/jobs/agent_releases.h"
#include "daemon/model/job_key.h"
#include "daemon/queries/fleet_queries.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

using Page = absl::StatusOr<v1::StatusResponse>;
using AskPage = std::function<Page(const v1::StatusRequest&)>;

// The first `wanted` jobs of a list.
Page AskPages(const AskPage& ask, v1::StatusRequest request, size_t wanted) {
  v1::StatusResponse all;
  while (true) {
    const auto have = static_cast<size_t>(all.jobs_size());
    request.set_offset(static_cast<int32_t>(have));
    request.set_limit(static_cast<int32_t>(std::min(kMaxJobsListed, wanted - have)));
    Page page = ask(request);
    if (!page.ok()) return page;
    const bool is_last = page->jobs().empty();
    all.set_rollcall_version(page->rollcall_version());
    *all.mutable_now() = page->now();
    all.set_jobs_total(page->jobs_total());
    all.set_agents(page->agents());
    if (all.unrecorded().empty()) all.mutable_unrecorded()->Swap(page->mutable_unrecorded());
    if (have == 0) all.mutable_agent_releases()->Swap(page->mutable_agent_releases());
    for (v1::JobStatus& job : *page->mutable_jobs()) all.add_jobs()->Swap(&job);
    const auto count = static_cast<size_t>(all.jobs_size());
    if (is_last || count >= wanted || count >= static_cast<size_t>(all.jobs_total())) return all;
  }
}

v1::StatusRequest PageOf(const JobSelector& selector, bool with_communicators) {
  v1::StatusRequest request;
  request.set_without_communicators(!with_communicators);
  request.set_host(selector.host);
  request.set_offset(static_cast<int32_t>(selector.offset));
  request.set_limit(static_cast<int32_t>(selector.most));
  return request;
}

// Takes the jobs out of the list.
DaemonJobs TakeJobs(const std::string& daemon, v1::StatusResponse* list) {
  DaemonJobs jobs = {daemon, {}, static_cast<size_t>(list->jobs_total())};
  for (v1::JobStatus& job : *list->mutable_jobs()) jobs.jobs.push_back(std::move(job));
  list->clear_jobs();
  return jobs;
}

// An agent reports to each daemon with which it has a stream: two may list the same ranks.
void JoinUnrecorded(const google::protobuf::RepeatedPtrField<v1::UnrecordedJob>& more,
                    v1::StatusResponse* all) {
  // Two users may each have one of the same name.
  const auto key_of = [](const v1::UnrecordedJob& job) {
    return std::make_tuple(job.tenant(), job.name(), job.has_uid() ? int64_t{job.uid()} : -1);
  };
  std::map<std::tuple<std::string, std::string, int64_t>, v1::UnrecordedJob*> known;
  for (v1::UnrecordedJob& job : *all->mutable_unrecorded()) known[key_of(job)] = &job;
  for (const v1::UnrecordedJob& job : more) {
    const auto at = known.find(key_of(job));
    if (at == known.end()) {
      if (static_cast<size_t>(all->unrecorded_size()) < kMaxJobsListed)
        *all->add_unrecorded() = job;
      continue;
    }
    v1::UnrecordedJob* const same = at->second;
    std::set<std::string> hosts(same->hosts().begin(), same->hosts().end());
    const size_t before = hosts.size();
    hosts.insert(job.hosts().begin(), job.hosts().end());
    const bool are_others = hosts.size() == before + static_cast<size_t>(job.hosts_size());
    same->set_ranks(are_others ? same->ranks() + job.ranks()
                               : std::max(same->ranks(), job.ranks()));
    same->mutable_hosts()->Assign(hosts.begin(), hosts.end());
    if (NsOf(job.since()) < NsOf(same->since())) *same->mutable_since() = job.since();
  }
}

// The part of a daemon's list with all of its jobs that are on the page.
struct Part {
  size_t first = SIZE_MAX, end = 0;
};

}  // namespace

// `selector`: its first `most` jobs, in brief.
FleetQueries::Lists FleetQueries::ListsOf(const JobSelector& selector) const {
  Lists lists;
  lists.daemons = peers_->Others();
  const v1::StatusRequest request = PageOf(selector, false);
  const auto ask_local = [this](const v1::StatusRequest& page) { return local_->GetStatus(page); };
  lists.frame = *AskPages(ask_local, request, selector.most);
  lists.jobs.push_back(TakeJobs(fleet_->self(), &lists.frame));
  const int64_t patience_ns = peers_->options().list_patience_ns;
  std::vector<std::function<Page()>> asks;
  for (const DaemonRow& peer : lists.daemons) {
    asks.push_back(
        [peers = peers_, ask = AskOf(peer, patience_ns), request, most = selector.most]() -> Page {
          if (peers->IsPaused(ask.peer)) return peers->Silence(ask.peer);
          return AskPages([&](const v1::StatusRequest& page) { return peers->Ask(ask, page); },
                          request, most);
        });
  }
  auto answers = AllAtOnce(std::move(asks), After(patience_ns + kSlackNs));
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string& name = lists.daemons[i].name;
    if (!answers[i].has_value() || !answers[i]->ok()) {
      lists.silent.push_back(name);
      lists.jobs.push_back({name, {}, 0});
      continue;
    }
    v1::StatusResponse& list = **answers[i];
    lists.frame.set_agents(lists.frame.agents() + list.agents());
    JoinUnrecorded(list.unrecorded(), &lists.frame);
    JoinReleases(list.agent_releases(), lists.frame.mutable_agent_releases());
    lists.jobs.push_back(TakeJobs(name, &list));
  }
  return lists;
}

// Replaces the jobs on the page by their daemons' answers with communicators.
void FleetQueries::AddCommunicators(const std::string& host, const std::vector<FleetJob>& page,
                                    Lists* lists) const {
  std::vector<Part> parts(lists->jobs.size());
  for (const FleetJob& one : page) {
    Part& part = parts[one.daemon];
    part.first = std::min(part.first, one.place);
    part.end = std::max(part.end, one.place + 1);
  }
  const int64_t patience_ns = peers_->options().list_patience_ns;
  std::vector<size_t> asked;
  std::vector<std::function<Page()>> asks;
  std::vector<std::optional<Page>> answers;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].end == 0) continue;
    JobSelector selector;
    selector.host = host;
    selector.offset = parts[i].first;
    selector.most = parts[i].end - parts[i].first;
    if (i == 0) {
      asked.insert(asked.begin(), i);
      answers.emplace_back(local_->GetStatus(PageOf(selector, true)));
      continue;
    }
    asked.push_back(i);
    asks.push_back(
        [peers = peers_, ask = AskOf(lists->daemons[i - 1], patience_ns),
         request = PageOf(selector, true)]() -> Page { return peers->Ask(ask, request); });
  }
  for (auto& answer : AllAtOnce(std::move(asks), After(patience_ns + kSlackNs))) {
    answers.push_back(std::move(answer));
  }
  std::map<JobId, v1::JobStatus*> known;
  for (const FleetJob& one : page) {
    v1::JobStatus* job = &lists->jobs[one.daemon].jobs[one.place];
    known[{job->tenant(), job->name()}] = job;
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!answers[i].has_value() || !answers[i]->ok()) {
      lists->silent.push_back(lists->jobs[asked[i]].daemon);
      continue;
    }
    for (v1::JobStatus& job : *(*answers[i])->mutable_jobs()) {
      const auto at = known.find({job.tenant(), job.name()});
      if (at != known.end()) at->second->Swap(&job);
    }
  }
}

absl::StatusOr<v1::StatusResponse> FleetQueries::ListJobs(const v1::StatusRequest& request) const {
  if (peers_->Others().empty()) return local_->GetStatus(request);
  const JobSelector selector = SelectorIn(request);
  const size_t most = std::min(selector.most, kMaxJobsListed);
  JobSelector beginning;
  beginning.host = selector.host;
  beginning.most = selector.offset + most;
  Lists lists = ListsOf(beginning);
  const std::vector<FleetJob> all = JoinJobs(lists.jobs, OwnerNames());
  const size_t first = std::min(selector.offset, all.size());
  const std::vector<FleetJob> page(
      all.begin() + static_cast<ptrdiff_t>(first),
      all.begin() + static_cast<ptrdiff_t>(std::min(first + most, all.size())));
  size_t total = 0, listed = 0;
  for (const DaemonJobs& list : lists.jobs) {
    total += list.total;
    listed += list.jobs.size();
  }
  if (!request.without_communicators()) AddCommunicators(selector.host, page, &lists);
  v1::StatusResponse response = std::move(lists.frame);
  response.set_jobs_total(static_cast<int32_t>(total - std::min(total, listed - all.size())));
  for (const FleetJob& one : page) {
    v1::JobStatus* job = response.add_jobs();
    job->Swap(&lists.jobs[one.daemon].jobs[one.place]);
    job->set_daemon(lists.jobs[one.daemon].daemon);
  }
  for (const std::string& name : lists.silent) response.add_silent_daemons(name);
  return response;
}

OwnerName FleetQueries::OwnerNames() const {
  return [this](const std::string& tenant, const std::string& job) {
    const std::optional<DaemonRow> owner = fleet_->OwnerOf(tenant, job);
    return owner.has_value() ? owner->name : "";
  };
}

}  // namespace rollcall
