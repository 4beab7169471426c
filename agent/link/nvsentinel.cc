// SPDX-License-Identifier: Apache-2.0
#include "agent/link/nvsentinel.h"

#include <google/protobuf/util/time_util.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "base/digest/digest.h"
#include "base/monotonic_clock.h"
#include "base/steady_clock.h"
#include "nvsentinel/health_event.grpc.pb.h"

namespace rollcall {
namespace {

constexpr uint32_t kVersion = 1;
constexpr char kMonitor[] = "rollcall";
constexpr char kCheck[] = "RollcallTrainingHang";  // the type of the node's condition
constexpr size_t kEntityDigits = 16;
constexpr std::chrono::seconds kLookForHangsEvery{1};
constexpr std::chrono::seconds kAnswersWithin{10};

std::string Plain(const std::string& text) {
  std::string plain = CleanText(text);
  std::replace(plain.begin(), plain.end(), ';', ',');
  return plain;
}

// NVSentinel separates entities by blanks, and an id has the job's name in it.
std::string EntityOf(const HangMarks::Hang& hang) {
  return Sha256Hex(hang.incident()).substr(0, kEntityDigits);
}

// NVSentinel adds a new text to the old one, so this has nothing that changes while the hang lasts.
std::string Message(const HangMarks::Hang& hang) {
  return Plain(absl::StrCat("job ", hang.job(), " hangs, and Rollcall blames this node",
                            hang.is_broken() ? ", whose hardware shows an error" : "",
                            ": rollcall incident ", hang.incident()));
}

void Describe(const HangMarks::Hang& hang, datamodels::HealthEvent* event) {
  event->set_isfatal(hang.is_broken());
  event->set_message(Message(hang));
  if (event->isfatal()) event->set_recommendedaction(datamodels::CONTACT_SUPPORT);
  event->add_errorcode(hang.cause());
  auto& metadata = *event->mutable_metadata();
  metadata["incident"] = CleanText(hang.incident());
  metadata["job"] = CleanText(hang.job());
  metadata["tenant"] = CleanText(hang.tenant());
  metadata["summary"] = CleanText(hang.summary());
  for (const std::string& gpu : hang.gpus()) {
    absl::StrAppend(&metadata["gpus"], metadata["gpus"].empty() ? "" : " ", CleanText(gpu));
  }
}

}  // namespace

datamodels::HealthEvent HealthEventFor(const HangMarks::Step& step,
                                       const NvSentinelOptions& options, int64_t unix_ns) {
  datamodels::HealthEvent event;
  event.set_version(kVersion);
  event.set_agent(kMonitor);
  event.set_componentclass("Node");
  event.set_checkname(kCheck);
  event.set_nodename(options.host);
  *event.mutable_generatedtimestamp() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(unix_ns);
  event.set_processingstrategy(options.may_remediate ? datamodels::EXECUTE_REMEDIATION
                                                     : datamodels::STORE_ONLY);
  event.set_ishealthy(step.kind != HangMarks::Step::Kind::kRaise);
  if (step.kind == HangMarks::Step::Kind::kRaise) {
    Describe(step.hang, &event);
  } else {
    event.set_message("no hang is blamed on this node");
  }
  if (step.kind == HangMarks::Step::Kind::kClear) {
    event.set_message(Plain(absl::StrCat("incident ", step.hang.incident(),
                                         " is over, or no longer blames this node")));
  }
  if (step.kind != HangMarks::Step::Kind::kClearAll) {
    datamodels::Entity* entity = event.add_entitiesimpacted();
    entity->set_entitytype("INCIDENT");
    entity->set_entityvalue(EntityOf(step.hang));
  }
  return event;
}

NvSentinel::NvSentinel(NvSentinelOptions options) : options_(std::move(options)) {
  worker_.Repeat([this] {
    TakeSteps();
    return kLookForHangsEvery;
  });
}

NvSentinel::~NvSentinel() {
  const MutexLock lock(mutex_);
  stopping_ = true;
  if (context_ != nullptr) context_->TryCancel();
}

void NvSentinel::Set(const void* source, const v1::HostHangs& hangs) {
  const MutexLock lock(mutex_);
  marks_.Set(source, hangs, MonotonicNs());
  worker_.Wake();
}

void NvSentinel::Drop(const void* source) {
  const MutexLock lock(mutex_);
  marks_.Drop(source);
}

// Takes all steps that are due.
void NvSentinel::TakeSteps() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const std::optional<HangMarks::Step> step = marks_.Next(MonotonicNs());
    if (!step.has_value()) return;
    lock.Unlock();
    const bool is_taken = Send(*step);
    lock.Lock();
    marks_.Done(*step, is_taken, MonotonicNs());
  }
}

bool NvSentinel::Send(const HangMarks::Step& step) {
  const datamodels::HealthEvent event = HealthEventFor(step, options_, UnixNs());
  const grpc::Status status = Call(event);
  if (status.ok()) {
    spdlog::info("reported to NVSentinel: {}", event.message());
    return true;
  }
  if (failures_.Take(MonotonicNs()).has_value()) {
    spdlog::warn(
        "cannot reach NVSentinel at {}: {}; trying again. Does its platform connector run "
        "on this host, and may this user write to the socket?",
        options_.socket, CleanText(status.error_message()));
  }
  return false;
}

grpc::Status NvSentinel::Call(const datamodels::HealthEvent& event) {
  auto context = std::make_shared<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + kAnswersWithin);
  {
    const MutexLock lock(mutex_);
    if (stopping_) return grpc::Status::CANCELLED;
    context_ = context;
  }
  grpc::ChannelArguments arguments;
  // Servers in Go refuse a path as the name of a host.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  const auto channel = grpc::CreateCustomChannel(absl::StrCat("unix:", options_.socket),
                                                 grpc::InsecureChannelCredentials(), arguments);
  datamodels::HealthEvents events;
  events.set_version(kVersion);
  *events.add_events() = event;
  google::protobuf::Empty nothing;
  const grpc::Status status =
      datamodels::PlatformConnector::NewStub(channel)->HealthEventOccurredV1(context.get(), events,
                                                                             &nothing);
  const MutexLock lock(mutex_);
  context_.reset();
  return status;
}

}  // namespace rollcall
