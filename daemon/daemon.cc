// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "daemon/access/daemon_security.h"
#include "daemon/web/http.h"
#include "security/grpc/credentials.h"

namespace rollcall {
namespace {

int CountWorkers() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2u, 64u));
}

// So that the daemons of one database see each other. An embedded daemon has no address.
std::unique_ptr<Fleet> MakeFleet(const DaemonOptions& options) {
  if (options.database.url.empty() || options.listen.empty()) return nullptr;
  FleetOptions fleet;
  fleet.database = options.database;
  fleet.limits = options.history_limits;
  fleet.alone_file = options.history + ".alone";
  return std::make_unique<Fleet>(std::move(fleet));
}

const JobOwnership* OwnershipOf(const Fleet* fleet) {
  return fleet == nullptr ? nullptr : &fleet->claims();
}

std::unique_ptr<FleetQueries> MakeFleetQueries(const DaemonOptions& options, const Fleet* fleet,
                                               Queries* own) {
  if (fleet == nullptr) return nullptr;
  PeerOptions peers;
  if (options.security != nullptr) peers.tls = options.security->shared_tls();
  return std::make_unique<FleetQueries>(own, &fleet->members(), &fleet->claims(), std::move(peers));
}

bool HasTls(const DaemonOptions& options) {
  return options.security != nullptr && options.security->tls() != nullptr;
}

std::shared_ptr<grpc::ServerCredentials> CredentialsFor(const DaemonOptions& options) {
  if (!HasTls(options)) return grpc::InsecureServerCredentials();
  return MakeServerCredentials(*options.security->tls(), ClientCertificate::kOptional);
}

bool IsWildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "[::]" || host == "*";
}

std::string HostOfThisMachine() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? std::string(name) : "localhost";
}

IncidentBookOptions BookOptions(const DaemonOptions& options, const Fleet* fleet) {
  IncidentBookOptions book;
  book.limits = options.limits;
  book.report_dir = options.report_dir;
  book.keep_reports = options.keep_reports;
  book.history.path = options.history;
  book.history.is_optional = options.history_is_optional;
  book.history.limits = options.history_limits;
  book.history.database = options.database;
  book.alerts = options.alerts;
  book.quota = options.incident_quota;
  book.remind_every_ns = options.remind_every_ns;
  book.host_labels = options.host_labels;
  book.log_incidents = options.log_incidents;
  book.ownership = OwnershipOf(fleet);
  if (fleet != nullptr) {
    const JobClaims& claims = fleet->claims();
    book.history.database.incarnation = fleet->members().row().incarnation;
    book.history.token_of = [&claims](const JobId& job) { return claims.TokenOf(job); };
    book.history.is_unproven = [&claims](const JobId& job) { return claims.IsUnproven(job); };
  }
  return book;
}

}  // namespace

Limits LimitsFor(int64_t hang_after_ns) {
  Limits limits;
  limits.hang_after_ns = hang_after_ns;
  limits.suspect_after_ns = std::min(hang_after_ns / 2, 15 * kSecond);
  limits.suspect_floor_ns = std::min(hang_after_ns / 2, 5 * kSecond);
  limits.absent_for_good_ns = std::min(hang_after_ns, 5 * kSecond);
  limits.stacks_apart_ns = std::clamp(hang_after_ns / 6, kSecond, 5 * kSecond);
  return limits;
}

