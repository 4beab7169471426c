#include "daemon/http.h"

#include <google/protobuf/util/json_util.h>
#include <httplib.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/address.h"
#include "daemon/daemon.h"
#include "daemon/report/escape.h"
#include "daemon/report/html.h"

namespace rollcall {
namespace {

constexpr char kPolicy[] = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'";

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  return google::protobuf::util::MessageToJsonString(message, &json, options).ok() ? json : "{}";
}

std::string JobRow(const v1::JobStatus& job) {
  std::string row = absl::StrCat("<tr><td>", EscapeHtml(job.name()), "</td><td>",
                                 EscapeHtml(job.state()), "</td><td>", job.processes_alive(), " / ",
                                 job.processes(), "</td><td>", job.communicators_size(),
                                 "</td><td>", EscapeHtml(job.summary()), "</td></tr>\n");
  return row;
}

std::string IncidentRow(const v1::Incident& incident) {
  const std::string summary =
      incident.verdicts_size() > 0 ? incident.verdicts(0).summary() : std::string();
  return absl::StrCat("<tr><td><a href=\"/incidents/", EscapeHtml(incident.id()), "\">",
                      EscapeHtml(incident.id()), "</a></td><td>", EscapeHtml(incident.state()),
                      "</td><td>", EscapeHtml(summary), "</td></tr>\n");
}

std::string FrontPage(const Daemon& daemon) {
  const v1::StatusResponse status = daemon.GetStatus("");
  std::string page = absl::StrCat(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" "
      "content=\"2\"><meta name=\"viewport\" content=\"width=device-width\"><title>Rollcall</title>"
      "<style>:root{color-scheme:light dark}body{font:15px system-ui,sans-serif;margin:2rem}"
      "table{border-collapse:collapse}td,th{text-align:left;padding:.3rem .8rem;border-bottom:1px "
      "solid #8886}</style></head><body><h1>Rollcall</h1><p>",
      status.agents(), " agents, release ", EscapeHtml(status.rollcall_version()),
      "</p><h2>Jobs</h2><table><tr><th>job</th><th>state</th><th>processes alive</th>"
      "<th>communicators</th><th>what is wrong</th></tr>\n");
  for (const v1::JobStatus& job : status.jobs()) page += JobRow(job);
  page += "</table><h2>Incidents</h2><table><tr><th>incident</th><th>state</th><th></th></tr>\n";
  for (const v1::Incident& incident : daemon.GetIncidents("")) page += IncidentRow(incident);
  return page + "</table></body></html>\n";
}

std::string IncidentsJson(const Daemon& daemon) {
  v1::ListIncidentsResponse response;
  for (v1::Incident& incident : daemon.GetIncidents("")) response.add_incidents()->Swap(&incident);
  return ToJson(response);
}

}  // namespace

class HttpServer::Impl {
 public:
  explicit Impl(const Daemon* daemon) : daemon_(daemon) {
    server_.set_default_headers({{"Content-Security-Policy", kPolicy},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"Cache-Control", "no-store"}});
    // httplib's default reuses the port of another daemon.
    server_.set_socket_options([](socket_t) {});
    Page("/", "text/html; charset=utf-8", [this] { return FrontPage(*daemon_); });
    Page("/healthz", "text/plain", [] { return std::string("ok\n"); });
    Page("/api/v1/status", "application/json", [this] { return ToJson(daemon_->GetStatus("")); });
    Page("/api/v1/incidents", "application/json", [this] { return IncidentsJson(*daemon_); });
    server_.Get(R"(/incidents/(.+))",
                [this](const httplib::Request& request, httplib::Response& response) {
                  const std::string id = request.matches[1];
                  for (const v1::Incident& incident : daemon_->GetIncidents("")) {
                    if (incident.id() == id) {
                      response.set_content(ToHtml(incident), "text/html; charset=utf-8");
                      return;
                    }
                  }
                  response.status = 404;
                  response.set_content("no such incident; the list is at /\n", "text/plain");
                });
  }

  httplib::Server& server() { return server_; }
  void Listen() {
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  void Stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  template <typename Make>
  void Page(const char* path, const char* type, Make make) {
    server_.Get(path, [type, make](const httplib::Request&, httplib::Response& response) {
      response.set_content(make(), type);
    });
  }

  const Daemon* const daemon_;
  httplib::Server server_;
  std::thread thread_;
};

HttpServer::HttpServer(const Daemon* daemon) : impl_(std::make_unique<Impl>(daemon)) {}
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
  impl_->Listen();
  return absl::OkStatus();
}

void HttpServer::Stop() { impl_->Stop(); }

}  // namespace rollcall
