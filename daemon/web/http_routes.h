// SPDX-License-Identifier: Apache-2.0
// Every address of the page, with the role that it needs. What is not here is not served.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "security/identity.h"

namespace rollcall {

struct HttpRoute {
  std::string method;        // "GET" (also HEAD) or "POST"
  std::string path;          // ends with "*": every path that begins so
  std::optional<Role> role;  // nullopt means any caller
  // A form of the login page sends it: it needs no header X-Rollcall.
  bool is_form = false;
};

const std::vector<HttpRoute>& HttpRoutes();
// What the path may be asked by, for the field Allow: "GET, HEAD"; empty if there is no such path.
std::string AllowedMethods(const std::string& path);
// Returns nullptr if there is no such route.
const HttpRoute* FindHttpRoute(const std::string& method, const std::string& path);

}  // namespace rollcall
