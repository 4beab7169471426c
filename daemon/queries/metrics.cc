// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/report/job_view.h"
#include "daemon/words/communicator_names.h"

namespace rollcall {
namespace {

constexpr char kEnd[] = "# EOF\n";  // of OpenMetrics

using Labels = std::vector<prometheus::ClientMetric::Label>;

class Families {
 public:
  void Gauge(const char* name, const char* help, const Labels& labels, double value) {
    prometheus::ClientMetric& metric = Add(name, help, prometheus::MetricType::Gauge, labels);
    metric.gauge.value = value;
  }
  // `name` ends in _total.
  void Counter(const char* name, const char* help, const Labels& labels, double value) {
    prometheus::ClientMetric& metric = Add(name, help, prometheus::MetricType::Counter, labels);
    metric.counter.value = value;
  }
  const std::vector<prometheus::MetricFamily>& all() const { return families_; }

 private:
  prometheus::ClientMetric& Add(const char* name, const char* help, prometheus::MetricType type,
                                const Labels& labels) {
    const auto [at, fresh] = places_.try_emplace(name, families_.size());
    if (fresh) families_.push_back({name, help, type, {}});
    prometheus::ClientMetric& metric = families_[at->second].metric.emplace_back();
    metric.label = labels;
    return metric;
  }

