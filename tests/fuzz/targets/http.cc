// SPDX-License-Identifier: Apache-2.0
// Requests to the page, from the complete bytes to the response: parser, gate, roles, parameters.
// The first byte of an input says what the connection shows of the caller; the rest is the request.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <climits>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "fuzz_target.h"
#include "http_fixture.h"
#include "net/http_request.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr char kCertificate[] = "certificate of an operator";
// What anybody may see: the form, its files, and whether the daemon lives.
constexpr const char* kPublic[] = {"/healthz", "/login"};

// One server for all requests, because its threads cost more than a request.
class Page {
 public:
  Page() : failed_logins_(NoLimit()) {
    spdlog::set_level(spdlog::level::off);
    authenticator_.certificate = kCertificate;
    HttpServerOptions options;
    options.authenticator = &authenticator_;
    options.failed_logins = &failed_logins_;
    server_ = std::make_unique<HttpServer>(&queries_, options);
    Promise(server_->Start("127.0.0.1:0").ok(), "the server starts");
  }

  HttpReply Answer(const std::string& request, const HttpCaller& caller) {
    return server_->Answer(request, caller);
  }
  int stacks_taken() const { return queries_.stacks_taken; }

 private:
  // Otherwise the first inputs would close the door to the others.
  static FailedLogins::Limits NoLimit() {
    FailedLogins::Limits limits;
    limits.failures = INT_MAX;
    return limits;
  }

  FailedLogins failed_logins_;
  FakeQueries queries_;
  FakeAuthenticator authenticator_;
  std::unique_ptr<HttpServer> server_;
};

HttpCaller CallerFor(uint8_t shows) {
  HttpCaller caller;
  caller.peer = (shows & 1) != 0 ? "ipv4:127.0.0.1:40000" : "ipv4:192.0.2.7:40000";
  caller.is_encrypted = (shows & 2) != 0;
  caller.local = "ipv4:127.0.0.1:7656";
  if ((shows & 4) != 0) caller.certificate_pem = kCertificate;
  return caller;
}

int StatusOf(const std::string& response) {
  int status = 0;
  const bool has_form =
      absl::StartsWith(response, "HTTP/1.1 ") && absl::SimpleAtoi(response.substr(9, 3), &status);
  Promise(has_form, "a response begins with its status");
  return status;
}

void CheckHead(const std::string& response) {
  const size_t end = response.find("\r\n\r\n");
  Promise(end != std::string::npos, "a response has a head");
  for (size_t at = 0; at < end; ++at) {
    if (response[at] == '\r') Promise(response[at + 1] == '\n', "no head has a lone CR");
    if (response[at] == '\n') Promise(at > 0 && response[at - 1] == '\r', "no head has a lone LF");
  }
}

// Whether the request may hold one of the tokens, which are the names of the roles.
bool MayHaveToken(const std::string& request) {
  return absl::StrContains(request, "viewer") || absl::StrContains(request, "operator") ||
         absl::StrContains(request, "agent") || absl::StrContains(request, "%") ||
         absl::StrContains(request, "\\u");
}

bool IsPublic(const std::string& request) {
  return std::any_of(std::begin(kPublic), std::end(kPublic),
                     [&request](const char* path) { return absl::StrContains(request, path); });
}

void Run(Input input) {
  static Page& page = *new Page();
  const auto shows = input.Take<uint8_t>();
  const std::string_view bytes = input.TakeRest();
  const RequestEnd end = FindRequestEnd(bytes);
  if (end.size == 0) return;
  const std::string request(bytes.substr(0, end.size));
  const HttpCaller caller = CallerFor(shows);
  const int taken_before = page.stacks_taken();
  const HttpReply reply = page.Answer(request, caller);
  if (reply.bytes.empty()) return;  // the connection closes without a word
  CheckHead(reply.bytes);
  const int status = StatusOf(reply.bytes);
  const bool is_stranger = caller.certificate_pem.empty() && !MayHaveToken(request);
  Promise(!is_stranger || status != 200 || IsPublic(request), "a stranger reads nothing");
  Promise(!is_stranger || page.stacks_taken() == taken_before, "a stranger takes no stacks");
  Promise(!reply.is_stream || status == 200, "a stream begins well");
}

const Registered kTarget({"http", 8192, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
