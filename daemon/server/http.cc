// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/http.h"

#include <httplib.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/page/page_files.h"
#include "daemon/report/escape.h"
#include "daemon/report/frozen_view.h"
#include "daemon/report/html.h"
#include "daemon/server/address.h"
#include "daemon/server/answer_cache.h"
#include "daemon/server/http_api.h"
#include "daemon/server/query_source.h"
#include "proto/durations.h"
#include "proto/steady_clock.h"

namespace rollcall {
namespace {

constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr char kJson[] = "application/json";
constexpr char kCookie[] = "rollcall_token";
// No page of another site can make a browser send this header.
constexpr char kOurHeader[] = "X-Rollcall";

constexpr char kEvents[] = "/api/v1/events";
constexpr int kMostActions = 4;  // at once; each holds a thread while agents answer
constexpr int64_t kAnswersLeastNs = 300'000'000;
constexpr int64_t kAnswersMostNs = kSecond;

constexpr char kNoPage[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Rollcall</title>"
    "<h1>Rollcall</h1><p>This program was built without the page: npm was not there, or could not "
    "reach its registry. The same as JSON: <a href=\"api/v1/jobs\">jobs</a>, "
    "<a href=\"api/v1/incidents\">incidents</a>; in a terminal: <code>rollcall watch</code>.</p>";

int HttpCode(const absl::Status& status) {
  if (absl::IsNotFound(status)) return 404;
  if (absl::IsInvalidArgument(status)) return 400;
  return 503;
}

// Takes as long whatever differs.
bool SameSecret(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string CookieOf(const httplib::Request& request, const std::string& name) {
  const std::string cookies = "; " + request.get_header_value("Cookie");
  const size_t at = cookies.find("; " + name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 3;
  return cookies.substr(begin, cookies.find(';', begin) - begin);
}

bool TakesGzip(const httplib::Request& request) {
  return absl::StrContains(request.get_header_value("Accept-Encoding"), "gzip");
}

// A request that is whole, and the place for its answer: no read or write waits for anybody.
class Exchange : public httplib::Stream {
 public:
  explicit Exchange(const std::string& request) : request_(request) {}
  std::string TakeAnswer() { return std::move(answer_); }

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

// The library's routes, requests and responses, without its sockets and threads.
class Router : public httplib::Server {
 public:
  HttpFront::Reply Answer(const std::string& request) {
    Exchange exchange(request);
    HttpFront::Reply reply;
    bool close = false, wants_events = false;
    const bool ok =
        process_request(exchange, false, close, [&](const httplib::Request& parsed) {
          wants_events = parsed.method == "GET" && parsed.path == kEvents;
          reply.job = parsed.get_param_value("job");
        });
    reply.bytes = exchange.TakeAnswer();
    reply.close = close || !ok;
    reply.is_stream = wants_events && absl::StartsWith(reply.bytes, "HTTP/1.1 200");
    if (reply.is_stream) reply.bytes = StreamHead(reply.bytes);
    return reply;
  }

 private:
  // A stream ends with its connection.
  static std::string StreamHead(const std::string& head) {
    return absl::StrReplaceAll(head, {{"Content-Length: 0\r\n", "Connection: close\r\n"},
                                      {"Connection: close\r\n", ""},
                                      {"Connection: Keep-Alive\r\n", ""}});
  }
};

// By a provider: what is set as content the library would compress once more.
void SetBody(std::shared_ptr<const std::string> body, const std::string& type,
             httplib::Response* response) {
  const size_t size = body->size();
  if (size == 0) return response->set_content("", type);
  response->set_content_provider(size, type,
                                 [body](size_t offset, size_t length, httplib::DataSink& sink) {
                                   return sink.write(body->data() + offset, length);
                                 });
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(QuerySource* queries, std::string token)
      : queries_(queries), token_(std::move(token)), answers_(kAnswersLeastNs, kAnswersMostNs) {
    server_.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cache-Control", "no-cache"}});
    // httplib's default shares the port with another daemon; this only lets a daemon that was
    // restarted have the port of the one before, whose connections may still be closing.
    server_.set_socket_options([this](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      listener_ = socket;
    });
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          return Admit(request, &response);
        });
    server_.Get("/metrics", [this](const httplib::Request& request, httplib::Response& response) {
      const bool open =
          absl::StrContains(request.get_header_value("Accept"), "application/openmetrics-text");
      response.set_content(queries_->GetMetrics(open, counts()),
                           open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                : "text/plain; version=0.0.4; charset=utf-8");
    });
    server_.Get(kEvents, [this](const httplib::Request&, httplib::Response& response) {
      Events(&response);
    });
    server_.Get("/report", [this](const httplib::Request& request, httplib::Response& response) {
      Report(request.get_param_value("id"), request.has_param("download"), &response);
    });
    // Addresses of the first release.
    server_.Get(R"(/incidents/(.+))",
                [](const httplib::Request& request, httplib::Response& response) {
                  response.set_redirect("../#/incident/" + EscapeUrl(request.matches[1]));
                });
    AddApi();
    AddPage();
  }

  httplib::Server& server() { return server_; }
  // After the server was bound.
  bool Listen(int connections) {
    HttpLimits limits;
    limits.connections = connections;
    front_ = std::make_unique<HttpFront>(
        listener_, limits,
        [this](const std::string& request) { return server_.Answer(request); },
        [this](const std::string& job) { return queries_->Version(job); });
    return front_->Start();
  }
  void Stop() {
    if (front_ != nullptr) front_->Stop();
  }
  HttpFront::Counts counts() const {
    return front_ == nullptr ? HttpFront::Counts() : front_->counts();
  }

 private:
  using Handled = httplib::Server::HandlerResponse;

  Handled Admit(const httplib::Request& request, httplib::Response* response) {
    if (request.method == "POST" && !request.has_header(kOurHeader)) {
      response->status = 403;
      response->set_content(absl::StrCat("a POST needs the header ", kOurHeader, ": 1\n"),
                            "text/plain");
      return Handled::Handled;
    }
    if (token_.empty() || request.path == "/healthz") return Handled::Unhandled;
    const std::string given = request.get_param_value("token");
    if (request.path == "/" && SameSecret(given, token_)) {
      response->set_header(
          "Set-Cookie",
          absl::StrCat(kCookie, "=", token_, "; HttpOnly; SameSite=Strict; Max-Age=31536000"));
      response->set_redirect("./");
      return Handled::Handled;
    }
    if (SameSecret(request.get_header_value("Authorization"), "Bearer " + token_) ||
        SameSecret(CookieOf(request, kCookie), token_)) {
      return Handled::Unhandled;
    }
    response->status = 401;
    response->set_header("WWW-Authenticate", "Bearer");
    response->set_content(
        "this daemon wants a token\n  in a browser:  http://HOST:PORT/?token=TOKEN   (once)\n"
        "  in a script:   -H 'Authorization: Bearer TOKEN'\n"
        "  whoever runs the daemon has it: the file of rollcalld --http-token-file\n",
        "text/plain");
    return Handled::Handled;
  }

  static void Refuse(const absl::Status& status, httplib::Response* response) {
    response->status = HttpCode(status);
    response->set_content(absl::StrCat(std::string(status.message()), "\n"), "text/plain");
  }

  void RefuseAction(httplib::Response* response) {
    --actions_;
    response->set_header("Retry-After", "5");
    Refuse(absl::UnavailableError("others take stacks just now; ask again in some seconds"),
           response);
  }

  void AddApi() {
    for (const ApiRoute& route : kApiRoutes) {
      if (route.changes_anything) {
        server_.Post(route.path,
                     [this, &route](const httplib::Request& request, httplib::Response& response) {
                       if (++actions_ > kMostActions) return RefuseAction(&response);
                       const auto answer = route.answer(queries_, ParametersOf(request));
                       --actions_;
                       if (!answer.ok()) return Refuse(answer.status(), &response);
                       SetBody(std::make_shared<std::string>(*answer), kJson, &response);
                     });
      } else {
        server_.Get(route.path,
                    [this, &route](const httplib::Request& request, httplib::Response& response) {
                      Answer(route, request, &response);
                    });
      }
    }
  }

  static QueryParameters ParametersOf(const httplib::Request& request) {
    QueryParameters parameters;
    for (const auto& [name, value] : request.params) parameters.Add(name, value);
    return parameters;
  }

  void Answer(const ApiRoute& route, const httplib::Request& request, httplib::Response* response) {
    const QueryParameters parameters = ParametersOf(request);
    std::string key = route.path;
    for (const auto& [name, value] : request.params) absl::StrAppend(&key, "\n", name, "=", value);
    const auto answer = answers_.Get(key, queries_->Version(parameters.Get(route.job_parameter)),
                                     SteadyNs(),
                                     [&] { return route.answer(queries_, parameters); });
    if (!answer.ok()) return Refuse(answer.status(), response);
    const AnswerCache::Answer& made = *answer;
    response->set_header("ETag", made->etag);
    response->set_header("Vary", "Accept-Encoding");
    if (request.get_header_value("If-None-Match") == made->etag) {
      response->status = 304;
      return;
    }
    const bool gzip = TakesGzip(request) && !made->gzip.empty();
    if (gzip) response->set_header("Content-Encoding", "gzip");
    // Shares the cached text.
    SetBody({made, gzip ? &made->gzip : &made->json}, kJson, response);
  }

  // The head; the front says the rest.
  void Events(httplib::Response* response) {
    if (!front_->HasRoomForViewer()) {
      response->status = 503;
      response->set_header("Retry-After", "30");
      response->set_content("too many viewers; ask for /api/v1/jobs now and then\n", "text/plain");
      return;
    }
    response->set_header("X-Accel-Buffering", "no");  // a proxy shall not collect them
    response->set_content("", "text/event-stream");
  }

  void Report(const std::string& id, bool download, httplib::Response* response) {
    const auto incident = queries_->GetIncident(id);
    if (!incident.ok()) return Refuse(incident.status(), response);
    response->set_header("Content-Security-Policy", ReportPolicy() + "; frame-ancestors 'none'");
    if (download) {
      std::string name = "rollcall-" + id + ".html";
      for (char& c : name) {
        if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
      }
      response->set_header("Content-Disposition", "attachment; filename=\"" + name + "\"");
    }
    SetBody(std::make_shared<std::string>(ToHtml(*incident)), "text/html; charset=utf-8", response);
  }

  void AddPage() {
    bool has_page = false;
    for (const PageFile* file = kPageFiles; file->path != nullptr; ++file) {
      AddFile(file->path, *file);
      if (file->path == std::string("/index.html")) {
        AddFile("/", *file);
        has_page = true;
      }
    }
    if (has_page) return;
    server_.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_header("Content-Security-Policy", kPolicy);
      response.set_content(kNoPage, "text/html; charset=utf-8");
    });
  }

  void AddFile(const std::string& path, const PageFile& file) {
    server_.Get(path, [&file](const httplib::Request&, httplib::Response& response) {
      response.set_header("Content-Security-Policy", kPolicy);
      // Every browser takes it, and so does curl --compressed.
      response.set_header("Content-Encoding", "gzip");
      SetBody(std::make_shared<std::string>(reinterpret_cast<const char*>(file.bytes), file.size),
              file.type, &response);
    });
  }

  QuerySource* const queries_;
  const std::string token_;
  AnswerCache answers_;
  std::atomic<int> actions_{0};
  int listener_ = -1;
  Router server_;
  std::unique_ptr<HttpFront> front_;
};

HttpServer::HttpServer(QuerySource* queries, std::string token, int connections)
    : impl_(std::make_unique<Impl>(queries, std::move(token))), connections_(connections) {}
HttpServer::~HttpServer() { Stop(); }

absl::Status HttpServer::Start(const std::string& address) {
  const absl::StatusOr<Address> parsed = ParseAddress("--http", address);
  if (!parsed.ok()) return parsed.status();
  int port = parsed->port;
  if (port == 0) {
    port = impl_->server().bind_to_any_port(parsed->host.c_str());
  } else if (!impl_->server().bind_to_port(parsed->host.c_str(), port)) {
    port = -1;
  }
  if (port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve pages on ", address,
                     ": the address is taken or not this machine's\n"
                     "  another one?  --http=HOST:PORT   (port 0: any free one)"));
  }
  address_ = absl::StrCat(parsed->host, ":", port);
  if (impl_->Listen(connections_)) return absl::OkStatus();
  return absl::UnavailableError("cannot serve pages: too many files are open (ulimit -n)");
}

void HttpServer::Stop() { impl_->Stop(); }
HttpFront::Counts HttpServer::counts() const { return impl_->counts(); }

}  // namespace rollcall
