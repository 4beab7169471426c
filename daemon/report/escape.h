// Text from jobs, made harmless in HTML.
#pragma once

#include <string>

#include "absl/strings/str_replace.h"

namespace rollcall {

inline std::string EscapeHtml(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

}  // namespace rollcall
