// SPDX-License-Identifier: Apache-2.0
// The host's agent, and the daemon: reachable, certificates, clocks, versions.
#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/durations.h"
#include "cli/doctor/checks.h"

namespace rollcall::doctor {
namespace {

constexpr int64_t kDay = 86400;
constexpr int64_t kSoonDays = 14;
constexpr int64_t kSmallDifferenceNs = 2 * kSecond;
constexpr int64_t kLargeDifferenceNs = 300 * kSecond;  // tokens and certificates begin to fail

Judgement NoDaemon(const DaemonFacts& daemon) {
  return {State::kNotApplicable,
          daemon.is_chosen ? "the daemon gave no answer: see its line" : "no daemon named", ""};
}

bool HasAnswered(const DaemonFacts& daemon) { return daemon.answer == DaemonAnswer::kAnswered; }

// An error in several lines ends in what to type.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Why the daemon cannot be reached, without the address, which the sentence has already.
std::string ReasonOf(const DaemonFacts& daemon) {
  std::string reason = FirstLine(daemon.error);
  const std::string address = absl::StrCat(daemon.address, ": ");
  return reason.rfind(address, 0) == 0 ? reason.substr(address.size()) : reason;
}

std::string FurtherLines(const std::string& text, const std::string& without) {
  const size_t end = text.find('\n');
  if (end == std::string::npos) return without;
  return absl::StrReplaceAll(std::string(absl::StripAsciiWhitespace(text.substr(end))),
                             {{"\n  ", "   or   "}});
}

// "0.1" of "0.1.3": releases that share it speak the same protocol and a little more.
std::string Series(const std::string& version) {
  const std::vector<std::string> parts = absl::StrSplit(version, '.');
  return parts.size() < 2 ? version : absl::StrCat(parts[0], ".", parts[1]);
}

}  // namespace

Judgement JudgeAgent(const Facts& facts) {
  const AgentFacts& agent = facts.agent;
  if (agent.looked == Attempt::kNoAnswer) {
    return {State::kWarning, "the folders of agents do not answer", "ls /run/rollcall"};
  }
  if (agent.is_running) {
    return {State::kOk,
            absl::StrCat("an agent serves this host and reports to ", facts.daemon.address, " (",
                         agent.directory, ")"),
            ""};
  }
  const bool is_under_run = facts.IsSet("ROLLCALL_LOADED");
  const bool is_preloaded =
      facts.Variable("LD_PRELOAD").find("librollcall.so") != std::string::npos;
  if (is_preloaded && !is_under_run) {
    return {State::kProblem,
            absl::StrCat("LD_PRELOAD names the library, and no agent here reports to ",
                         facts.daemon.address, ": no agent reads what it records"),
            absl::StrCat("rollcall-agent --daemon=", facts.daemon.address,
                         "   or   rollcall run COMMAND")};
  }
  return {State::kNotApplicable,
          absl::StrCat(
              "no agent of the host; `rollcall run` starts its own. An agent of this user would "
              "see ",
              agent.may_see_all ? "all users' processes" : "this user's processes only"),
          agent.may_see_all
              ? absl::StrCat("rollcall-agent --daemon=", facts.daemon.address)
              : "for all users, start it with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, as "
                "docs/running.md shows"};
}

Judgement JudgeDaemon(const Facts& facts) {
  const DaemonFacts& daemon = facts.daemon;
  switch (daemon.answer) {
    case DaemonAnswer::kAnswered:
      return {
          State::kOk,
          absl::StrFormat("rollcalld %s answers at %s in %d ms%s", daemon.version, daemon.address,
                          daemon.round_trip_ns / 1'000'000, daemon.has_tls ? ", with TLS" : ""),
          ""};
    case DaemonAnswer::kRefused:
      return {
          State::kProblem,
          absl::StrCat("rollcalld at ", daemon.address,
                       " refuses this caller: ", FirstLine(daemon.error)),
          FurtherLines(daemon.error,
                       "--token-file=FILE with a token of role viewer   or   --tls-cert=FILE and "
                       "--tls-key=FILE of that role")};
    case DaemonAnswer::kWrongFlags:
      return {State::kProblem, FirstLine(daemon.error),
              FurtherLines(daemon.error, "rollcall doctor --help")};
    case DaemonAnswer::kNoAnswer:
    case DaemonAnswer::kUnreachable:
      if (!daemon.is_chosen) break;
      return {State::kProblem,
              absl::StrCat("cannot reach the daemon at ", daemon.address, ": ", ReasonOf(daemon)),
              FurtherLines(daemon.error,
                           "systemctl status rollcalld   on that host   or   "
                           "--daemon=HOST:PORT")};
    case DaemonAnswer::kNone:
      break;
  }
  return {
      State::kNotApplicable,
      absl::StrCat("no daemon named, and none at ", daemon.address, "; `rollcall run` has its own"),
      "rollcall doctor --daemon=HOST:PORT"};
}

Judgement JudgeCertificates(const Facts& facts) {
  const DaemonFacts& daemon = facts.daemon;
  if (!daemon.has_tls) return {State::kNotApplicable, "no --tls-ca, so no TLS", ""};
  struct One {
    const char* whose;
    int64_t expiry_s;
  };
  for (const One& one : {One{"this program's certificate", daemon.own_expiry_s},
                         One{"the daemon's certificate", daemon.daemon_expiry_s}}) {
    if (one.expiry_s == 0) continue;
    const int64_t left = one.expiry_s - facts.now_s;
    if (left <= 0) {
      return {State::kProblem, absl::StrCat(one.whose, " has expired"),
              "rollcall pki renew DIR --all"};
    }
    if (left < kSoonDays * kDay) {
      return {State::kWarning, absl::StrCat(one.whose, " expires in ", left / kDay, " days"),
              "rollcall pki renew DIR --all"};
    }
  }
  if (!HasAnswered(daemon)) return NoDaemon(daemon);
  const int64_t first = daemon.own_expiry_s == 0
                            ? daemon.daemon_expiry_s
                            : std::min(daemon.own_expiry_s, daemon.daemon_expiry_s);
  return {
      State::kOk,
      absl::StrCat("the certificates are valid for ", (first - facts.now_s) / kDay, " more days"),
      ""};
}

Judgement JudgeClock(const Facts& facts) {
  const DaemonFacts& daemon = facts.daemon;
  if (!HasAnswered(daemon)) return NoDaemon(daemon);
  const int64_t doubt = daemon.round_trip_ns / 2;
  const int64_t difference = std::max<int64_t>(std::abs(daemon.ahead_ns) - doubt, 0);
  const std::string what = absl::StrFormat("the daemon's clock is %.1f s %s this host's",
                                           static_cast<double>(std::abs(daemon.ahead_ns)) / 1e9,
                                           daemon.ahead_ns >= 0 ? "ahead of" : "behind");
  if (difference < kSmallDifferenceNs) {
    return {State::kOk, "the clocks of daemon and host agree within 2 s", ""};
  }
  if (difference < kLargeDifferenceNs) {
    return {State::kWarning, absl::StrCat(what, ": times in reports and in the job's logs differ"),
            "timedatectl set-ntp true   on both hosts"};
  }
  return {State::kProblem, absl::StrCat(what, ": certificates and tokens may count as expired"),
          "timedatectl set-ntp true   on both hosts"};
}

Judgement JudgeVersion(const Facts& facts) {
  const DaemonFacts& daemon = facts.daemon;
  if (!HasAnswered(daemon)) return NoDaemon(daemon);
  if (daemon.version == facts.version) {
    return {State::kOk, absl::StrCat("daemon and this program are of release ", facts.version), ""};
  }
  const std::string what = absl::StrCat("the daemon is of release ", daemon.version,
                                        ", this program of ", facts.version);
  if (Series(daemon.version) == Series(facts.version)) {
    return {State::kOk, absl::StrCat(what, ": they work together"), ""};
  }
  return {State::kWarning,
          absl::StrCat(what, ": update the daemon first, then agents and programs"),
          absl::StrCat("install the wheel of release ", daemon.version, ":  pip install rollcall-",
                       daemon.version, "-*.whl")};
}

}  // namespace rollcall::doctor
