// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace rollcall {

// The origin and the path: "https://host:1" and "/a/b" of "https://host:1/a/b". Without a path "/".
inline std::pair<std::string, std::string> SplitUrl(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t path = scheme == std::string::npos ? std::string::npos : url.find('/', scheme + 3);
  if (path == std::string::npos) return {url, "/"};
  return {url.substr(0, path), url.substr(path)};
}

}  // namespace rollcall