  std::vector<prometheus::MetricFamily> families_;
  std::map<std::string, size_t> places_;
};

// Returns the labels of a job, and `more`.
Labels JobLabels(const v1::JobStatus& job, const Labels& more = {}) {
  Labels labels = {
      {"tenant", job.tenant()}, {"job", job.name()}, {"attempt", absl::StrCat(job.attempt())}};
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

void AddCommunicator(const v1::JobStatus& job, const v1::CommunicatorStatus& comm, Families* out) {
  // Several communicators may have the same name.
  // A name made of ranks changes while ranks join, and so would the time series.
  const std::string name = IsMadeOfRanks(comm.name()) ? "" : comm.name();
  const Labels labels = JobLabels(job, {{"communicator", name}, {"id", comm.id()}});
  out->Gauge("rollcall_communicator_position_min", "Fewest collectives that a rank has entered",
             labels, comm.position_min());
  out->Gauge("rollcall_communicator_position_max", "Most collectives that a rank has entered",
             labels, comm.position_max());
  out->Gauge("rollcall_communicator_lagging_ranks",
             "Ranks at the lowest position, if others are ahead", labels, comm.laggards_total());
  out->Gauge("rollcall_communicator_waiting_ranks", "Ranks that wait in a call", labels,
             comm.waiting());
  out->Gauge("rollcall_communicator_longest_wait_seconds", "Longest wait of a rank in a call",
             labels, comm.waited_seconds());
}

void AddIncidents(const JobMetrics& job, Families* out) {
  for (const auto& [cause, seconds] : job.incidents.hung_seconds) {
    out->Counter("rollcall_job_hung_seconds_total", "Seconds spent in confirmed incidents",
                 JobLabels(job.status, {{"cause", cause}}), seconds);
  }
  for (const auto& [cause, count] : job.incidents.by_cause) {
    out->Counter("rollcall_incidents_total", "Confirmed incidents since the daemon's start",
                 JobLabels(job.status, {{"cause", cause}}), count);
  }
  const std::string& open = job.incidents.open_cause;
  if (open.empty()) return;
  out->Gauge("rollcall_incident_open", "1 while the job has an incident of this cause and state",
             JobLabels(job.status, {{"cause", open}, {"state", job.status.state()}}), 1);
}

void AddJob(const JobMetrics& job, Families* out) {
  const v1::JobStatus& status = job.status;
  const Labels labels = JobLabels(status);
  for (const char* state : {"running", "waiting", "suspected", "hung", "ended"}) {
    out->Gauge("rollcall_job_state", "1 for the current state of the job, else 0",
               JobLabels(status, {{"state", state}}), status.state() == state ? 1 : 0);
  }
  out->Gauge("rollcall_job_ranks", "Number of ranks", labels, status.ranks());
  out->Gauge("rollcall_job_processes_alive", "Number of live processes", labels,
             status.processes_alive());
  out->Gauge("rollcall_job_hosts", "Number of hosts", labels, status.hosts_size());
  out->Gauge("rollcall_job_communicators", "Number of communicators", labels,
             status.communicators_total());
  out->Gauge("rollcall_job_calls_per_second", "NCCL calls per second of an average rank", labels,
             status.calls_per_second());
  int waiting = 0;
  double longest = 0;
  for (const v1::CommunicatorStatus& comm : status.communicators()) {
    waiting = std::max(waiting, comm.waiting());
    longest = std::max(longest, comm.waited_seconds());
  }
  out->Gauge("rollcall_job_waiting_ranks",
             "Ranks that wait in a call, on the communicator with most of them", labels, waiting);
  out->Gauge("rollcall_job_longest_wait_seconds", "Longest wait of a rank in a call", labels,
             longest);
  out->Counter("rollcall_job_records_lost_total",
               "Call records that the library overwrote before the agent read them", labels,
               static_cast<double>(job.records_lost));
  AddIncidents(job, out);
  for (const v1::CommunicatorStatus& comm : status.communicators()) {
    AddCommunicator(status, comm, out);
  }
}

double ResidentBytes() {
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void AddDelivery(const DeliveryCounts& counts, Families* out) {
  const auto count = [out](const char* name, const char* help, uint64_t value) {
    out->Counter(name, help, {}, static_cast<double>(value));
  };
  const auto now = [out](const char* name, const char* help, uint64_t value) {
    out->Gauge(name, help, {}, static_cast<double>(value));
  };
  count("rollcall_reports_written_total", "Reports written or updated", counts.reports.written);
  count("rollcall_report_errors_total", "Failed attempts to write a report", counts.reports.failed);
  count("rollcall_reports_lost_total", "Reports lost after failed attempts", counts.reports.lost);
  count("rollcall_reports_deleted_total", "Old reports that the daemon deleted",
        counts.reports.deleted);
  now("rollcall_reports_waiting", "Reports waiting to be written", counts.reports.waiting);
  count("rollcall_history_errors_total", "Failed attempts to write the history",
        counts.history.failed);
  count("rollcall_history_lost_total", "Incidents lost from the history", counts.history.lost);
  count("rollcall_history_fenced_total",
        "Writes dropped, because another daemon has had their job since", counts.history.fenced);
  now("rollcall_history_waiting", "Incidents waiting to be written to the history",
      counts.history.waiting);
  now("rollcall_history_spooled", "Writes on this disk that the database of --store lacks",
      counts.history.spooled);
  now("rollcall_history_spooled_bytes", "Bytes of these writes", counts.history.spooled_bytes);
  now("rollcall_history_database_away", "1 while the database of --store does not answer",
      counts.history.has_database && !counts.history.is_connected ? 1 : 0);
  count("rollcall_alerts_sent_total", "Alerts delivered", counts.alerts_sent);
  count("rollcall_alert_errors_total", "Alerts lost after failed attempts, or dropped",
        counts.alerts_failed);
  now("rollcall_alerts_waiting", "Alerts waiting for delivery", counts.alerts_waiting);
  count("rollcall_incidents_silenced_total", "Incidents whose alerts a silence held back",
        counts.alerts_silenced);
  now("rollcall_silences", "Silences that last", counts.silences);
}

void AddHttp(const HttpFront::Counts& counts, Families* out) {
  out->Gauge("rollcall_http_connections", "Open connections to the page", {},
             static_cast<double>(counts.connections));
  out->Counter("rollcall_http_dropped_total",
               "Connections to the page that the daemon closed, because they were too slow or it "
               "needed the room",
               {}, static_cast<double>(counts.dropped));
}

void AddDaemon(const MetricsSnapshot& snapshot, Families* out) {
  out->Gauge("rollcall_build_info", "Always 1; the label holds the release",
             {{"version", snapshot.version}}, 1);
  out->Gauge("rollcall_agents_connected", "Number of connected agents", {}, snapshot.agents);
  const auto broken_streams = static_cast<double>(snapshot.daemon.broken_agent_streams);
  out->Counter("rollcall_agent_broken_streams_total",
               "Streams to the daemon that broke, or that agents could not open", {},
               broken_streams);
  out->Counter("rollcall_agent_dropped_ticks_total",
               "The same as rollcall_agent_broken_streams_total, until the next release", {},
               broken_streams);
  out->Counter("rollcall_daemon_ticks_total", "Checks of all jobs", {},
               static_cast<double>(snapshot.daemon.ticks));
  out->Counter("rollcall_daemon_tick_seconds_total", "Seconds spent in checks of all jobs", {},
               snapshot.daemon.tick_seconds);
  out->Gauge("rollcall_jobs",
             "Number of jobs; only 200 have series of their own, those with an open incident first",
             {}, static_cast<double>(snapshot.jobs_total));
  for (size_t kind = 0; kind < kDroppedKinds; ++kind) {
    out->Counter("rollcall_daemon_dropped_total",
                 "What agents sent beyond a limit, and the daemon dropped or cut",
                 {{"what", DroppedName(static_cast<Dropped>(kind))}},
                 static_cast<double>(snapshot.daemon.dropped[kind]));
  }
  for (const auto& [who, count] : snapshot.daemon.over_share) {
    const auto& [what, user, host] = who;
    out->Counter("rollcall_over_share_total",
                 "What the daemon dropped of a user or host that had more than the others",
                 {{"what", DroppedName(what)}, {"user", user}, {"host", host}},
                 static_cast<double>(count));
  }
  for (const auto& [reason, count] : snapshot.refused) {
    out->Counter("rollcall_refused_total",
                 "Requests and streams that the daemon refused, by reason", {{"reason", reason}},
                 static_cast<double>(count));
  }
  if (snapshot.certificate_days.has_value()) {
    out->Gauge("rollcall_tls_certificate_days_left",
               "Days until the daemon's certificate expires; absent without TLS", {},
               *snapshot.certificate_days);
  }
  AddDelivery(snapshot.deliveries, out);
  AddHttp(snapshot.http, out);
  out->Gauge("process_resident_memory_bytes", "Resident memory of the daemon in bytes", {},
             ResidentBytes());
  out->Counter("process_cpu_seconds_total", "CPU time of the daemon in seconds", {}, CpuSeconds());
}

// The client library writes the older format. OpenMetrics differs in two points: a counter's family
// has a name without _total, and the text has an end mark.
std::string ToOpenMetrics(const std::string& text) {
  std::string out;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
    if (words.size() == 4 && words[0] == "#" && absl::EndsWith(words[2], "_total")) {
      absl::StrAppend(&out, "# ", words[1], " ", absl::StripSuffix(words[2], "_total"), " ",
                      words[3], "\n");
    } else {
      absl::StrAppend(&out, line, "\n");
    }
  }
  return out + kEnd;
}

std::string ToText(const Families& families, bool open_metrics) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families.all());
  return open_metrics ? ToOpenMetrics(text.str()) : text.str();
}

}  // namespace