Daemon::Daemon(DaemonOptions options)
    : options_(std::move(options)),
      fleet_(MakeFleet(options_)),
      store_(options_.default_job, options_.job_limits, &counters_),
      callers_(options_.authenticator),
      agents_(&hub_, &counters_, &callers_.access, options_.stream_limits),
      incidents_(BookOptions(options_, fleet_.get()), &timeline_, &counters_),
      audit_(&incidents_, &timeline_),
      hub_({&agents_, &store_, &incidents_, &runners_, fleet_.get(), &timeline_, &counters_},
           options_.silent_after_ns, [this] { return Address(); }),
      pairs_(&store_),
      runners_(
          {&store_, &incidents_, hub_.stacks(), &rates_, &counters_, &timeline_, hub_.host_facts(),
           OwnershipOf(fleet_.get()), &pairs_, options_.recorders, options_.gpu_dumps},
          {options_.limits, options_.tick_ns, options_.keep_ended_ns}, CountWorkers()),
      answers_(this),
      held_jobs_({OwnershipOf(fleet_.get()), &store_, &incidents_, &agents_, &runners_,
                  answers_.of_fleet.get()}),
      clock_({&hub_, &agents_, &runners_, &store_, &incidents_, &timeline_, &answers_.past_keeper,
              options_.security},
             {options_.tick_ns, options_.silent_after_ns, options_.check_callers_every_ns}) {
  // The detector costs each lock of gRPC a pass through one mutex of the whole process.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

Daemon::Answers::Answers(Daemon* daemon)
    : own({&daemon->store_, &daemon->incidents_, daemon->hub_.stacks(), &daemon->agents_,
           &daemon->rates_, &past, &daemon->counters_, &daemon->timeline_,
           &daemon->callers_.refusals, daemon->options_.security, &daemon->hub_.unrecorded(),
           daemon->hub_.looks(), &daemon->pairs_}),
      of_fleet(MakeFleetQueries(daemon->options_, daemon->fleet_.get(), &own)),
      all(of_fleet != nullptr ? static_cast<QuerySource*>(of_fleet.get()) : &own),
      past_keeper(&own, &daemon->store_, &daemon->timeline_, &past),
      service(all, &daemon->callers_.access, daemon->audit_.recorder(),
              daemon->audit_.refusal_recorder()) {}

Daemon::~Daemon() { Stop(); }

absl::Status Daemon::Start() {
  absl::Status status = incidents_.Start();
  if (status.ok()) {
    store_.ExpectHosts(incidents_.reader().CountKnownHosts());
    store_.places()->RestoreAttempts(incidents_.takeover().ConsumeAttempts());
    store_.places()->SetOwnership(OwnershipOf(fleet_.get()));
    Access& access = callers_.access;
    if (fleet_ != nullptr) access.SetPeerSecret(fleet_->members().row().secret);
    access.SetRefused(audit_.refusal_recorder());
    access.SetLocal([this](const std::string& peer) { return server_.LocalAddressOf(peer); });
    access.SetKnown([this](const std::string& peer) { server_.Admit(peer); });
    status = server_.Start(options_.listen, CredentialsFor(options_), {agents_.service()},
                           answers_.service.service(), HasTls(options_),
                           [this](const std::string& reason, const std::string& text) {
                             callers_.refusals.Count(reason, text);
                           });
  }
  if (!status.ok()) return status;
  status = StartHttp();
  if (!status.ok()) {
    Stop();
    return status;
  }
  if (fleet_ != nullptr) {
    const std::string page = http_ == nullptr ? "" : page_url();
    fleet_->Start(Address(), options_.alerts.page.empty() ? page : options_.alerts.page,
                  &held_jobs_);
  }
  clock_.Start(!options_.database.url.empty());
  return status;
}

absl::Status Daemon::StartHttp() {
  if (options_.http.empty()) return absl::OkStatus();
  HttpServerOptions http;
  http.token = options_.http_token;
  http.connections = options_.http_connections;
  const bool only_by_token = !options_.http_token.empty() && !options_.http_token_is_optional;
  http.authenticator = only_by_token ? nullptr : options_.authenticator;
  if (options_.security != nullptr) {
    http.tls = options_.security->page_tls();
    http.is_insecure = options_.security->is_insecure();
  }
  http.failed_logins = &callers_.failed_logins;
  http.web_config = options_.http_config;
  http.hosts = options_.http_hosts;
  http.page_url = options_.alerts.page;
  http.audit = audit_.recorder();
  http.refused_action = audit_.refusal_recorder();
  http.refused = [this](std::string_view reason) { callers_.refusals.Count(std::string(reason)); };
  http.over_share = [this](const Owner& viewer) {
    counters_.CountOverShare(Dropped::kViewers, viewer);
  };
  http.problem = [this] {
    return std::string(server_.IsStarved() ? "agents cannot connect: no file descriptor is free"
                                           : "");
  };
  http_ = std::make_unique<HttpServer>(answers_.all, std::move(http));
  absl::Status status = http_->Start(options_.http);
  if (!status.ok()) http_.reset();
  return status;
}

void Daemon::Stop() {
  incidents_.BeginStop();
  clock_.BeginStop();
  if (answers_.of_fleet != nullptr) answers_.of_fleet->Close();
  const SteadyTime begun = std::chrono::steady_clock::now();
  clock_.Join();
  incidents_.Finish(begun);
  // What it knew is in the database: another daemon may take its jobs.
  if (fleet_ != nullptr) fleet_->Stop();
  runners_.Stop();
  hub_.Close();  // a query that waits for stacks would delay the servers' stop
  if (http_ != nullptr) http_->Stop();
  agents_.CloseAll();
  server_.Stop();
}

std::string Daemon::page_url() const {
  const bool has_tls = http_ != nullptr && http_->has_tls();
  return absl::StrCat(has_tls ? "https://" : "http://", http_address(), "/");
}

std::string Daemon::Address() const {
  if (!options_.advertise.empty()) return options_.advertise;
  if (absl::StartsWith(options_.listen, "unix:")) return options_.listen;
  const std::string host = options_.listen.substr(0, options_.listen.rfind(':'));
  return absl::StrCat(IsWildcard(host) ? HostOfThisMachine() : host, ":", grpc_port());
}

std::string Daemon::http_address() const { return http_ == nullptr ? "" : http_->address(); }

std::vector<v1::Incident> Daemon::GetIncidents(const std::string& job) const {
  return incidents_.reader().All(job);
}

}  // namespace rollcall
