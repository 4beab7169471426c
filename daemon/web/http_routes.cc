// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_routes.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/page/page_files.h"
#include "daemon/web/http_api.h"

namespace rollcall {
namespace {

constexpr std::optional<Role> kAnybody = std::nullopt;

std::vector<HttpRoute> MakeRoutes() {
  std::vector<HttpRoute> routes = {
      {"GET", "/healthz", kAnybody},
      {"GET", "/healthz/*", Role::kViewer},
      {"GET", "/login", kAnybody},
      {"GET", "/login.css", kAnybody},
      {"GET", "/login.js", kAnybody},
      {"POST", "/login", kAnybody, true},
      {"POST", "/logout", kAnybody},
      {"GET", "/", Role::kViewer},
      {"GET", "/metrics", Role::kViewer},
      {"GET", "/report", Role::kViewer},
      {"GET", "/incidents/*", Role::kViewer},
      {"GET", "/api/v1/events", Role::kViewer},
      {"GET", "/api/v1/whoami", Role::kViewer},
  };
  for (const ApiRoute& route : kApiRoutes) {
    routes.push_back({route.acts() ? "POST" : "GET", route.path,
                      route.acts() ? Role::kOperator : Role::kViewer});
  }
  for (const PageFile* file = kPageFiles; file->path != nullptr; ++file) {
    routes.push_back({"GET", file->path, Role::kViewer});
  }
  return routes;
}

bool Matches(absl::string_view pattern, absl::string_view path) {
  return absl::ConsumeSuffix(&pattern, "*") ? absl::StartsWith(path, pattern) : path == pattern;
}

}  // namespace

const std::vector<HttpRoute>& HttpRoutes() {
  static const auto& routes = *new std::vector<HttpRoute>(MakeRoutes());
  return routes;
}

std::string AllowedMethods(const std::string& path) {
  std::string allowed;
  for (const char* method : {"GET", "POST"}) {
    if (FindHttpRoute(method, path) == nullptr) continue;
    const bool is_get = method == absl::string_view("GET");
    absl::StrAppend(&allowed, allowed.empty() ? "" : ", ", method, is_get ? ", HEAD" : "");
  }
  return allowed;
}

const HttpRoute* FindHttpRoute(const std::string& method, const std::string& path) {
  const std::string wanted = method == "HEAD" ? "GET" : method;
  for (const HttpRoute& route : HttpRoutes()) {
    if (route.method == wanted && Matches(route.path, path)) return &route;
  }
  return nullptr;
}

}  // namespace rollcall