uint64_t RecordsLost(const JobState& state) {
  uint64_t lost = 0;
  for (const auto& [id, comm] : state.communicators) {
    for (const auto& [rank, member] : comm.members) lost += member.records_lost;
  }
  return lost;
}

std::string MetricsText(MetricsSnapshot snapshot, bool open_metrics) {
  if (snapshot.jobs.size() > kMaxJobsMeasured) snapshot.jobs.resize(kMaxJobsMeasured);
  Families families;
  for (JobMetrics& job : snapshot.jobs) {
    KeepWorstCommunicators(kMaxCommunicatorsMeasured, &job.status);
    AddJob(job, &families);
  }
  AddDaemon(snapshot, &families);
  return ToText(families, open_metrics);
}

std::string WithFleetMetrics(std::string text, const FleetMetrics& fleet, bool open_metrics) {
  const size_t silent = std::min(fleet.silent, fleet.living);
  Families families;
  const auto daemons = [&families](const char* state, size_t count) {
    families.Gauge("rollcall_fleet_daemons",
                   "Daemons on the same database, this one too: those that answer this one, and "
                   "those that do not",
                   {{"state", state}}, static_cast<double>(count));
  };
  daemons("answers", fleet.living - silent);
  daemons("silent", silent);
  families.Gauge("rollcall_fleet_lease_held",
                 "1 while this daemon can prove to the others that it lives", {},
                 fleet.holds_lease ? 1 : 0);
  const auto jobs = [&families](const char* state, size_t count) {
    families.Gauge(
        "rollcall_fleet_jobs",
        "Jobs by the state of their ownership: this daemon has them; it has them and cannot prove "
        "it yet; they move to another daemon; agents wait for the answer",
        {{"state", state}}, static_cast<double>(count));
  };
  jobs("owned", fleet.jobs.owned);
  jobs("unproven", fleet.jobs.unproven);
  jobs("leaving", fleet.jobs.leaving);
  jobs("sought", fleet.jobs.sought);
  if (open_metrics && absl::EndsWith(text, kEnd)) text.resize(text.size() - (sizeof(kEnd) - 1));
  return text + ToText(families, open_metrics);
}

}  // namespace rollcall
