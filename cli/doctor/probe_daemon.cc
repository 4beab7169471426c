// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/probe_daemon.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <optional>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agent/link/agent_info.h"
#include "agent/processes/capabilities.h"
#include "base/clean_text.h"
#include "base/read_file.h"
#include "proto/timestamps.h"
#include "rollcall/v1/query.grpc.pb.h"
#include "security/certificates/certificate.h"
#include "security/grpc/credentials.h"

namespace rollcall::doctor {
namespace {

constexpr std::chrono::seconds kReplyPatience{5};

// Returns the end of the first certificate of a text, or 0.
int64_t ExpiryOf(const std::string& pem) {
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(pem);
  return facts.ok() ? facts->not_after_s : 0;
}

bool IsRefusal(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
}

void Ask(DaemonChannels* channels, DaemonFacts* facts) {
  const auto stub = v1::Query::NewStub(channels->Connect());
  v1::StatusRequest request;
  request.set_without_communicators(true);
  request.set_limit(1);
  v1::StatusResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kReplyPatience);
  // The first call connects. The time of the second one is that of the way to the daemon and back.
  grpc::Status status = stub->GetStatus(&context, request, &response);
  if (status.ok()) {
    facts->daemon_expiry_s = ExpiryOf(CertificateOfDaemon(context));
    grpc::ClientContext again;
    again.set_deadline(std::chrono::system_clock::now() + kReplyPatience);
    const int64_t asked = absl::GetCurrentTimeNanos();
    const auto begun = std::chrono::steady_clock::now();
    status = stub->GetStatus(&again, request, &response);
    facts->round_trip_ns =
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun).count();
    facts->ahead_ns = NsOf(response.now()) - (asked + facts->round_trip_ns / 2);
  }
  if (status.ok()) {
    facts->answer = DaemonAnswer::kAnswered;
    facts->version = CleanText(response.rollcall_version());
    return;
  }
  facts->answer = IsRefusal(status) ? DaemonAnswer::kRefused : DaemonAnswer::kUnreachable;
  facts->error = channels->Explain(status);
}

}  // namespace

AgentFacts ProbeAgent(const std::string& daemon_address, const std::string& folder) {
  AgentFacts facts;
  facts.may_see_all = MaySeeAllProcesses();
  const std::optional<HostAgent> agent =
      FindHostAgent(daemon_address, {kHostAgentDirectory, folder});
  facts.looked = Attempt::kWorked;
  facts.is_running = agent.has_value();
  if (agent.has_value()) facts.directory = agent->directory;
  return facts;
}

DaemonFacts ProbeDaemon(const DaemonAddress& daemon, bool is_chosen) {
  DaemonFacts facts;
  facts.is_chosen = is_chosen;
  facts.address = daemon.address;
  facts.has_tls = !daemon.tls_ca.empty();
  if (!daemon.tls_cert.empty())
    facts.own_expiry_s = ExpiryOf(ReadFile(daemon.tls_cert).value_or(""));
  const auto channels = DaemonChannels::Open(daemon);
  if (!channels.ok()) {
    facts.answer = DaemonAnswer::kWrongFlags;
    facts.error = std::string(channels.status().message());
    return facts;
  }
  Ask(channels->get(), &facts);
  return facts;
}

}  // namespace rollcall::doctor
