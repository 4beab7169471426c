// SPDX-License-Identifier: Apache-2.0
#include "webhook/webhook_server.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <time.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "net/http_front.h"
#include "net/http_types.h"
#include "net/listen_sockets.h"
#include "security/certificates/tls_context.h"
#include "webhook/review.h"

namespace rollcall {
namespace {

constexpr size_t kMostBodyBytes = size_t{3} << 20;
// The bytes of all reviews at once: hundreds of usual pods. The API server lets a pod pass that
// finds no room.
constexpr size_t kMostBodiesBytes = size_t{16} << 20;
constexpr int kConnections = 64;
constexpr int kThreads = 2;

HttpLimits Limits() {
  HttpLimits limits;
  limits.connections = kConnections;
  limits.threads = kThreads;
  limits.viewers = 1;
  limits.body_bytes = kMostBodyBytes;
  limits.bodies_bytes = kMostBodiesBytes;
  return limits;
}

HttpReply MakeReply(int status, const char* type, absl::string_view body) {
  const char* words = status == 200 ? "OK" : status == 404 ? "Not Found" : "Bad Request";
  HttpReply reply;
  reply.bytes = absl::StrCat("HTTP/1.1 ", status, " ", words, "\r\nContent-Type: ", type,
                             "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
  return reply;
}

// The server has checked that the request is complete and has one head.
HttpReply AnswerRequest(const std::string& request, const InjectionSettings& settings) {
  constexpr absl::string_view kHeadEnd = "\r\n\r\n";
  const bool is_review =
      absl::StartsWith(request, "POST /mutate ") || absl::StartsWith(request, "POST /mutate?");
  if (!is_review) return MakeReply(404, "text/plain", "POST an AdmissionReview to /mutate\n");
  const std::string_view body =
      std::string_view(request).substr(request.find(kHeadEnd.data()) + kHeadEnd.size());
  const ReviewAnswer answer = AnswerReview(body, settings);
  if (answer.status != 200) {
    spdlog::warn("{}", answer.log_line);
  } else if (!answer.log_line.empty()) {
    spdlog::info("{}", answer.log_line);
  }
  return MakeReply(answer.status, kJsonType, answer.body);
}

}  // namespace

// The files, and the context made from them. Thread-safe, except Poll().
class WebhookServer::Tls {
 public:
  explicit Tls(const TlsPaths& paths) : files_(paths, CertificateUse::kServer) {}

  absl::Status Poll() {
    const absl::Status status = files_.Poll(time(nullptr));
    for (const std::string& line : files_.TakeNews()) spdlog::info("{}", line);
    for (const std::string& line : files_.TakeMessages()) spdlog::warn("{}", line);
    const absl::Status made = Make(files_.Current());
    return status.ok() ? made : status;
  }
  std::shared_ptr<const TlsContext> context() const {
    const MutexLock lock(mutex_);
    return context_;
  }

 private:
  absl::Status Make(const std::shared_ptr<const TlsContents>& contents) {
    if (contents == nullptr || contents == contents_) return absl::OkStatus();
    contents_ = contents;
    TlsSettings settings;
    settings.certificate_pem = contents->certificate_pem;
    settings.key_pem = contents->key_pem;
    auto context = TlsContext::Make(settings);
    if (!context.ok()) return context.status();
    const MutexLock lock(mutex_);
    context_ = *std::move(context);
    return absl::OkStatus();
  }

  TlsFiles files_;                               // of Poll()
  std::shared_ptr<const TlsContents> contents_;  // likewise: what context_ was made from
  mutable Mutex mutex_;
  std::shared_ptr<const TlsContext> context_ ABSL_GUARDED_BY(mutex_);
};

WebhookServer::WebhookServer(WebhookOptions options)
    : options_(std::move(options)), tls_(std::make_unique<Tls>(options_.tls)) {}
WebhookServer::~WebhookServer() = default;

absl::Status WebhookServer::Start() {
  const absl::Status tls = tls_->Poll();
  if (!tls.ok()) return tls;
  auto opened = ListenSockets::Open(options_.listen);
  if (!opened.ok()) return opened.status();
  port_ = opened->port();
  std::vector<UniqueFd> sockets = opened->Release();  // closes all but the first
  if (sockets.empty()) return absl::UnavailableError("no socket to listen on");
  front_ = std::make_unique<HttpFront>(
      sockets[0].Release(), Limits(),
      [this](const std::string& request, const HttpCaller&) {
        return AnswerRequest(request, options_.injection);
      },
      [](const HttpTopic&) { return uint64_t{0}; }, [this] { return tls_->context(); });
  return front_->Start() ? absl::OkStatus()
                         : absl::ResourceExhaustedError("no file descriptor is free");
}

void WebhookServer::PollCertificate() { static_cast<void>(tls_->Poll()); }

}  // namespace rollcall
