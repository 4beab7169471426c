// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/by_daemon.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "base/durations.h"
#include "daemon/access/clean_message.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kNsOfMillisecond = kSecond / 1000;
constexpr std::chrono::seconds kBesides{60};  // as the daemon takes besides, and more

absl::Status Failed(const grpc::Status& status, const DaemonLookFlags& flags,
                    const DaemonChannels& channels) {
  const std::string daemon = CleanText(flags.daemon.address);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnimplementedError(absl::StrCat(
        "the daemon at ", daemon, " is older than this rollcall, and cannot look at jobs"));
  }
  return absl::UnavailableError(absl::StrCat(
      "no look from the daemon at ", daemon, ": ", CleanLines(channels.Explain(status)),
      "\n  the jobs that it knows?     rollcall status --daemon=", daemon,
      "\n  without a daemon, by ssh?   rollcall diagnose --hosts=node-1,node-2"));
}

}  // namespace

absl::StatusOr<std::vector<v1::HostLook>> LookByDaemon(
    const DaemonLookFlags& flags, const std::string& job, int64_t apart_ns, bool asks_ras,
    const std::function<void(const std::string&)>& tell) {
  const auto channels = DaemonChannels::Open(flags.daemon);
  if (!channels.ok()) return channels.status();
  v1::LookRequest request;
  request.set_job(job);
  request.set_tenant(flags.tenant);
  request.set_apart_ms(static_cast<int32_t>(apart_ns / kNsOfMillisecond));
  request.set_without_ras(!asks_ras);
  tell("the agents of its hosts look at the job");
  const auto stub = v1::Query::NewStub((*channels)->Connect());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(apart_ns) +
                       kBesides);
  const auto reader = stub->LookAtJob(&context, request);
  std::vector<v1::HostLook> looks;
  v1::HostLook look;
  while (reader->Read(&look)) {
    CleanStrings(&look);
    looks.push_back(std::move(look));
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return Failed(status, flags, **channels);
  return looks;
}

}  // namespace rollcall
