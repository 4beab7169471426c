// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_site.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "base/server_address.h"

namespace rollcall {
namespace {

constexpr char kOurHeader[] = "X-Rollcall";

bool HasDigitsOnly(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

HttpDenial Deny(int status, std::string reason, std::string text) {
  return {status, std::move(reason), std::move(text), 0};
}

bool IsOwnOrigin(const HttpSiteFields& fields, const std::string& page_url) {
  const std::string authority = AuthorityIn(fields.origin);
  if (authority.empty()) return false;
  if (!page_url.empty() && absl::EqualsIgnoreCase(authority, AuthorityIn(page_url))) return true;
  // A plain connection may be that of a proxy, to which the browser speaks TLS.
  const bool fits = absl::StartsWithIgnoreCase(fields.origin, "https://") || !fields.is_encrypted;
  return fits && absl::EqualsIgnoreCase(authority, fields.host);
}

}  // namespace

std::string HostIn(std::string_view header) {
  std::string_view host = header, port;
  if (!header.empty() && header[0] == '[') {
    const size_t end = header.find(']');
    if (end == std::string_view::npos) return "";
    host = header.substr(1, end - 1);
    port = header.substr(end + 1);
  } else if (const size_t colon = header.find(':'); colon != std::string_view::npos) {
    host = header.substr(0, colon);
    port = header.substr(colon);
  }
  if (!port.empty() && (port[0] != ':' || !HasDigitsOnly(port.substr(1)))) return "";
  if (!host.empty() && host.back() == '.') host.remove_suffix(1);
  return absl::AsciiStrToLower(absl::string_view(host.data(), host.size()));
}

std::string AuthorityIn(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (url.substr(0, scheme.size()) != scheme) continue;
    url.remove_prefix(scheme.size());
    return std::string(url.substr(0, url.find('/')));
  }
  return "";
}

bool HttpHosts::Knows(std::string_view header, const std::vector<std::string>& more) const {
  const std::string host = HostIn(header);
  if (host.empty()) return false;
  if (host == "localhost" || IsIpAddress(host)) return true;
  const auto matches = [&host](const std::string& name) { return MatchesHostPattern(name, host); };
  return std::any_of(names_.begin(), names_.end(), matches) ||
         std::any_of(more.begin(), more.end(), matches);
}

HttpDenial CheckHost(const HttpHosts& hosts, const std::vector<std::string>& more,
                     const HttpSiteFields& fields) {
  if (hosts.Knows(fields.host, more)) return {};
  const std::string host = HostIn(fields.host);
  if (host.empty()) return Deny(421, "host", "a request needs a header Host: NAME");
  return Deny(421, "host",
              absl::StrCat("\"", host,
                           "\" is not a name of this daemon; if it should be one, start the daemon "
                           "with --http-host=",
                           host));
}

HttpDenial CheckSite(const HttpSiteFields& fields, const std::string& page_url) {
  const bool is_foreign = fields.fetch_site == "cross-site";
  if (!fields.is_post) {
    // People may follow links from elsewhere; pages may not fetch.
    if (!is_foreign || fields.fetch_mode == "navigate") return {};
    return Deny(403, "origin", "pages of other sites may not read this page's data");
  }
  // A sibling domain is another site, too.
  const bool is_sibling = fields.fetch_site == "same-site";
  // Under some referrer policies, forms send "null" instead of their site.
  const bool is_own_form = fields.is_form && fields.fetch_site == "same-origin";
  const bool has_other_origin =
      !fields.origin.empty() && !is_own_form && !IsOwnOrigin(fields, page_url);
  if (is_foreign || is_sibling || has_other_origin) {
    return Deny(403, "origin",
                "a POST must come from this page itself; behind a proxy, start the daemon with "
                "--page-url=ADDRESS OF THE PAGE");
  }
  if (fields.is_form || fields.has_our_header) return {};
  return Deny(403, "origin", absl::StrCat("a POST needs the header ", kOurHeader, ": 1"));
}

HttpDenial CheckLoginAddress(const HttpSiteFields& fields) {
  const bool is_part = !fields.fetch_mode.empty() && fields.fetch_mode != "navigate";
  const bool is_framed = !fields.fetch_dest.empty() && fields.fetch_dest != "document";
  if (!is_part && !is_framed) return {};
  return Deny(403, "origin",
              "a page has loaded an address with a token, and only a person may log in; open the "
              "address in a window of its own");
}

}  // namespace rollcall
