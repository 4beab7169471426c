// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http.h"

#include <httplib.h>

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean_text.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "daemon/access/access.h"
#include "daemon/page/page_files.h"
#include "daemon/queries/answer_cache.h"
#include "daemon/queries/query_source.h"
#include "daemon/report/escape.h"
#include "daemon/report/frozen_view.h"
#include "daemon/report/html.h"
#include "daemon/web/http_api.h"
#include "daemon/web/http_gate.h"
#include "daemon/web/http_router.h"
#include "daemon/web/http_web_config.h"
#include "daemon/web/job_health.h"
#include "net/address.h"
#include "net/http_types.h"

namespace rollcall {
namespace {

constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
// Limit of simultaneous actions; each needs a thread until the agents reply.
constexpr int kMostActions = 4;
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
  if (absl::IsFailedPrecondition(status)) return 409;
  if (absl::IsOutOfRange(status)) return 413;
  if (absl::IsPermissionDenied(status)) return 403;
  return 503;
}

bool AcceptsGzip(const httplib::Request& request) {
  return absl::StrContains(request.get_header_value("Accept-Encoding"), "gzip");
}

// Uses a provider: the library would compress other content a second time.
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
  Impl(QuerySource* queries, HttpServerOptions options)
      : queries_(queries),
        options_(std::move(options)),
        answers_(kAnswersLeastNs, kAnswersMostNs),
        web_(options_.web_config.empty() ? nullptr
                                         : std::make_unique<HttpWebConfig>(options_.web_config)),
        gate_(options_, [this] { return web_ == nullptr ? nullptr : web_->current()->passwords; }) {
    server_.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cache-Control", "no-cache"}});
    // httplib's default shares the port with another daemon. SO_REUSEADDR only lets a restarted
    // daemon bind the port while connections of the previous daemon close. The front listens, but
    // httplib must be bound: else it sends the head of an answer without its body.
    server_.set_socket_options([this](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      listener_ = socket;
    });
    gate_.AddTo(&server_);
    server_.set_error_handler(
        [](const httplib::Request&, httplib::Response& response) { ExplainRefusal(&response); });
    server_.Get("/metrics", [this](const httplib::Request& request, httplib::Response& response) {
      const bool open =
          absl::StrContains(request.get_header_value("Accept"), "application/openmetrics-text");
      response.set_content(Seen()->GetMetrics(open, counts()),
                           open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                : "text/plain; version=0.0.4; charset=utf-8");
    });
    server_.Get(kHttpEvents, [this](const httplib::Request&, httplib::Response& response) {
      Events(&response);
    });
    server_.Get(R"(/healthz/(.+))",
                [this](const httplib::Request& request, httplib::Response& response) {
                  Health(request, &response);
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
  // Reads what the server needs before it listens.
  absl::Status Prepare() {
    if (web_ == nullptr) return absl::OkStatus();
    const absl::Status status = web_->Start();
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--http-config: ", std::string(status.message())));
    }
    const bool has_tls = web_->current()->tls != nullptr;
    if (has_tls) options_.tls = [this] { return web_->current()->tls; };
    server_.set_post_routing_handler(
        [this](const httplib::Request&, httplib::Response& response) { AddHeaders(&response); });
    return absl::OkStatus();
  }
  // Call it after the server is bound.
  bool Listen(const std::string& host, int port) {
    HttpLimits limits;
    limits.connections = options_.connections;
    gate_.Open(host, port, options_.tls);
    front_ = std::make_unique<HttpFront>(
        listener_, limits,
        [this](const std::string& request, const HttpCaller& caller) {
          return Answer(request, caller);
        },
        [this](const HttpTopic& topic) { return VersionOf(topic); }, options_.tls, options_.problem,
        options_.over_share);
    return front_->Start();
  }
  void Stop() {
    if (front_ != nullptr) front_->Stop();
    if (web_ != nullptr) web_->Stop();
  }
  HttpReply Answer(const std::string& request, const HttpCaller& caller) {
    return server_.Answer(request, caller);
  }
  bool has_tls() const { return static_cast<bool>(options_.tls); }
  size_t answer_bytes() const { return answers_.bytes(); }
  HttpFront::Counts counts() const {
    return front_ == nullptr ? HttpFront::Counts() : front_->counts();
  }

 private:
  // Adds those of web.yml. The page's own headers are at least as strict.
  void AddHeaders(httplib::Response* response) const {
    const auto web = web_->current();  // keeps the headers while another thread replaces them
    for (const auto& [name, value] : web->headers) {
      if (!response->has_header(name)) response->set_header(name, value);
    }
  }

  // httplib itself refuses without a word.
  static void ExplainRefusal(httplib::Response* response) {
    if (!response->body.empty() || response->status != 413) return;
    response->set_content("a form has at most 8 KiB\n", "text/plain");
  }

  static void Refuse(const absl::Status& status, httplib::Response* response) {
    response->status = HttpCode(status);
    response->set_content(absl::StrCat(CleanLines(std::string(status.message())), "\n"),
                          "text/plain");
  }

  // httplib has read the parameters of a form, and of nothing else.
  static bool HasOtherBody(const httplib::Request& request) {
    return !request.body.empty() && !absl::StartsWith(request.get_header_value("Content-Type"),
                                                      "application/x-www-form-urlencoded");
  }

  static void RefuseBody(const ApiRoute& route, httplib::Response* response) {
    response->status = 415;
    response->set_content(
        absl::StrCat("the parameters are in the address (POST ", route.path, "?",
                     route.parameters.front(),
                     "=...) or in a body of the type "
                     "application/x-www-form-urlencoded; this body has another type\n"),
        "text/plain");
  }

  void TellOfRefusal(const ApiRoute& route, const std::string& why) const {
    if (!options_.refused_action) return;
    const HttpExchange& exchange = HttpRouter::exchange();
    options_.refused_action(
        {exchange.visitor.identity->name, route.action, why, exchange.caller.peer});
  }

  void RefuseAction(const ApiRoute& route, httplib::Response* response) {
    --actions_;
    TellOfRefusal(route, kTooMany);
    response->set_header("Retry-After", "5");
    Refuse(absl::UnavailableError("other users are taking stacks; try again in some seconds"),
           response);
  }

  // The queries as the caller of this request may make them.
  std::unique_ptr<QuerySource> Seen() const {
    return queries_->SeenByCaller(*HttpRouter::exchange().visitor.identity);
  }

  uint64_t VersionOf(const HttpTopic& topic) const {
    Identity viewer;
    viewer.tenants = topic.tenants;
    return queries_->SeenBy(TenantsFor(viewer))->Version(topic.job);
  }

  void AddApi() {
    for (const ApiRoute& route : kApiRoutes) {
      if (route.acts()) {
        server_.Post(route.path,
                     [this, &route](const httplib::Request& request, httplib::Response& response) {
                       Act(route, request, &response);
                     });
      } else {
        server_.Get(route.path,
                    [this, &route](const httplib::Request& request, httplib::Response& response) {
                      Answer(route, request, &response);
                    });
      }
    }
  }

  void Act(const ApiRoute& route, const httplib::Request& request, httplib::Response* response) {
    if (HasOtherBody(request)) return RefuseBody(route, response);
    const absl::Status text = GetParameters(request).CheckText();
    if (!text.ok()) return Refuse(text, response);
    if (++actions_ > kMostActions) return RefuseAction(route, response);
    const auto answer = route.act(route, Seen().get(), GetParameters(request), Operator());
    --actions_;
    if (!answer.ok()) {
      TellOfRefusal(route, std::string(answer.status().message()));
      return Refuse(answer.status(), response);
    }
    SetBody(std::make_shared<std::string>(*answer), kJsonType, response);
  }

  ApiOperator Operator() const {
    const HttpExchange& exchange = HttpRouter::exchange();
    const std::string& name = exchange.visitor.identity->name;
    return {name, [this, &exchange, &name](const std::string& action, const std::string& object) {
              if (options_.audit) options_.audit({name, action, object, exchange.caller.peer});
            }};
  }

  static QueryParameters GetParameters(const httplib::Request& request) {
    QueryParameters parameters;
    for (const auto& [name, value] : request.params) parameters.Add(name, value);
    return parameters;
  }

  void Answer(const ApiRoute& route, const httplib::Request& request, httplib::Response* response) {
    const QueryParameters parameters = GetParameters(request);
    const absl::Status text = parameters.CheckText();
    if (!text.ok()) return Refuse(text, response);
    // A caller that may see other tenants gets another answer.
    std::string key = absl::StrCat(
        route.path, "\n", absl::StrJoin(HttpRouter::exchange().visitor.identity->tenants, ","));
    for (const std::string& name : route.parameters) {
      for (const std::string& value : parameters.All(name)) {
        absl::StrAppend(&key, "\n", name, "=", value);
      }
    }
    const auto answer =
        answers_.Get(key, queries_->Version(parameters.Get(route.job_parameter)), SteadyNs(),
                     [&] { return route.answer(route, Seen().get(), parameters); });
    // The daemon goes on with what takes longer. Others, such as proxies, send Retry-After as well.
    if (absl::IsAborted(answer.status())) {
      response->set_header("Retry-After", "1");
      response->set_header("X-Rollcall-Working", "1");
    }
    if (!answer.ok()) return Refuse(answer.status(), response);
    const AnswerCache::Answer& made = *answer;
    response->set_header("ETag", made->etag);
    response->set_header("Vary", "Accept-Encoding");
    if (request.get_header_value("If-None-Match") == made->etag) {
      response->status = 304;
      return;
    }
    const bool gzip = AcceptsGzip(request) && !made->gzip.empty();
    if (gzip) response->set_header("Content-Encoding", "gzip");
    // The response shares the cached text.
    SetBody({made, gzip ? &made->gzip : &made->json}, route.content_type, response);
  }

  // Sends the head only. The front sends the events.
  void Events(httplib::Response* response) {
    if (!front_->HasRoomForViewer(HttpRouter::exchange().Viewer())) {
      response->status = 503;
      response->set_header("Retry-After", "30");
      response->set_content(
          "too many streams of changes, and you have most of them: close some, or "
          "poll /api/v1/jobs instead\n",
          "text/plain");
      return;
    }
    response->set_header("X-Accel-Buffering", "no");  // keeps a proxy from buffering the events
    response->set_content("", "text/event-stream");
  }

  // A probe asks every few seconds, and needs neither communicators nor other jobs.
  void Health(const httplib::Request& request, httplib::Response* response) {
    QueryParameters parameters = GetParameters(request);
    parameters.Add("job", request.matches[1]);
    const absl::Status text = parameters.CheckText();
    if (!text.ok()) return Refuse(text, response);
    const auto job = FindJobStatus(Seen().get(), parameters);
    if (!job.ok()) return Refuse(job.status(), response);
    const JobHealth health = HealthOf(*job);
    response->status = health.http_status;
    response->set_content(health.line + "\n", "text/plain; charset=utf-8");
  }

  void Report(const std::string& id, bool download, httplib::Response* response) {
    v1::IncidentRequest wanted;
    wanted.set_id(id);
    const auto incident = Seen()->GetIncident(wanted);
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
      // Every browser accepts gzip, and so does curl --compressed.
      response.set_header("Content-Encoding", "gzip");
      SetBody(std::make_shared<std::string>(reinterpret_cast<const char*>(file.bytes), file.size),
              file.type, &response);
    });
  }

