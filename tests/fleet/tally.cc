// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/tally.h"

#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rollcall::fleet {
namespace {

constexpr size_t kReasonsKept = 5;

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

double OwnCpuSeconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double Greatest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

nlohmann::json HangsOf(const FleetPlan& plan) {
  nlohmann::json hangs = nlohmann::json::array();
  for (const Hang& hang : plan.Hangs()) {
    hangs.push_back(
        {{"job", hang.job}, {"culprit", hang.culprit}, {"since", Seconds(hang.since_ns)}});
  }
  return hangs;
}

}  // namespace

void Tally::HostIsBack(int64_t lost_ns, int64_t now_ns) {
  const absl::MutexLock lock(&mutex_);
  ++opened_;
  ++connected_;
  if (lost_ns != 0) outages_.push_back(Seconds(now_ns - lost_ns));
  if (connected_ < hosts_) return;
  if (all_first_ns_ == 0) all_first_ns_ = now_ns;
  if (cut_ns_ != 0) all_back_.push_back(Seconds(now_ns - cut_ns_));
  cut_ns_ = 0;
}

void Tally::HostIsGone(int64_t now_ns) {
  const absl::MutexLock lock(&mutex_);
  if (connected_ == hosts_) cut_ns_ = now_ns;
  --connected_;
}

void Tally::StreamClosed(const std::string& why) {
  const absl::MutexLock lock(&mutex_);
  ++closed_;
  const bool known = std::find(reasons_.begin(), reasons_.end(), why) != reasons_.end();
  if (!known && reasons_.size() < kReasonsKept) reasons_.push_back(why);
}

void Tally::AttemptFailed(const std::string& why) {
  const absl::MutexLock lock(&mutex_);
  ++failed_;
  const std::string reason = absl::StrCat("attempt: ", why);
  const bool known = std::find(reasons_.begin(), reasons_.end(), reason) != reasons_.end();
  if (!known && reasons_.size() < kReasonsKept) reasons_.push_back(reason);
}

void Tally::StreamCut() {
  const absl::MutexLock lock(&mutex_);
  ++cut_;
}

void Tally::TickSent() {
  const absl::MutexLock lock(&mutex_);
  ++ticks_;
}

void Tally::TickDelayed() {
  const absl::MutexLock lock(&mutex_);
  ++delayed_;
}

void Tally::WokenLate(int64_t by_ns) {
  const absl::MutexLock lock(&mutex_);
  latest_ns_ = std::max(latest_ns_, by_ns);
}

void Tally::StackSent() {
  const absl::MutexLock lock(&mutex_);
  ++stacks_;
}

std::string Tally::Progress(int64_t now_ns) const {
  const absl::MutexLock lock(&mutex_);
  return absl::StrFormat(
      "fleet_load: %.0f s: %d of %d hosts connected, %d streams closed by the daemon, %d attempts "
      "failed, %d ticks sent, %d delayed, own CPU %.1f s",
      Seconds(now_ns - begin_ns_), connected_, hosts_, closed_, failed_, ticks_, delayed_,
      OwnCpuSeconds());
}

std::string Tally::Json(const FleetPlan& plan) const {
  const absl::MutexLock lock(&mutex_);
  nlohmann::json json;
  json["hosts"] = hosts_;
  json["streams_opened"] = opened_;
  json["streams_closed_by_daemon"] = closed_;
  json["failed_attempts"] = failed_;
  json["reasons"] = reasons_;
  json["streams_cut"] = cut_;
  json["connected_at_end"] = connected_;
  json["all_connected_seconds"] =
      all_first_ns_ == 0 ? nlohmann::json() : nlohmann::json(Seconds(all_first_ns_ - begin_ns_));
  json["reconnects"] = outages_.size();
  json["outage_seconds_max"] = Greatest(outages_);
  json["outage_seconds_p50"] = Median(outages_);
  json["all_back_seconds_max"] = Greatest(all_back_);
  json["ticks_sent"] = ticks_;
  json["ticks_delayed"] = delayed_;
  json["own_lateness_seconds_max"] = Seconds(latest_ns_);
  json["stacks_sent"] = stacks_;
  json["cpu_seconds"] = OwnCpuSeconds();
  json["hangs"] = HangsOf(plan);
  return json.dump();
}

}  // namespace rollcall::fleet
