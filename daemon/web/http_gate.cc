// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_gate.h"

#include <limits.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/server_address.h"
#include "base/steady_clock.h"
#include "daemon/web/http_api.h"
#include "daemon/web/http_routes.h"
#include "net/http_types.h"

namespace rollcall {
namespace {

std::string NameOfThisHost() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Whether a person's browser asks for a document, not a script for data.
bool IsNavigation(const httplib::Request& request) {
  return request.method == "GET" &&
         absl::StrContains(request.get_header_value("Accept"), "text/html");
}

bool IsLoginAddress(const httplib::Request& request) {
  return request.path == "/" && request.method == "GET" && request.has_param("token");
}

HttpSiteFields SiteFieldsOf(const httplib::Request& request, const HttpRoute* route) {
  HttpSiteFields fields;
  fields.is_post = request.method != "GET" && request.method != "HEAD";
  fields.is_encrypted = HttpRouter::exchange().caller.is_encrypted;
  fields.host = request.get_header_value("Host");
  fields.origin = request.get_header_value("Origin");
  fields.fetch_site = request.get_header_value("Sec-Fetch-Site");
  fields.fetch_mode = request.get_header_value("Sec-Fetch-Mode");
  fields.fetch_dest = request.get_header_value("Sec-Fetch-Dest");
  fields.has_our_header = request.has_header("X-Rollcall");
  fields.is_form = route != nullptr && route->is_form;
  return fields;
}

std::string RolesOf(const Identity& identity) {
  return absl::StrJoin(identity.roles, ", ",
                       [](std::string* out, Role role) { out->append(RoleName(role)); });
}

std::string WhoAmI(const HttpVisitor& visitor, bool is_insecure) {
  nlohmann::json roles = nlohmann::json::array();
  for (const Role role : visitor.identity->roles) roles.push_back(std::string(RoleName(role)));
  const nlohmann::json answer = {
      {"name", visitor.identity->name},       {"roles", roles},
      {"tenants", visitor.identity->tenants}, {"may_act", visitor.identity->Has(Role::kOperator)},
      {"has_session", visitor.has_session},   {"insecure", is_insecure}};
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

HttpGate::HttpGate(const HttpServerOptions& options, HttpVisitors::PasswordSource passwords)
    : options_(options),
      visitors_(options.token, options.authenticator, std::move(passwords), options.failed_logins),
      login_(&visitors_, options.page_url, [this](const HttpDenial& denial) { Count(denial); }) {}

void HttpGate::AddTo(HttpRouter* server) {
  login_.AddTo(server);
  server->Get("/api/v1/whoami", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(WhoAmI(HttpRouter::exchange().visitor, options_.is_insecure), kJsonType);
  });
  server->set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        return Admit(request, &response);
      });
  server->set_stream_guard([this](const HttpExchange& exchange) { return GuardStream(exchange); });
}

void HttpGate::Open(const std::string& host, int port, TlsSource tls) {
  std::vector<std::string> names = options_.hosts;
  names.push_back(HostIn(host));
  if (!options_.page_url.empty()) names.push_back(HostIn(AuthorityIn(options_.page_url)));
  if (!IsOnThisHost(host)) names.push_back(NameOfThisHost());
  hosts_ = HttpHosts(std::move(names));
  login_.SetCookieName(SessionCookieName(NameOfThisHost(), port));
  tls_ = std::move(tls);
}

void HttpGate::Count(const HttpDenial& denial) const {
  if (options_.refused) options_.refused(denial.reason);
}

HttpGate::Handled HttpGate::Refuse(const HttpDenial& denial, httplib::Response* response) const {
  Count(denial);
  SetDenial(denial, response);
  return Handled::Handled;
}

HttpDenial HttpGate::CheckSource(const HttpSiteFields& fields) const {
  const HttpDenial denial =
      CheckHost(hosts_, tls_ ? tls_()->names() : std::vector<std::string>(), fields);
  return denial.status != 0 ? denial : CheckSite(fields, options_.page_url);
}

HttpGate::Handled HttpGate::Admit(const httplib::Request& request, httplib::Response* response) {
  HttpExchange& exchange = HttpRouter::exchange();
  exchange.credentials = {exchange.caller, request.get_header_value("Authorization"),
                          GetCookie(request, login_.cookie_name())};
  const HttpRoute* route = FindHttpRoute(request.method, request.path);
  const HttpSiteFields fields = SiteFieldsOf(request, route);
  HttpDenial denial = CheckSource(fields);
  if (denial.status == 0 && IsLoginAddress(request)) denial = CheckLoginAddress(fields);
  if (denial.status != 0) return Refuse(denial, response);
  if (route != nullptr && !route->role.has_value()) return Handled::Unhandled;
  if (IsLoginAddress(request)) {
    login_.TakeTokenOfAddress(request, response);
    return Handled::Handled;
  }
  return AdmitVisitor(request, route == nullptr ? nullptr : &*route->role, response);
}

// A nullptr as `role` means no such address, which strangers need not know.
HttpGate::Handled HttpGate::AdmitVisitor(const httplib::Request& request, const Role* role,
                                         httplib::Response* response) {
  HttpExchange& exchange = HttpRouter::exchange();
  exchange.visitor = visitors_.Identify(exchange.credentials, SteadyNs());
  const HttpVisitor& visitor = exchange.visitor;
  if (!visitor.identity.has_value()) {
    const bool to_form = visitor.denial.status == 401 && IsNavigation(request);
    if (!to_form) return Refuse(visitor.denial, response);
    Count(visitor.denial);
    HttpLogin::SendToForm(request, response);
    return Handled::Handled;
  }
  if (role == nullptr) return RefuseAddress(request, response);
  if (visitor.identity->Has(*role)) return Handled::Unhandled;
  TellOfRefusal(request, *role);
  return Refuse({403, "role",
                 absl::StrCat("you are ", visitor.identity->name, " (", RolesOf(*visitor.identity),
                              "); this needs the role ", std::string(RoleName(*role))),
                 0},
                response);
}

HttpGate::Handled HttpGate::RefuseAddress(const httplib::Request& request,
                                          httplib::Response* response) const {
  const std::string allowed = AllowedMethods(request.path);
  if (allowed.empty()) return Refuse({404, "address", "no such address", 0}, response);
  response->set_header("Allow", allowed);
  return Refuse({405, "address",
                 absl::StrCat("this address takes ", allowed, ", and not ", request.method), 0},
                response);
}

// Of an action that the visitor may not take, for the audit.
void HttpGate::TellOfRefusal(const httplib::Request& request, Role needed) const {
  if (!options_.refused_action) return;
  for (const ApiRoute& route : kApiRoutes) {
    if (!route.acts() || request.path != route.path) continue;
    const HttpExchange& exchange = HttpRouter::exchange();
    options_.refused_action({exchange.visitor.identity->name, route.action,
                             absl::StrCat("needs the role ", std::string(RoleName(needed))),
                             exchange.caller.peer});
  }
}

std::function<bool()> HttpGate::GuardStream(const HttpExchange& exchange) {
  return [this, credentials = exchange.credentials, visitor = exchange.visitor] {
    return visitors_.IsStillValid(credentials, visitor, SteadyNs());
  };
}

}  // namespace rollcall
