// SPDX-License-Identifier: Apache-2.0
// Shared by the commands that ask a daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/link/daemon_channel.h"
#include "cli/commands.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace CLI {
class App;
}

namespace rollcall {

class DaemonQuery {
 public:
  // Ends the program's work with an error where the flags are wrong: Ask() returns false.
  explicit DaemonQuery(const DaemonAddress& daemon);

  // Asks the daemon, or one of several, and waits at most five seconds for each; thirty in all, and
  // reports it, while one is there and does not answer. False after an error, which this function
  // has printed. `command` is the subcommand that the error suggests.
  using Call = std::function<grpc::Status(v1::Query::Stub*, grpc::ClientContext*)>;
  bool Ask(const char* command, const Call& call);
  // As Ask(), for a call that changes something: once it may have reached the daemon, it is not
  // repeated.
  bool AskToChange(const char* command, const Call& call);
  // Does what Ask() does, and asks again while the daemon reports that it still works on the answer
  // (ABORTED), for two minutes at most.
  bool AskPatiently(const char* command, const Call& call);
  // The exit code of a command whose Ask() has returned false: kExitBadUsage if the daemon, or this
  // program, calls the words of the command line wrong.
  int exit_code() const { return exit_code_; }
  // Does the same but prints nothing.
  grpc::Status Try(const Call& call);

 private:
  // Connects with a new channel.
  void Connect();
  grpc::Status TryOnce(const Call& call);
  grpc::Status TryWhileBusy(const Call& call, bool may_repeat = true);
  // Whether the daemon is there and may answer soon.
  bool IsBusy(const grpc::Status& status, bool may_repeat) const;
  bool Judge(const char* command, const grpc::Status& status);

  absl::Status flags_;
  std::shared_ptr<DaemonChannels> channels_;
  std::unique_ptr<v1::Query::Stub> stub_;
  bool has_answered_ = false;  // the daemon, through this stub
  int exit_code_ = 1;
};

struct QueryFlags {
  DaemonAddress daemon;
  std::string format = "text";
};

// Adds --daemon with its flags for TLS and tokens, and --format: equal in all these commands, but
// for incidents, which also has csv.
enum class Formats : uint8_t { kTextAndJson, kAlsoCsv };
void AddQueryFlags(CLI::App* app, QueryFlags* flags, Formats formats = Formats::kTextAndJson);

// The choice of a job and of one of its attempts.
struct JobFlags {
  std::string tenant;  // empty means any
  int32_t attempt = kNewest;

  static constexpr int32_t kNewest = -1;
};

// Adds --tenant and --attempt. `others`: what the command shows without --attempt.
void AddJobFlags(CLI::App* app, JobFlags* flags, const char* others = "the newest");

template <typename Request>
void SetJob(const std::string& job, const JobFlags& flags, Request* request) {
  request->set_job(CanonicalJob(job));
  request->set_tenant(flags.tenant);
  if (flags.attempt != JobFlags::kNewest) request->set_attempt(flags.attempt);
}

// Whether the error is about what the person has typed, not about what there is or who may do what.
bool IsBadUsage(const grpc::Status& status);

// What to type if the words choose an attempt or a tenant of a job and name no job; else "".
std::string FindChoiceOfNoJob(const char* command, const std::string& job, const JobFlags& flags);

// Adds --cause, which takes only causes that there are.
void AddCauseFlag(CLI::App* app, std::string* cause, const char* help);

void PrintJson(const google::protobuf::Message& message);

}  // namespace rollcall
