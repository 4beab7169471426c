// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/processes/stacks_switch.h"
#include "agent/redact_flag.h"
#include "base/names.h"
#include "base/whole_numbers.h"
#include "interpose/segment_folder.h"
#include "service/version.h"

namespace rollcall {
namespace {

constexpr char kConfigFile[] = "/etc/rollcall/agent.yaml";
// These end --help, in the form of cli/examples.cc.
constexpr char kExamples[] =
    "Examples:\n"
    "  rollcall-agent --daemon=head:7655\n"
    "      reports your own jobs on this host to the daemon on the host head\n"
    "  rollcall-agent --scope=host --daemon=head:7655 --tls-ca=ca.crt --token-file=agent.token\n"
    "      reports the jobs of all users, over TLS; needs the rights of root";
constexpr size_t kMaxHostName = 255;  // the daemon cuts a longer one
// Twice that of `rollcall run`: most of a tick's cost does not depend on the number of calls in it
// (tests/bench/agent_cost.py), and on a cluster the agent costs every host.
constexpr int64_t kTickNs = 200'000'000;

std::string CheckHostName(const std::string& name) {
  if (name.size() <= kMaxHostName) return "";
  return "the name of this host has " + std::to_string(name.size()) + " bytes; give it at most " +
         std::to_string(kMaxHostName);
}

std::string CheckTenant(const std::string& name) {
  if (IsTenantName(name)) return "";
  return "\"" + name +
         "\" is not the name of a tenant: give 1 to 255 letters, digits, \".\", \"_\" and "
         "\"-\"";
}

std::string CheckAbsolute(const std::string& path) {
  return path.empty() || path.front() == '/' ? "" : "\"" + path + "\" does not begin with /";
}

void AddServedFlags(CLI::App* app, AgentFlags* flags) {
  app->add_option("--dir", flags->options.collector.directory,
                  "folder in which the library creates its segments")
      ->envname("ROLLCALL_DIR")
      ->capture_default_str();
  app->add_option("--scope", flags->scope,
                  "host: watch the training processes of all users and containers of this host; "
                  "directory: watch only processes with segments in --dir")
      ->envname("ROLLCALL_SCOPE")
      ->capture_default_str()
      ->check(CLI::IsMember({"host", "directory"}));
  app->add_option("--host", flags->options.host,
                  "name of this host in verdicts (default: the host name)")
      ->envname("ROLLCALL_HOST")
      ->check(CLI::Validator(CheckHostName, "NAME"));
  app->add_option("--keep-ended", flags->keep_ended_seconds,
                  "seconds to keep the segments of ended processes")
      ->envname("ROLLCALL_KEEP_ENDED")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

void AddEvidenceFlags(CLI::App* app, AgentFlags* flags) {
  app->add_option("--max-stacks-per-minute", flags->options.max_stacks_per_minute,
                  "processes of this host whose stacks the daemon may ask for in a minute; "
                  "0: no limit")
      ->envname("ROLLCALL_MAX_STACKS_PER_MINUTE")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  app->add_option("--stacks", flags->stacks,
                  "on: take stacks when the daemon asks; off: never stop or signal a process")
      ->envname(kStacksVariable)
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}, CLI::ignore_case));
  app->add_option("--host-facts", flags->host_facts,
                  "on: when a job may hang, look once at the host's kernel log, GPUs, network, "
                  "file systems and limits, if the daemon asks; off: never")
      ->envname("ROLLCALL_HOST_FACTS")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}, CLI::ignore_case));
  app->add_option("--list-unrecorded", flags->list_unrecorded,
                  "on: tell the daemon which distributed jobs of this host run without Rollcall's "
                  "library, and look at one when an operator asks `rollcall diagnose --daemon`; "
                  "off: never")
      ->envname("ROLLCALL_LIST_UNRECORDED")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}, CLI::ignore_case));
  app->add_option("--host-root", flags->options.host_facts.gather.root,
                  "folder below which the host's /sys, /proc and /dev are mounted, for facts about "
                  "the host from inside a container")
      ->envname("ROLLCALL_HOST_ROOT");
  app->add_option("--tenant", flags->options.collector.tenant,
                  "tenant of the processes that have no ROLLCALL_TENANT")
      ->envname("ROLLCALL_TENANT")
      ->check(CLI::Validator(CheckTenant, "NAME"));
  AddRedactFlags(app, &flags->redact);
}

void AddNvSentinelFlags(CLI::App* app, AgentFlags* flags) {
  app->add_option("--nvsentinel", flags->nvsentinel,
                  "Unix socket of NVSentinel's platform connector, to which hangs that the daemon "
                  "blames this host for are reported (usually /var/run/nvsentinel/nvsentinel.sock)")
      ->envname("ROLLCALL_NVSENTINEL")
      ->check(CLI::Validator(CheckAbsolute, "PATH"));
  app->add_option("--nvsentinel-may", flags->nvsentinel_may,
                  "store: NVSentinel keeps these reports and changes nothing; remediate: it may "
                  "mark a node whose hardware shows an error, and its rules may act")
      ->envname("ROLLCALL_NVSENTINEL_MAY")
      ->capture_default_str()
      ->check(CLI::IsMember({"store", "remediate"}));
}

}  // namespace

std::string DefaultSegmentDirectory() {
  static const std::string directory = [] {
    char path[kSegmentFolderBytes];
    SegmentFolderSearch::Find(path, sizeof(path));
    return std::string(path);
  }();
  return directory;
}

AgentFlags::AgentFlags() {
  options.tick_ns = kTickNs;
  options.collector.directory = DefaultSegmentDirectory();
}

std::unique_ptr<CLI::App> MakeAgentApp(AgentFlags* flags) {
  auto app = std::make_unique<CLI::App>(
      "Watches the training processes of this host and reports to rollcalld.", "rollcall-agent");
  app->set_version_flag("--version", VersionLine("rollcall-agent"));
  app->footer(kExamples);
  AddServiceFlags(app.get(), kConfigFile, &flags->service);
  AddDaemonFlags(app.get(), &flags->daemon);
  AddServedFlags(app.get(), flags);
  AddEvidenceFlags(app.get(), flags);
  AddNvSentinelFlags(app.get(), flags);
  return app;
}

absl::StatusOr<AgentOptions> MakeAgentOptions(const AgentFlags& flags) {
  AgentOptions options = flags.options;
  auto redactor = TryMakeRedactor(flags.redact);
  if (!redactor.ok()) return redactor.status();
  options.collector.redactor = *std::move(redactor);
  options.collector.send_arguments = flags.redact.send_arguments();
  options.stacks_on = !IsStacksOff(flags.stacks);
  if (!options.stacks_on) options.collector.stacks_off = "--stacks=off of the agent";
  options.host_facts.is_on = !IsStacksOff(flags.host_facts);
  options.collector.whole_host = flags.scope == "host";
  options.collector.find_unrecorded =
      options.collector.whole_host && !IsStacksOff(flags.list_unrecorded);
  // With the default directory, processes without ROLLCALL_DIR in their environment count too.
  const std::string& directory = options.collector.directory;
  if (!options.collector.whole_host && directory != DefaultSegmentDirectory()) {
    options.collector.discover_directory = directory;
  }
  options.collector.keep_ended_ns = NsOfSeconds(flags.keep_ended_seconds);
  return options;
}

}  // namespace rollcall
