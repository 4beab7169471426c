// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_router.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clean_text.h"
#include "base/peer_address.h"
#include "net/http_request.h"

namespace rollcall {
namespace {

thread_local HttpExchange* current = nullptr;

// A complete request and the buffer for its response. No read or write blocks.
class BufferStream : public httplib::Stream {
 public:
  explicit BufferStream(const std::string& request) : request_(request) {}
  std::string ReleaseResponse() { return std::move(answer_); }

  bool is_readable() const override { return at_ < request_.size(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override {
    const size_t count = std::min(size, request_.size() - at_);
    std::memcpy(bytes, request_.data() + at_, count);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, size_t size) override {
    answer_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  const std::string& request_;
  size_t at_ = 0;
  std::string answer_;
};

// The end of a stream is the end of its connection.
std::string StreamHead(const std::string& head) {
  return absl::StrReplaceAll(head, {{"Content-Length: 0\r\n", "Connection: close\r\n"},
                                    {"Connection: close\r\n", ""},
                                    {"Connection: Keep-Alive\r\n", ""}});
}

using SetUp = std::function<void(httplib::Request&)>;

// Serves one request. Newer releases of cpp-httplib also need the addresses of both ends.
[[maybe_unused]] bool Serve(bool (httplib::Server::*serve)(httplib::Stream&, bool, bool&,
                                                           const SetUp&),
                            httplib::Server* server, httplib::Stream* stream, bool* close,
                            const SetUp& set_up) {
  return (server->*serve)(*stream, false, *close, set_up);
}
[[maybe_unused]] bool Serve(bool (httplib::Server::*serve)(httplib::Stream&, const std::string&,
                                                           int, const std::string&, int, bool,
                                                           bool&, const SetUp&),
                            httplib::Server* server, httplib::Stream* stream, bool* close,
                            const SetUp& set_up) {
  return (server->*serve)(*stream, "", 0, "", 0, false, *close, set_up);
}

}  // namespace

Owner HttpExchange::Viewer() const {
  return {visitor.identity->name, std::string(PeerWithoutPort(caller.peer))};
}

HttpExchange& HttpRouter::exchange() { return *current; }

HttpReply HttpRouter::Answer(const std::string& request, const HttpCaller& caller) {
  const std::string known = KeepKnownFields(request);
  BufferStream stream(known);
  HttpExchange exchange;
  exchange.caller = caller;
  current = &exchange;
  HttpReply reply;
  bool close = false, wants_events = false;
  const auto look = [&](const httplib::Request& parsed) {
    wants_events = parsed.method == "GET" && parsed.path == kHttpEvents;
    reply.topic.job = parsed.get_param_value("job");
  };
  const bool ok = Serve(&HttpRouter::process_request, this, &stream, &close, look);
  current = nullptr;
  reply.bytes = stream.ReleaseResponse();
  reply.close = close || !ok;
  reply.is_stream = wants_events && absl::StartsWith(reply.bytes, "HTTP/1.1 200");
  if (exchange.visitor.identity.has_value()) reply.viewer = exchange.Viewer();
  if (!reply.is_stream) return reply;
  reply.bytes = StreamHead(reply.bytes);
  reply.topic.tenants = exchange.visitor.identity->tenants;
  if (guard_) reply.is_allowed = guard_(exchange);
  return reply;
}

std::string GetCookie(const httplib::Request& request, const std::string& name) {
  const std::string cookies = "; " + request.get_header_value("Cookie");
  const size_t at = cookies.find("; " + name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 3;
  return cookies.substr(begin, cookies.find(';', begin) - begin);
}

void SetDenial(const HttpDenial& denial, httplib::Response* response) {
  response->status = denial.status;
  if (denial.status == 401) response->set_header("WWW-Authenticate", "Bearer");
  if (denial.retry_after_s > 0) {
    response->set_header("Retry-After", std::to_string(denial.retry_after_s));
  }
  response->set_content(absl::StrCat(CleanLines(denial.text), "\n"), "text/plain");
}

}  // namespace rollcall
