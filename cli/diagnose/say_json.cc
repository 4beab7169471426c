// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/say_json.h"

#include <nlohmann/json.hpp>

#include "base/clean_text.h"
#include "daemon/looks/diagnosis_proto.h"
#include "daemon/looks/unanswered.h"
#include "daemon/report/json.h"

namespace rollcall {
namespace {

using Json = nlohmann::ordered_json;
using Outcome = LookedAtJob::Outcome;

template <typename Lines>
Json Cleaned(const Lines& lines) {
  Json list = Json::array();
  for (const std::string& line : lines) list.push_back(CleanText(line));
  return list;
}

Json LogsOf(const LookedAtJob& job) {
  Json logs = Json::array();
  for (const LogOfRanks& of : job.logs) {
    logs.push_back({{"ranks", of.ranks},
                    {"host", CleanText(of.host)},
                    {"path", CleanText(of.log.path())},
                    {"quiet_seconds", of.log.quiet_seconds()},
                    {"lines", Cleaned(of.log.lines())}});
  }
  return logs;
}

std::string Document(const v1::Incident& incident, Json look) {
  Json document = Json::parse(ToJson(incident).value_or("{}"), nullptr, false);
  if (!document.is_object()) document = Json::object();
  document["look"] = std::move(look);
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string JobDocument(const LookedAtJob& job, const std::vector<std::string>& of_hosts) {
  std::vector<std::string> unseen = job.unseen;
  unseen.insert(unseen.end(), of_hosts.begin(), of_hosts.end());
  return Document(job.incident, {{"outcome", OutcomeName(job.outcome)},
                                 {"why", CleanText(job.why)},
                                 {"ranks", job.ranks},
                                 {"world_size", job.world_size},
                                 {"hosts", Cleaned(job.hosts)},
                                 {"unseen", Cleaned(unseen)},
                                 {"logs", LogsOf(job)}});
}

std::string NoJobDocument(const std::vector<v1::HostLook>& looks,
                          const std::vector<std::string>& of_hosts) {
  std::vector<std::string> unseen = UnansweredHosts(looks);
  unseen.insert(unseen.end(), of_hosts.begin(), of_hosts.end());
  return Document({}, {{"outcome", "no_job"},
                       {"why", "no process of a distributed job was found"},
                       {"ranks", 0},
                       {"world_size", 0},
                       {"hosts", Json::array()},
                       {"unseen", Cleaned(unseen)},
                       {"logs", Json::array()}});
}

}  // namespace

std::string JobsAsJson(const std::vector<LookedAtJob>& jobs,
                       const std::vector<v1::HostLook>& looks) {
  const std::vector<std::string> of_hosts = UnseenOnHosts(looks);
  std::string text;
  for (const Outcome outcome : {Outcome::kHangs, Outcome::kCannotTell}) {
    for (const LookedAtJob& job : jobs) {
      if (job.outcome == outcome) text += JobDocument(job, of_hosts);
    }
  }
  if (!text.empty()) return text;
  return jobs.empty() ? NoJobDocument(looks, of_hosts) : JobDocument(jobs.front(), of_hosts);
}

}  // namespace rollcall
