// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_login.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "daemon/web/http_login_page.h"
#include "daemon/web/http_router.h"
#include "daemon/web/http_site.h"
#include "net/http_types.h"

namespace rollcall {
namespace {

constexpr char kHtml[] = "text/html; charset=utf-8";
constexpr char kCookieLimits[] = "; Path=/; HttpOnly; SameSite=Strict";
constexpr char kFromElsewhere[] =
    "You followed a link of another page, and the link contains a token. Log in only if you trust "
    "that page.";

// Returns a text field of a JSON object, or "".
std::string Field(const nlohmann::json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

}  // namespace

// Returns whether the browser speaks TLS, to the page or to a proxy in front of it. The Origin of a
// POST shows it; a GET has none.
bool HttpLogin::IsByTls(const httplib::Request& request) const {
  if (HttpRouter::exchange().caller.is_encrypted) return true;
  const std::string origin = request.get_header_value("Origin");
  return absl::StartsWith(AuthorityIn(origin).empty() ? page_url_ : origin, "https://");
}

void HttpLogin::SetCookie(const httplib::Request& request, const std::string& session,
                          httplib::Response* response) const {
  const std::string end = session.empty() ? "; Max-Age=0" : "";
  response->set_header("Set-Cookie", absl::StrCat(cookie_name_, "=", session, kCookieLimits, end,
                                                  IsByTls(request) ? "; Secure" : ""));
}

void HttpLogin::AddTo(httplib::Server* server) {
  server->Get("/login", [this](const httplib::Request&, httplib::Response& response) {
    ShowForm(200, "", "", &response);
  });
  server->Get("/login.css", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(kLoginStyle, "text/css; charset=utf-8");
  });
  server->Get("/login.js", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(kLoginScript, "text/javascript; charset=utf-8");
  });
  server->Post("/login", [this](const httplib::Request& request, httplib::Response& response) {
    LogIn(request, &response);
  });
  server->Post("/logout", [this](const httplib::Request& request, httplib::Response& response) {
    LogOut(request, &response);
  });
}

void HttpLogin::ShowForm(int status, const std::string& note, const std::string& token,
                         httplib::Response* response) const {
  response->status = status;
  response->set_header("Content-Security-Policy", kLoginPolicy);
  // Without a referrer, browsers send "Origin: null" with the form.
  response->headers.erase("Referrer-Policy");
  response->set_header("Referrer-Policy", "same-origin");
  response->set_content(LoginPage(note, visitors_->HasPasswords(), token), kHtml);
}

void HttpLogin::ShowProblem(const httplib::Request& request, const HttpDenial& denial,
                            httplib::Response* response) const {
  SetDenial(denial, response);
  const bool is_browser = absl::StrContains(request.get_header_value("Accept"), "text/html");
  if (is_browser) ShowForm(denial.status, denial.text, "", response);
}

// Relative, because the page works below any path of a proxy.
void HttpLogin::SendToForm(const httplib::Request& request, httplib::Response* response) {
  std::string up;
  const auto depth = std::count(request.path.begin(), request.path.end(), '/');
  for (int i = 1; i < depth; ++i) up += "../";
  response->set_redirect(up + "login");
}

HttpVisitors::Login HttpLogin::Begin(const std::string& user, const std::string& secret) {
  HttpVisitors::Login login =
      visitors_->LogIn(HttpRouter::exchange().caller, user, secret, SteadyNs());
  if (login.denial.status != 0) refused_(login.denial);
  return login;
}

void HttpLogin::LogIn(const httplib::Request& request, httplib::Response* response) {
  const bool is_json = absl::StartsWith(request.get_header_value("Content-Type"), kJsonType);
  std::string user = request.get_param_value("user"), secret = request.get_param_value("token");
  if (is_json) {
    const auto object = nlohmann::json::parse(request.body, nullptr, false);
    user = Field(object, "user");
    secret = Field(object, "token");
  }
  const HttpVisitors::Login login = Begin(user, secret);
  if (login.denial.status != 0) return ShowProblem(request, login.denial, response);
  if (!login.session.empty()) SetCookie(request, login.session, response);
  if (is_json) {
    response->set_content(nlohmann::json({{"name", login.identity.name}}).dump(), kJsonType);
  } else {
    response->set_redirect("./", 303);
  }
}

void HttpLogin::LogOut(const httplib::Request& request, httplib::Response* response) {
  visitors_->LogOut(GetCookie(request, cookie_name_));
  SetCookie(request, "", response);
  response->status = 204;
}

void HttpLogin::TakeTokenOfAddress(const httplib::Request& request, httplib::Response* response) {
  const std::string token = request.get_param_value("token");
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  if (site == "cross-site" || site == "same-site") {
    return ShowForm(200, kFromElsewhere, token, response);
  }
  const HttpVisitors::Login login = Begin("", token);
  if (login.denial.status != 0) return ShowProblem(request, login.denial, response);
  if (!login.session.empty()) SetCookie(request, login.session, response);
  response->set_redirect("./");
}

}  // namespace rollcall
