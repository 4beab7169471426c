// SPDX-License-Identifier: Apache-2.0
// fleet_load: the agents of a whole cluster in one process, for measuring a daemon.
//
//   fleet_load --daemon=HOST:PORT [--jobs=1] [--ranks=64] [--seconds=60] [--hang-at=20] ...
//
// Each host has a TCP connection and a stream of its own. Prints progress on stderr every ten
// seconds, and one line of JSON on stdout at the end. SIGTERM and SIGINT end it early.
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/steady_clock.h"
#include "tests/fleet/credentials.h"
#include "tests/fleet/fleet_plan.h"
#include "tests/fleet/load_options.h"
#include "tests/fleet/tally.h"
#include "tests/fleet/worker.h"

namespace rollcall::fleet {
namespace {

constexpr int64_t kProgressEvery = 10 * kSecond;
constexpr rlim_t kOwnDescriptors = 64;

void AddFlags(CLI::App* app, LoadOptions* options) {
  app->add_option("--daemon", options->daemons, "HOST:PORT; several, with commas, share the hosts")
      ->delimiter(',')
      ->required();
  app->add_option("--tls-ca", options->tls_ca,
                  "file with the authority of the daemon's certificate; switches TLS on");
  app->add_option("--tls-cert", options->tls_cert, "file with the certificate of all hosts");
  app->add_option("--tls-key", options->tls_key, "file with its key");
  app->add_option("--host-domain", options->host_domain,
                  "added to the names of the hosts, to fit a certificate for *.DOMAIN: .DOMAIN");
  app->add_option("--seconds", options->seconds, "length of the load")->capture_default_str();
  app->add_option("--threads", options->threads, "threads that serve the hosts")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app->add_option("--seed", options->seed, "of all that is drawn by chance")->capture_default_str();
  app->add_option("--start-within", options->start_within,
                  "seconds within which the hosts connect first")
      ->capture_default_str();
  app->add_option("--connecting", options->connecting,
                  "hosts that connect at the same time; 0: any number. The handshakes of TLS need "
                  "a limit, because this one process makes those of all hosts")
      ->capture_default_str()
      ->check(CLI::Range(0, 100'000));
  app->add_option("--tick", options->tick, "seconds between two ticks of a host")
      ->capture_default_str();
  app->add_option("--whole-records", options->whole_records,
                  "newest records of a rank and communicator in a whole tick")
      ->capture_default_str();
}

void AddJobFlags(CLI::App* app, LoadOptions* options) {
  app->add_option("--jobs", options->jobs, "jobs at the same time")->capture_default_str();
  app->add_option("--ranks", options->ranks, "ranks of each job")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 20));
  app->add_option("--ranks-per-host", options->ranks_per_host, "a host runs one job")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app->add_option("--communicators", options->communicators,
                  "communicators of eight ranks that each rank is in, besides that of all ranks")
      ->capture_default_str()
      ->check(CLI::Range(0, 5));
  app->add_option("--calls-per-second", options->calls_per_second,
                  "of each rank on each communicator")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 10000.0));
  app->add_option("--jobs-cycle", options->jobs_cycle,
                  "run so many jobs in all, one after the other, --jobs at the same time");
  app->add_option("--job-seconds", options->job_seconds, "length of a job of --jobs-cycle")
      ->capture_default_str();
}

void AddFaultFlags(CLI::App* app, LoadOptions* options) {
  app->add_option("--hang-at", options->hang_at,
                  "seconds from the start, or from that of each job of --jobs-cycle: a rank of "
                  "--hang-jobs jobs stops calling");
  app->add_option("--hang-jobs", options->hang_jobs, "jobs that hang, within one second")
      ->capture_default_str();
  app->add_option("--mismatch-at", options->mismatch_at,
                  "seconds from the start: a rank of a further job of 8 ranks makes another call");
  app->add_option("--churn", options->churn, "hosts a second that cut their stream and come back");
  app->add_option("--late", options->late, "fraction of hosts whose ticks arrive up to 2 s late")
      ->check(CLI::Range(0.0, 1.0));
}

// False if there are fewer descriptors than hosts.
bool RaiseDescriptors(int hosts) {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t needed = static_cast<rlim_t>(hosts) + kOwnDescriptors;
  if (limit.rlim_cur >= needed) return true;
  std::cerr << "fleet_load: " << hosts << " hosts need " << needed
            << " file descriptors, the limit is " << limit.rlim_cur << "\n  raise it:  ulimit -n "
            << needed << "\n";
  return false;
}

// Until the time is over or a signal comes.
void WaitForEnd(const sigset_t& signals, int64_t end_ns, const Tally& tally) {
  while (true) {
    const int64_t now_ns = SteadyNs();
    if (now_ns >= end_ns) return;
    const int64_t pause_ns = std::min(kProgressEvery, end_ns - now_ns);
    const timespec pause = {pause_ns / kSecond, pause_ns % kSecond};
    if (sigtimedwait(&signals, nullptr, &pause) > 0) return;
    std::cerr << tally.Progress(SteadyNs()) << std::endl;
  }
}

int Main(int argc, char** argv) {
  LoadOptions options;
  CLI::App app("Acts as the agents of a whole cluster towards a daemon.", "fleet_load");
  AddFlags(&app, &options);
  AddJobFlags(&app, &options);
  AddFaultFlags(&app, &options);
  CLI11_PARSE(app, argc, argv);

  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Debian builds Abseil with it: every lock of gRPC's would take one lock of the whole process.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const FleetPlan plan(options, SteadyNs());
  if (!RaiseDescriptors(plan.hosts())) return 1;
  const std::shared_ptr<grpc::ChannelCredentials> credentials = MakeCredentials(options);
  if (credentials == nullptr) return 1;
  Tally tally(plan.hosts(), plan.begin_ns());
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < options.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(&plan, &tally, credentials, i, options.threads));
  }
  for (const auto& worker : workers) worker->Start();
  WaitForEnd(signals, plan.begin_ns() + ToNs(options.seconds), tally);
  std::cout << tally.Json(plan) << std::endl;
  workers.clear();
  return 0;
}

}  // namespace
}  // namespace rollcall::fleet

int main(int argc, char** argv) { return rollcall::fleet::Main(argc, argv); }
