// SPDX-License-Identifier: Apache-2.0
// Replaces names in one text of an incident, by the kind of the text. Pure.
#pragma once

#include <set>
#include <string>

#include "daemon/report/pseudonyms.h"
#include "daemon/report/text_kind.h"

namespace rollcall {

inline constexpr char kHiddenMessage[] = "[message hidden]";

class TextAnonymizer {
 public:
  // `names` must outlive this object.
  explicit TextAnonymizer(Pseudonyms* names) : names_(names) {}

  // Sentences are the last: they contain names that the other fields make known.
  std::string Replace(TextKind kind, const std::string& text);

 private:
  std::string File(const std::string& path);
  std::string Site(const std::string& site);
  std::string Address(const std::string& address);
  std::string Error(const std::string& error);
  std::string Thread(const std::string& name);
  std::string Host(const std::string& host);
  std::string Device(const std::string& device);
  std::string Log(const std::string& line);
  std::string Sentence(std::string text);
  std::string Paths(const std::string& text);
  std::string Hosts(const std::string& text);
  std::string Pids(const std::string& text);

  Pseudonyms* const names_;
  std::set<std::string> libraries_;  // base names of files of libraries
};

}  // namespace rollcall
