// SPDX-License-Identifier: Apache-2.0
#include "cli/query.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "daemon/model/cause_name.h"

namespace rollcall {
namespace {

constexpr auto kQueryPatience = std::chrono::seconds(5);
constexpr auto kLongPatience = std::chrono::minutes(2);
constexpr auto kPause = std::chrono::milliseconds(500);
constexpr auto kShortPause = std::chrono::milliseconds(50);
// A daemon that is there and does not answer may be busy with others; one that is not there is not
// waited for. A daemon on this host that a flood of connections keeps busy takes 200 a second, and
// the system lets 4,096 wait.
constexpr auto kBusyPatience = std::chrono::seconds(30);

bool IsAway(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
}

}  // namespace

DaemonQuery::DaemonQuery(const DaemonAddress& daemon) {
  auto channels = DaemonChannels::Open(daemon);
  flags_ = channels.status();
  if (!flags_.ok()) return;
  channels_ = *std::move(channels);
  Connect();
}

void DaemonQuery::Connect() {
  stub_ = v1::Query::NewStub(channels_->Connect());
  has_answered_ = false;
}

grpc::Status DaemonQuery::Try(const Call& call) {
  if (!flags_.ok()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, std::string(flags_.message())};
  }
  if (stub_ == nullptr) Connect();
  const bool had_answered = has_answered_;
  grpc::Status status = TryOnce(call);
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && had_answered) {
    Connect();  // the daemon may have been started again
    status = TryOnce(call);
  }
  for (size_t others = channels_->count() - 1; others > 0 && IsAway(status); --others) {
    channels_->TryAnother();
    Connect();
    status = TryOnce(call);
  }
  // A channel that broke may never work again. The next call makes another one.
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) stub_ = nullptr;
  return status;
}

grpc::Status DaemonQuery::TryOnce(const Call& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kQueryPatience);
  const grpc::Status status = call(stub_.get(), &context);
  has_answered_ = has_answered_ || !IsAway(status);
  return status;
}

bool DaemonQuery::Ask(const char* command, const Call& call) {
  return Judge(command, TryWhileBusy(call));
}

bool DaemonQuery::AskToChange(const char* command, const Call& call) {
  return Judge(command, TryWhileBusy(call, false));
}

bool DaemonQuery::IsBusy(const grpc::Status& status, bool may_repeat) const {
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return may_repeat;
  return IsAway(status) && channels_->IsBusy();
}

grpc::Status DaemonQuery::TryWhileBusy(const Call& call, bool may_repeat) {
  const auto deadline = std::chrono::steady_clock::now() + kBusyPatience;
  grpc::Status status = Try(call);
  if (!flags_.ok() || !IsBusy(status, may_repeat)) return status;
  std::cerr << "rollcall: the daemon at " << channels_->address()
            << " does not answer yet; waiting for it, thirty seconds at most\n";
  for (auto left = deadline - std::chrono::steady_clock::now();
       IsBusy(status, may_repeat) && left > std::chrono::seconds(0);
       left = deadline - std::chrono::steady_clock::now()) {
    channels_->WaitFor(std::chrono::nanoseconds(left).count());
    std::this_thread::sleep_for(kShortPause);
    status = Try(call);
  }
  return status;
}

bool DaemonQuery::AskPatiently(const char* command, const Call& call) {
  const auto deadline = std::chrono::steady_clock::now() + kLongPatience;
  grpc::Status status = TryWhileBusy(call);
  while (status.error_code() == grpc::StatusCode::ABORTED &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPause);
    status = Try(call);
  }
  return Judge(command, status);
}

// True if the answer has come. False after an error, which this function has printed; the exit code
// shows it too.
bool DaemonQuery::Judge(const char* command, const grpc::Status& status) {
  if (status.ok()) return true;
  exit_code_ = IsBadUsage(status) ? kExitBadUsage : 1;
  if (IsAway(status)) {
    std::cerr << "rollcall: cannot reach the daemon at " << channels_->address() << ": "
              << channels_->Explain(status)
              << "\n  is it running?    pgrep -a rollcalld      (on that host)"
              << "\n  another address?  rollcall " << command
              << " --daemon=HOST:PORT   or   export ROLLCALL_DAEMON=HOST:PORT\n";
  } else {
    std::cerr << "rollcall: " << status.error_message() << "\n";
    if (exit_code_ == kExitBadUsage) std::cerr << "  usage:  rollcall " << command << " --help\n";
  }
  return false;
}

bool IsBadUsage(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
         status.error_code() == grpc::StatusCode::OUT_OF_RANGE;
}

std::string FindChoiceOfNoJob(const char* command, const std::string& job, const JobFlags& flags) {
  if (!job.empty()) return "";
  std::string typed;
  if (!flags.tenant.empty()) absl::StrAppend(&typed, " --tenant=", CleanText(flags.tenant));
  if (flags.attempt != JobFlags::kNewest) absl::StrAppend(&typed, " --attempt=", flags.attempt);
  if (typed.empty()) return "";
  return absl::StrCat("--tenant and --attempt need a job:  rollcall ", command, typed, " JOB");
}

void AddQueryFlags(CLI::App* app, QueryFlags* flags, Formats formats) {
  AddDaemonFlags(app, &flags->daemon);
  const bool has_csv = formats == Formats::kAlsoCsv;
  std::vector<std::string> names = {"text", "json"};
  if (has_csv) names.push_back("csv");
  app->add_option("--format", flags->format,
                  has_csv ? "output format: text, json, or csv of the whole list"
                          : "output format: text or json")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember(names));
}

void AddJobFlags(CLI::App* app, JobFlags* flags, const char* others) {
  app->add_option("--tenant", flags->tenant, "JOB: only the job of this tenant");
  app->add_option("--attempt", flags->attempt,
                  absl::StrCat("JOB: this attempt (which start of the job); without it, ", others))
      ->check(CLI::NonNegativeNumber);
}

void AddCauseFlag(CLI::App* app, std::string* cause, const char* help) {
  app->add_option("--cause", *cause, help)
      ->check(CLI::Validator(
          [](const std::string& name) { return std::string(CheckCauseName(name).message()); },
          "CAUSE"));
}

void PrintJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  std::cout << (status.ok() ? json : "{}\n");
}

}  // namespace rollcall