  QuerySource* const queries_;
  HttpServerOptions options_;
  AnswerCache answers_;
  std::atomic<int> actions_{0};
  int listener_ = -1;
  const std::unique_ptr<HttpWebConfig> web_;  // nullptr if there is no web.yml
  HttpGate gate_;
  HttpRouter server_;
  std::unique_ptr<HttpFront> front_;
};

HttpServer::HttpServer(QuerySource* queries, HttpServerOptions options)
    : impl_(std::make_unique<Impl>(queries, std::move(options))) {}
HttpServer::~HttpServer() { Stop(); }

absl::Status HttpServer::Start(const std::string& address) {
  const absl::StatusOr<Address> parsed = ParseAddress("--http", address);
  if (!parsed.ok()) return parsed.status();
  const absl::Status prepared = impl_->Prepare();
  if (!prepared.ok()) return prepared;
  int port = parsed->port;
  const std::string bound = WithoutBrackets(parsed->host);
  if (port == 0) {
    port = impl_->server().bind_to_any_port(bound.c_str());
  } else if (!impl_->server().bind_to_port(bound.c_str(), port)) {
    port = -1;
  }
  if (port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve pages on ", address,
                     ": the address is in use or belongs to another machine\n"
                     "  another one?  --http=HOST:PORT   (port 0: any free one)"));
  }
  address_ = absl::StrCat(parsed->host, ":", port);
  if (impl_->Listen(parsed->host, port)) return absl::OkStatus();
  return absl::UnavailableError("cannot serve pages: too many files are open; raise ulimit -n");
}

void HttpServer::Stop() { impl_->Stop(); }
HttpReply HttpServer::Answer(const std::string& request, const HttpCaller& caller) {
  return impl_->Answer(request, caller);
}
bool HttpServer::has_tls() const { return impl_->has_tls(); }
HttpFront::Counts HttpServer::counts() const { return impl_->counts(); }
size_t HttpServer::answer_bytes() const { return impl_->answer_bytes(); }

}  // namespace rollcall
